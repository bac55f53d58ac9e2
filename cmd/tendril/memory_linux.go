package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hideMemory keeps other processes of this user, such as the app, from reading the memory and the environment of this one
// in /proc, where secrets are. Programs that it starts are not affected. There are no core dumps either.
func hideMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

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
