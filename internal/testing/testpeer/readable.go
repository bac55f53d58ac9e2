package testpeer

import (
	"net"
	"syscall"
	"testing"
)

// AwaitReadable waits until c has data to read or is closed by its peer, and reads nothing. The peer's write or
// close may return before that.
func AwaitReadable(t testing.TB, c net.Conn) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	if err != nil {
		t.Fatal(err)
	}
}
