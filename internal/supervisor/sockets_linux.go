package supervisor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tendril/internal/host/terminal"
)

// wildcardTaken returns false, because Linux does not allow binding 127.0.0.1 while another program listens on all
// addresses.
func wildcardTaken(int) bool { return false }

func portHolder(port int) string {
	return holderOf(listeningSockets(port))
}

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
		return fmt.Sprintf("%s (pid %s)", terminal.Plain(strings.TrimSuffix(string(name), "\n"), false), pid)
	}
	return ""
}

// foreignListenerOn reports whether a process outside the tree definitely accepts loopback connections on port. holder
// may be "".
func foreignListenerOn(port int, tree *processTree) (holder string, is bool) {
	sockets := listeningSockets(port)
	if hidden := removeHeld(sockets, tree.members()); len(sockets) == 0 || len(hidden) > 0 {
		return "", false
	}
	now := listeningSockets(port)
	for socket := range sockets {
		if now[socket] {
			return portHolder(port), true
		}
	}
	return "", false
}

func listeningPorts(tree *processTree) []int {
	all, _ := tcpSockets(" " + listening + " ")
	portOf := map[string]int{}
	others := map[string]bool{}
	for _, s := range all {
		address, port, _ := strings.Cut(s.local, ":")
		number, err := strconv.ParseUint(port, 16, 16)
		if err != nil || s.state != listening || !takesLoopback(address) {
			continue
		}
		portOf[s.client.link()] = int(number)
		others[s.client.link()] = true
	}

	removeHeld(others, tree.members())
	maps.DeleteFunc(portOf, func(socket string, _ int) bool { return others[socket] })
	return slices.Compact(slices.Sorted(maps.Values(portOf)))
}

// removeHeld removes the sockets that processes hold. It returns the processes whose open files cannot be read.
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

		look("/proc/" + strconv.Itoa(p.pid))
		if !seen {
			asOwner(p.pid, look)
		}
		if !seen {
			hidden = append(hidden, p)
		}
	}
	return hidden
}

// takesLoopback expects address in the format of /proc/net.
func takesLoopback(address string) bool {
	const anyV6, loopV6, loopV4in6 = "00000000000000000000000000000000", "00000000000000000000000001000000",
		"0000000000000000FFFF00000100007F"
	switch address {
	case "00000000", "0100007F", anyV6, loopV6, loopV4in6:
		return true
	}
	return false
}

// listeningSockets returns the links of the sockets that accept loopback connections.
func listeningSockets(port int) map[string]bool {
	suffix := fmt.Sprintf(":%04X", port)
	all, _ := tcpSockets(suffix)
	return listeners(all, suffix)
}

const listening = "0A"

func listeners(all []tcpSocket, suffix string) map[string]bool {
	links := map[string]bool{}
	for _, s := range all {
		if address, ok := strings.CutSuffix(s.local, suffix); ok && s.state == listening && takesLoopback(address) {
			links[s.client.link()] = true
		}
	}
	return links
}

// tcpSocket is an entry of /proc/net/tcp or tcp6, with hexadecimal addresses.
type tcpSocket struct {
	local, remote, state string
	client               client
}

// tcpSockets returns the entries that contain part. known is false if the system does not list sockets.
func tcpSockets(part string) (found []tcpSocket, known bool) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if text, err := os.ReadFile(name); err == nil {
			found, known = append(found, parseSockets(string(text), part)...), true
		}
	}
	return found, known
}

func parseSockets(text, part string) (found []tcpSocket) {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, part) {
			continue
		}
		if f := strings.Fields(line); len(f) > 9 {
			found = append(found, tcpSocket{f[1], f[2], f[3], client{inode: f[9], uid: f[7]}})
		}
	}
	return found
}

// client identifies a socket, usually a connection's peer. inode is "0" if its program has closed the socket.
type client struct{ inode, uid string }

func (c client) isOpen() bool { return c.inode != "" && c.inode != "0" }

// link is the target in /proc/PID/fd.
func (c client) link() string { return "socket:[" + c.inode + "]" }

// known is false if conn is not IPv4 or the system does not list connections.
func clientOf(conn net.Conn) (c client, known bool) {
	here, err := netip.ParseAddrPort(conn.LocalAddr().String())
	there, err2 := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || err2 != nil || !here.Addr().Unmap().Is4() {
		return client{}, false
	}
	if c, ok := askKernel(there, here); ok {
		return c, true
	}
	all, known := tcpSockets(procAddresses(there)[0]) // the tcp6 form ends with this
	return findClient(all, there, here), known
}

