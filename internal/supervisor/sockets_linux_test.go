package supervisor

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFindClient(t *testing.T) {
	t.Parallel()
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1001        0 22 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1F91 01 00000000:00000000 00:00000000 00000000  1002        0 33 1 0000000000000000 20 4 30 10 -1
   3: 0200007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 44 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1004        0 55 1 0000000000000000 20 4 30 10 -1
   5: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1005        0 66 1 0
   6: 0100007F:C352 0100007F:1F90 06 00000000:00000000 03:00000F00 00000000     0        0 0 3 0000000000000000
   7: 0100007F:C353 0100007F:1F90 01
`
	for from, want := range map[string]client{
		"127.0.0.1:50000": {"55", "1004"}, "127.0.0.1:50001": {"66", "1005"}, "127.0.0.2:50000": {"44", "1003"},
		"127.0.0.1:50002": {"0", "0"}, "127.0.0.1:50003": {}, "127.0.0.1:50004": {},
	} {
		got := findClient(parseSockets(text, ""), netip.MustParseAddrPort(from), netip.MustParseAddrPort("127.0.0.1:8080"))
		if got != want {
			t.Errorf("client at %s: %+v, want %+v", from, got, want)
		}
	}
}

func TestClientOfAConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	own, other := newMarkedTree(), newMarkedTree()
	own.born(os.Getpid())
	other.born(bystander(t).pid)
	port := listener.Addr().(*net.TCPAddr).Port
	mapped := &unix.SockaddrInet6{Port: port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	// A process that another test is starting holds a copy of each socket until its exec.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for address, to := range map[string]unix.Sockaddr{"IPv4": &unix.SockaddrInet4{Port: port,
		Addr: [4]byte{127, 0, 0, 1}}, "both families": mapped} {
		family := map[bool]int{false: unix.AF_INET, true: unix.AF_INET6}[to == mapped]
		theirs, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == unix.EAFNOSUPPORT {
			continue
		}
		if err := unix.Connect(theirs, to); err != nil {
			t.Fatal(err)
		}
		ours, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		from, to := netip.MustParseAddrPort(ours.RemoteAddr().String()), netip.MustParseAddrPort(ours.LocalAddr().String())
		got, _ := clientOf(ours)
		if fromKernel, ok := askKernel(from, to); ok && fromKernel != got || got.uid != strconv.Itoa(os.Geteuid()) {
			t.Errorf("%s: %+v, the kernel says %+v, %t", address, got, fromKernel, ok)
		}
		if text, err := os.ReadFile("/proc/net/tcp"); err == nil {
			if fromText := findClient(parseSockets(string(text), ""), from, to); fromText != (client{}) && fromText != got {
				t.Errorf("%s: %+v, /proc says %+v", address, got, fromText)
			}
		}
		if !own.owns(ours) || other.owns(ours) {
			t.Errorf("%s: own %t, of another %t", address, own.owns(ours), other.owns(ours))
		}
		if name := Client(ours); !strings.Contains(name, "(pid "+strconv.Itoa(os.Getpid())+") of user "+got.uid) {
			t.Errorf("%s: named %q", address, name)
		}
		unix.Close(theirs)
		if own.owns(ours) || Client(ours) != "" {
			t.Errorf("%s: after the end: own %t, named %q", address, own.owns(ours), Client(ours))
		}
		ours.Close()
	}
}
