package run

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HideMemory prevents other processes of this user, such as the app, from reading this process's memory and environment
// variables in /proc, which contain secrets. It also disables core dumps.
func HideMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// releaseProgram releases the pages of the executable, most of which are only needed during startup. The kernel maps
// others again from the page cache.
func releaseProgram() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // without /proc, the kernel releases the pages when memory runs short
	}
	defer f.Close()
	for _, m := range programMappings(f) {
		unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED)
	}
}

type mapping struct{ begin, end uintptr }

func programMappings(smaps io.Reader) []mapping {
	var found []mapping
	var program string
	var last *mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var m mapping
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &m.begin, &m.end); err == nil {
			last = nil
			if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") || strings.Contains(fields[1], "w") {
				continue
			}
			if program = cmp.Or(program, fields[5]); fields[5] == program {
				last = &m
			}
		} else if last != nil && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" {
			found = append(found, *last)
		}
	}

	return found
}

func groupMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return leastLimit(os.DirFS("/sys/fs/cgroup"), string(groups))
}

// leastLimit reads the lines of /proc/self/cgroup, which are ID:CONTROLLERS:PATH. In a container, PATH may be the
// host's path, although only its last part is mounted.
func leastLimit(root fs.FS, groups string) int64 {
	least := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		folder, file := ".", "memory.max"
		if fields[1] != "" {
			folder, file = "memory", "memory.limit_in_bytes"
		}
		if fields[1] != "" && !slices.Contains(strings.Split(fields[1], ","), "memory") {
			continue
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(folder, "."+group, file)) // absent if the group is not mounted
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit < unlimited {
				least = min(least, limit)
			}
			if group == "/" {
				break
			}
		}
	}

	return least
}

// unlimited is less than the number that version 1 reports if there is no limit. Version 2 reports "max".
const unlimited = 1 << 62
