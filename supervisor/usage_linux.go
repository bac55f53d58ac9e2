package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage adds up what the living kin take. A control group also remembers what
// those used that are gone.
func (k *kin) usage() Usage {
	var u Usage
	for _, p := range k.members() {
		u.Processes++
		u.CPU += time.Duration(p.cpu) * clockTick
		u.Memory += int64(p.pages) * int64(os.Getpagesize())
	}
	if k.cgroup != nil {
		if cpu, ok := k.cgroup.cpu(); ok {
			u.CPU = cpu
		}
	}
	return u
}

// cpu reads what the whole group has used.
func (c *cgroup) cpu() (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(c.folder, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	return cgroupCPU(string(text))
}

// cgroupCPU reads the time from the text of a cpu.stat.
func cgroupCPU(stat string) (time.Duration, bool) {
	for line := range strings.Lines(stat) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}
