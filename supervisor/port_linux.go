package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// wildcardTaken has nothing to add: Linux refuses 127.0.0.1 when somebody
// listens on all addresses.
func wildcardTaken(int) bool { return false }

// portHolder names the program that listens on port, or returns "" when this
// user may not see it.
func portHolder(port int) string {
	sockets := map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		for _, inode := range listeners(file, port) {
			sockets["socket:["+inode+"]"] = true
		}
		_ = file.Close()
	}
	if len(sockets) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range files {
		target, err := os.Readlink(path)
		if err != nil || !sockets[target] {
			continue
		}
		pid := strings.Split(path, "/")[2]
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		return fmt.Sprintf("%s (pid %s)", appendEscaped(nil, []byte(strings.TrimSuffix(string(name), "\n"))), pid)
	}
	return ""
}

// listeners returns the socket numbers that listen on port, from the text of
// /proc/net/tcp or tcp6.
func listeners(text io.Reader, port int) []string {
	const listen = "0A"
	var inodes []string
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listen {
			continue
		}
		_, hexPort, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hexPort, 16, 16); err == nil && int(n) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
