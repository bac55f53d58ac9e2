package testpeer

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// These ports are below the ephemeral ports and outside package supervisor's range. Browsers refuse some ports below
// 11000.
const (
	firstPort = 11_000
	lastPort  = 19_999
	blockSize = 100
)

// A process claims a block by listening on its first port until it ends.
var ports struct {
	sync.Mutex
	next, end int
	claims    []net.Listener // kept, because the garbage collector would close them
}

// FreePort returns a free port between 11000 and 19999. A process gets each port only once, and no other process that
// calls FreePort gets it while this one runs.
func FreePort(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for {
		if ports.next == ports.end {
			claimBlock(t)
		}

		port := ports.next
		ports.next++
		if l, err := listen(port); err == nil {
			l.Close()
			return strconv.Itoa(port)
		}
	}
}

func claimBlock(t testing.TB) {
	t.Helper()
	blocks := (lastPort + 1 - firstPort) / blockSize
	for _, block := range rand.Perm(blocks) {
		begin := firstPort + block*blockSize
		if claim, err := listen(begin); err == nil {
			ports.next = begin + 1
			ports.end = begin + blockSize
			ports.claims = append(ports.claims, claim)
			return
		}
	}
	t.Fatalf("each of the %d blocks of ports from %d to %d is in use", blocks, firstPort, lastPort)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
}

// BoundSocket binds a socket to a free port on 127.0.0.1 until the end of the test, without listening: the port refuses
// connections. Child processes do not inherit the socket.
func BoundSocket(t testing.TB) (fd, port int) {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })

	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, bound.(*syscall.SockaddrInet4).Port
}
