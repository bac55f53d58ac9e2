package testpeer

import (
	"strconv"
	"testing"
)

func TestFreePortGivesNoneTwice(t *testing.T) {
	t.Parallel()
	previous, err := strconv.Atoi(FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	taken, err := listen(previous + 1)
	if err != nil {
		t.Skipf("port %d belongs to another program: %v", previous+1, err)
	}
	defer taken.Close()
	seen := map[int]bool{previous: true, previous + 1: true}
	for range 3 * blockSize {
		port, err := strconv.Atoi(FreePort(t))
		if err != nil || port < firstPort || port > lastPort || seen[port] {
			t.Errorf("port %d is out of range, taken, or given twice", port)
		}
		seen[port] = true
	}
}

func TestBlocksBelongToOneProcess(t *testing.T) {
	t.Parallel()
	port, err := strconv.Atoi(FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	block := port - (port-firstPort)%blockSize
	if l, err := listen(block); err == nil {
		l.Close()
		t.Errorf("another process can claim the ports from %d on, although this one uses port %d", block, port)
	}
}
