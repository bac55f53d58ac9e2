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
// others again.
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

// programMappings returns the executable's mappings without modified pages.
func programMappings(smaps io.Reader) (found []mapping) {
	program := ""
	var current *mapping // nil unless it is the executable's
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		if m, file, ok := parseMapping(lines.Text()); ok {
			program = cmp.Or(program, file)
			current = nil
			if file != "" && file == program {
				current = &m
			}
			continue
		}
		if current != nil && slices.Equal(strings.Fields(lines.Text()), []string{"Anonymous:", "0", "kB"}) {
			found = append(found, *current)
		}
	}
	return found
}

func parseMapping(line string) (m mapping, readOnlyFile string, ok bool) {
	if _, err := fmt.Sscanf(line, "%x-%x ", &m.begin, &m.end); err != nil {
		return m, "", false
	}
	fields := strings.Fields(line)
	if len(fields) >= 6 && strings.HasPrefix(fields[5], "/") && !strings.Contains(fields[1], "w") {
		readOnlyFile = fields[5]
	}
	return m, readOnlyFile, true
}

func groupMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return leastLimit(os.DirFS("/sys/fs/cgroup"), string(groups))
}

// leastLimit also reads the limits of parent groups. In a container, a group's path may be the host's, although the
// group itself is mounted as the root.
func leastLimit(root fs.FS, groups string) int64 {
	least := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		folder, file, group := memoryGroup(line)
		for file != "" {
			least = min(least, readLimit(root, path.Join(folder, "."+group, file)))
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return least
}

// memoryGroup parses ID:CONTROLLERS:PATH.
func memoryGroup(line string) (folder, file, group string) {
	fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
	switch {
	case len(fields) < 3:
	case fields[1] == "":
		return ".", "memory.max", path.Join("/", fields[2])
	case slices.Contains(strings.Split(fields[1], ","), "memory"):
		return "memory", "memory.limit_in_bytes", path.Join("/", fields[2])
	}
	return "", "", ""
}

// unlimited is less than the number that version 1 reports if there is no limit. Version 2 reports "max".
const unlimited = 1 << 62

func readLimit(root fs.FS, name string) int64 {
	text, _ := fs.ReadFile(root, name) // absent if the group is not mounted
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit >= unlimited {
		return math.MaxInt64
	}
	return limit
}
