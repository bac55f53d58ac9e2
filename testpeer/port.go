package testpeer

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

const first, count = 10_000, 10_000

// begin is anywhere, so that the tests of two packages, which run at once, seldom
// meet; looked counts the ports that were looked at.
var (
	begin  = rand.Int64N(count)
	looked atomic.Int64
)

// FreePort returns a port, 10000 to 19999, on which nobody listens. The range is neither
// one from which systems give ports to connections nor that of package supervisor for
// copies of an app, and none is given twice in a process.
func FreePort(t testing.TB) string {
	t.Helper()
	for range count {
		port := strconv.FormatInt(first+(begin+looked.Add(1))%count, 10)
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("each of %d ports from %d on is in use", count, first)
	return ""
}
