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

// HideMemory keeps other processes of this user, such as the app, from reading the memory and the environment of this one
// in /proc, where secrets are. Programs that it starts are not affected. There are no core dumps either.
func HideMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// releaseProgram lets the system take back the pages of the program's file that the start has read: most are of code
// and tables that only a start needs. A page that is used again is mapped again from the page cache.
func releaseProgram() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // without /proc the pages stay until the system needs them
	}
	defer f.Close()
	for _, m := range programMappings(f) {
		unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ begin, end uintptr }

// programMappings returns the mappings of the program's file in the text of /proc/self/smaps that hold nothing but the
// file's content: those that were never written to. The program is the file that is mapped first.
func programMappings(smaps io.Reader) []mapping {
	var found []mapping
	var program string
	var last *mapping // the mapping whose lines are read, if it is one of the program
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var m mapping
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &m.begin, &m.end); err == nil {
			if last = nil; len(fields) < 6 || !strings.HasPrefix(fields[5], "/") || strings.Contains(fields[1], "w") {
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

// groupMemory is the memory limit of this process's control group or the nearest group above it, in bytes;
// math.MaxInt64 if none has one.
func groupMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return leastLimit(os.DirFS("/sys/fs/cgroup"), string(groups))
}

// leastLimit returns the smallest memory limit that applies to the groups of /proc/self/cgroup, whose lines are
// ID:CONTROLLERS:PATH. In a container the path may be the host's, of which only the end is mounted, at the root.
func leastLimit(root fs.FS, groups string) int64 {
	least := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		folder, file := ".", "memory.max" // version 2
		if fields[1] != "" {
			folder, file = "memory", "memory.limit_in_bytes"
		}
		if fields[1] != "" && !slices.Contains(strings.Split(fields[1], ","), "memory") {
			continue
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(folder, "."+group, file)) // missing where the group is not mounted
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

// unlimited is what version 1 reports without a limit: the largest number of whole pages. Version 2 reports "max".
const unlimited = 1 << 62