func findClient(all []tcpSocket, from, to netip.AddrPort) client {
	locals, remotes := procAddresses(from), procAddresses(to)
	for _, s := range all {
		if slices.Contains(locals, s.local) && slices.Contains(remotes, s.remote) {
			return s.client
		}
	}
	return client{}
}

// askKernel uses sock_diag(7), which takes microseconds. Reading /proc/net/tcp takes milliseconds, but works on all
// kernels and in all containers.
func askKernel(from, to netip.AddrPort) (client, bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return client{}, false
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	request, err := binary.Append(nil, binary.NativeEndian, newDiagRequest(from, to))
	if err != nil || unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return client{}, false
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return client{}, false
	}
	return parseDiag(answer[:n])
}

const sockDiagByFamily = 20

// These are the kernel's inet_diag_sockid, inet_diag_req_v2 and inet_diag_msg.
type (
	diagSocketID struct {
		SourcePort, DestinationPort [2]byte
		Source, Destination         [16]byte
		Interface                   uint32
		Cookie                      uint64
	}
	diagRequest struct {
		Header                         unix.NlMsghdr
		Family, Protocol, Extension, _ uint8
		States                         uint32
		ID                             diagSocketID
	}
	diagMessage struct {
		Header                           unix.NlMsghdr
		Family, State, Timer, Retrans    uint8
		ID                               diagSocketID
		Expires, ReceiveQueue, SendQueue uint32
		UID, Inode                       uint32
	}
)

func newDiagRequest(from, to netip.AddrPort) *diagRequest {
	const inAnyState, noCookie = math.MaxUint32, math.MaxUint64
	r := &diagRequest{Family: unix.AF_INET, Protocol: unix.IPPROTO_TCP, States: inAnyState}
	r.Header = unix.NlMsghdr{Len: uint32(binary.Size(r)), Type: sockDiagByFamily, Flags: unix.NLM_F_REQUEST}
	r.ID.Cookie = noCookie
	binary.BigEndian.PutUint16(r.ID.SourcePort[:], from.Port())
	binary.BigEndian.PutUint16(r.ID.DestinationPort[:], to.Port())
	copy(r.ID.Source[:], from.Addr().Unmap().AsSlice())
	copy(r.ID.Destination[:], to.Addr().Unmap().AsSlice())
	return r
}

func parseDiag(answer []byte) (client, bool) {
	var m diagMessage
	if _, err := binary.Decode(answer, binary.NativeEndian, &m); err != nil || m.Header.Type != sockDiagByFamily {
		return client{}, false
	}
	return client{inode: fmt.Sprint(m.Inode), uid: fmt.Sprint(m.UID)}, true
}

// procAddresses returns an address as in /proc/net/tcp, and as in tcp6, which lists dual-stack sockets.
func procAddresses(a netip.AddrPort) []string {
	ip := a.Addr().Unmap().As4()
	short := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
	mapped := binary.NativeEndian.Uint32([]byte{0, 0, 0xff, 0xff})
	return []string{short, fmt.Sprintf("%024X", mapped) + short}
}

func (t *processTree) owns(conn net.Conn) bool {
	if !seesItself() {
		return true
	}

	c, known := clientOf(conn)
	if !known {
		return true
	}
	if !c.isOpen() {
		return false
	}

	sockets := map[string]bool{c.link(): true}
	leader := process{pid: int(t.pid.Load())}
	removeHeld(sockets, []process{leader})
	if len(sockets) == 0 { // usually, the leader holds the socket
		return true
	}

	hidden := removeHeld(sockets, t.members())
	return len(sockets) == 0 || slices.ContainsFunc(hidden, func(p process) bool { return runsAs(p, c.uid) })
}

func runsAs(p process, uid string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return slices.Contains(strings.Fields(ids), uid)
		}
	}
	return false
}

// Client returns text about the program at the other end of conn, such as "curl (pid 123) of user 1000", or "". It
// searches all processes.
func Client(conn net.Conn) string {
	c, _ := clientOf(conn)
	if !c.isOpen() {
		return ""
	}
	return cmp.Or(holderOf(map[string]bool{c.link(): true}), "a program") + " of user " + c.uid
}
