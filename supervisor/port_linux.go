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
	return holderOf(listeningSockets(port, func(string) bool { return true }))
}

// holderOf names the program that holds one of the sockets, or returns "" when this
// user may not see it.
func holderOf(sockets map[string]bool) string {
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

// strangerOn reports whether somebody who is certainly not kin listens on port
// where the app is reached, and names them; "" where the name is not to be seen.
// What cannot be seen for certain counts as kin.
func strangerOn(port int, k *kin) (holder string, is bool) {
	sockets := listeningSockets(port, takesLoopback)
	if hidden := removeHeld(sockets, k.members()); len(sockets) == 0 || len(hidden) > 0 {
		return "", false
	}
	// A socket that closed meanwhile is nobody's.
	now := listeningSockets(port, takesLoopback)
	for socket := range sockets {
		if now[socket] {
			return portHolder(port), true
		}
	}
	return "", false
}

// removeHeld removes the sockets that one of the processes holds, and returns the
// processes whose open files it may not see.
func removeHeld(sockets map[string]bool, processes []process) (hidden []process) {
	for _, p := range processes {
		if len(sockets) == 0 {
			return nil
		}
		seen := false
		look := func(proc string) {
			files, err := os.ReadDir(proc + "/fd")
			seen = err == nil
			for i := 0; i < len(files) && len(sockets) > 0; i++ {
				target, _ := os.Readlink(proc + "/fd/" + files[i].Name())
				delete(sockets, target)
			}
		}
		if look("/proc/" + strconv.Itoa(p.pid)); !seen {
			asOwner(p.pid, look)
		}
		if !seen {
			hidden = append(hidden, p)
		}
	}
	return hidden
}

// takesLoopback reports whether a socket at address, as /proc/net writes it,
// is reached through 127.0.0.1 or ::1.
func takesLoopback(address string) bool {
	const anyV6, loopV6, loopV4in6 = "00000000000000000000000000000000", "00000000000000000000000001000000",
		"0000000000000000FFFF00000100007F"
	switch address {
	case "00000000", "0100007F", anyV6, loopV6, loopV4in6:
		return true
	}
	return false
}

// listeningSockets returns what listens on port at an address that is wanted,
// written as the links of /proc/PID/fd are.
func listeningSockets(port int, wanted func(address string) bool) map[string]bool {
	sockets := map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		for _, l := range listeners(file, port) {
			if wanted(l.address) {
				sockets["socket:["+l.inode+"]"] = true
			}
		}
		_ = file.Close()
	}
	return sockets
}

// listener is a socket that listens: its address in the system's hexadecimal
// and its number.
type listener struct{ address, inode string }

// listeners returns the sockets that listen on port, from the text of
// /proc/net/tcp or tcp6.
func listeners(text io.Reader, port int) []listener {
	const listen = "0A"
	var found []listener
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listen {
			continue
		}
		address, hexPort, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hexPort, 16, 16); err == nil && int(n) == port {
			found = append(found, listener{address, fields[9]})
		}
	}
	return found
}
