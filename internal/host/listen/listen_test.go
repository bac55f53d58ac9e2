package listen

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketIsForItsOwnerAndGroup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Unix(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a second time: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestSocketThatNobodyServesIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	l, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestFilesAreNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Unix(path); err == nil {
		t.Error("a file is replaced by a socket")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "data" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestMergedListeners(t *testing.T) {
	t.Parallel()
	first, err := TCP("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Unix(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	m := Merge([]net.Listener{first, second})
	if m.Addr() != first.Addr() {
		t.Errorf("address %v", m.Addr())
	}
	for _, l := range []net.Listener{first, second, first} {
		address := l.Addr()
		if s, ok := l.(socketListener); ok {
			address = &net.UnixAddr{Name: s.path, Net: "unix"}
		}
		c, err := net.Dial(address.Network(), address.String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := m.Accept()
		if err != nil || accepted.LocalAddr().Network() != address.Network() {
			t.Fatalf("accepted %v, %v", accepted, err)
		}
		accepted.Close()
		c.Close()
	}
	ended := make(chan error)
	go func() {
		_, err := m.Accept()
		ended <- err
	}()
	m.Close()
	m.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if c, err := net.Dial("tcp", first.Addr().String()); err == nil {
		c.Close()
		t.Error("the first listener is open")
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	l, err := TCP("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := TCP(l.Addr().String(), true); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v", err)
	}
	if _, err := TCP("0.0.0.0:0", true); !errors.Is(err, ErrReachable) {
		t.Errorf("an address of every network: %v", err)
	}
}

func TestAddressAtWhichThisMachineReachesAListener(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bound, want string }{
		{"127.0.0.1:9324", "127.0.0.1:9324"},
		{"[::1]:9324", "[::1]:9324"},
		{"[::ffff:127.0.0.1]:9324", "127.0.0.1:9324"},
		{"0.0.0.0:9324", "127.0.0.1:9324"},
		{"[::]:9324", "127.0.0.1:9324"},
		{"192.0.2.7:9324", "192.0.2.7:9324"},
	} {
		l := boundListener{addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.bound))}
		if got := Local(l); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.bound, got, tt.want)
		}
	}
}

func TestFirstAddressThatOtherMachinesMayReach(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		addresses []string
		want      string
	}{
		"behind the loopback":         {[]string{"127.0.0.1/8", "::1/128", "10.77.0.11/24"}, "10.77.0.11"},
		"the first of two":            {[]string{"10.77.0.11/24", "192.168.1.2/16"}, "10.77.0.11"},
		"IPv6, behind the link-local": {[]string{"169.254.1.1/16", "fe80::1/64", "2001:db8::7/64"}, "2001:db8::7"},
		"none":                        {[]string{"127.0.0.1/8", "fe80::1/64"}, "invalid IP"},
	} {
		var addresses []net.Addr
		for _, a := range tt.addresses {
			ip, network, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		if got := firstGlobalUnicast(addresses); got.String() != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

type boundListener struct {
	net.Listener
	addr net.Addr
}

func (l boundListener) Addr() net.Addr { return l.addr }

func TestErrorsNameTheAddress(t *testing.T) {
	t.Parallel()
	if _, err := TCP("127.0.0.1:port", true); err == nil || !strings.HasPrefix(err.Error(), "127.0.0.1:port: ") ||
		errors.Is(err, ErrInUse) || errors.Is(err, ErrReachable) {
		t.Errorf("no such port: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "missing", "s")
	if _, err := Unix(missing); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "unix:"+missing+": ") {
		t.Errorf("no such folder: %v", err)
	}
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("s", 200))
	if _, err := Unix(long); err == nil || !strings.HasPrefix(err.Error(), "unix:"+long+": ") {
		t.Errorf("a path that a socket cannot have: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestMergedListenerOfOneIsThatOne(t *testing.T) {
	t.Parallel()
	l, err := TCP("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if m := Merge([]net.Listener{l}); m != l {
		t.Errorf("got %v", m)
	}
}
