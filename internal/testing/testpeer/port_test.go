package testpeer

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePortGivesNoneTwice(t *testing.T) {
	t.Parallel()
	last, err := strconv.Atoi(FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	taken := strconv.Itoa(first + (last+1-first)%count)
	l, err := net.Listen("tcp", "127.0.0.1:"+taken)
	if err != nil {
		t.Skipf("port %s is somebody's: %v", taken, err)
	}
	defer l.Close()
	seen := map[string]bool{strconv.Itoa(last): true, taken: true}
	for range 100 {
		port := FreePort(t)
		if n, err := strconv.Atoi(port); err != nil || n < first || n >= first+count || seen[port] {
			t.Errorf("port %s is out of range, taken, or given twice", port)
		}
		seen[port] = true
	}
}
