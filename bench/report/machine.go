package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func facts(peers string) (map[string]string, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty=+changes", "--exclude=*").Output()
	if err != nil {
		return nil, fmt.Errorf("asking git for the commit: %w", err)
	}
	return map[string]string{
		"commit":  strings.TrimSpace(string(commit)),
		"date":    time.Now().UTC().Format(time.DateOnly),
		"machine": machine(),
		"go":      "Go " + strings.TrimPrefix(runtime.Version(), "go"),
		"peers":   versionsOf(peers),
	}, nil
}

func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
			if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}

	system := map[string]string{"linux": "Linux", "darwin": "macOS"}
	return fmt.Sprintf("%d processors (%s, %s)", runtime.NumCPU(), model,
		cmp.Or(system[runtime.GOOS], runtime.GOOS))
}

// processors is the machine's processor time since boot, in kernel ticks.
type processors struct {
	total, busy float64
	known       bool // only on Linux
}

// The fields of /proc/stat are user, nice, system, idle, iowait, irq, softirq and steal. Steal, used by other virtual
// machines, counts as busy.
func readProcessors() (p processors) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return p
	}

	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return processors{}
		}
		p.total += ticks
		if i != 3 && i != 4 {
			p.busy += ticks
		}
	}

	p.known = true
	return p
}

// ticks per second are the same on all Linux ports of Go.
const ticks = 100

// othersSince returns the processor use of other programs in percent, or -1 if unknown. own is the measured programs'
// processor time.
func (p processors) othersSince(before processors, own time.Duration) float64 {
	total := p.total - before.total
	if !p.known || !before.known || total <= 0 {
		return -1
	}
	return max(0, 100*(p.busy-before.busy-own.Seconds()*ticks)/total)
}
