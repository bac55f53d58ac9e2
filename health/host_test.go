package health

import (
	"math"
	"runtime"
	"testing"
)

func TestShares(t *testing.T) {
	t.Parallel()
	first := cpuTimes{busy: 100, waiting: 10, idle: 890}
	for _, c := range []struct {
		name          string
		before, after cpuTimes
		busy, waiting float64 // negative for not known
	}{
		{"the first reading", cpuTimes{}, first, -1, -1},
		{"half busy", first, cpuTimes{busy: 105, waiting: 11, idle: 894}, 50, 10},
		{"idle", first, cpuTimes{busy: 100, waiting: 10, idle: 900}, 0, 0},
		{"all busy", first, cpuTimes{busy: 110, waiting: 10, idle: 890}, 100, 0},
		{"at once", first, first, -1, -1},
		{"counts that went back a little", first, cpuTimes{busy: 110, waiting: 9.99, idle: 890}, 100, 0},
		{"counts that went back", first, cpuTimes{busy: 90, waiting: 10, idle: 990}, -1, -1},
	} {
		busy, waiting := shares(c.before, c.after)
		if busy.Known != (c.busy >= 0) || waiting.Known != (c.waiting >= 0) ||
			busy.Known && (math.Abs(busy.Value-c.busy) > 0.01 || math.Abs(waiting.Value-c.waiting) > 0.01) {
			t.Errorf("%s: %+v, %+v", c.name, busy, waiting)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	h := NewHost(t.TempDir())
	h.Read()
	r := h.Read()
	if r.CPUs < 1 {
		t.Errorf("%+v", r)
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		if !r.DiskFree.Known || r.DiskFree.Value < 0 || r.DiskFree.Value > r.Disk {
			t.Errorf("the disk is %+v of %v", r.DiskFree, r.Disk)
		}
	}
	if runtime.GOOS == "linux" {
		if !r.Load.Known || !r.MemoryFree.Known || r.MemoryFree.Value <= 0 || r.MemoryFree.Value > r.Memory {
			t.Errorf("%+v", r)
		}
	}
	if r := NewHost("/no/such/folder").Read(); r.DiskFree.Known {
		t.Errorf("a folder that is not there: %+v", r)
	}
	if r := NewHost("").Read(); r.DiskFree.Known || r.Disk != 0 {
		t.Errorf("no folder: %+v", r)
	}
}
