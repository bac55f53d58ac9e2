package health

import (
	"math"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestBusyShare(t *testing.T) {
	t.Parallel()
	first := cpuTimes{busy: 100, idle: 900}
	for _, c := range []struct {
		name          string
		before, after cpuTimes
		want          float64
	}{
		{"the first reading", cpuTimes{}, first, -1},
		{"half busy", first, cpuTimes{busy: 105, idle: 905}, 50},
		{"idle", first, cpuTimes{busy: 100, idle: 910}, 0},
		{"all busy", first, cpuTimes{busy: 110, idle: 900}, 100},
		{"at once", first, first, -1},
		{"counts that went back a little", first, cpuTimes{busy: 110, idle: 899.99}, 100},
		{"the shortest time between", cpuTimes{busy: 1}, cpuTimes{busy: 1, idle: 0.05}, 0},
		{"idle time that went back by the most that is ignored", cpuTimes{busy: 1, idle: 0.05}, cpuTimes{busy: 11}, 100},
		{"counts that went back", first, cpuTimes{busy: 90, idle: 1000}, -1},
	} {
		got := busyPercent(c.before, c.after)
		if got.Known != (c.want >= 0) || got.Known && math.Abs(got.Value-c.want) > 0.01 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestMountOfAPath(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is a mount on Linux")
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for path, want := range map[string]string{"/": "/", "/proc": "/proc", "/proc/self/task": "/proc", missing: missing} {
		if got := mountOf(path); got != want {
			t.Errorf("the mount of %s is %s, want %s", path, got, want)
		}
	}
}

func TestCPUTimesAreAddedUp(t *testing.T) {
	t.Parallel()
	got := cpuTimesOf(procfs.CPUStat{User: 1, Nice: 2, System: 4, IRQ: 8, SoftIRQ: 16, Steal: 32,
		Idle: 64, Iowait: 128})
	if want := (cpuTimes{busy: 63, idle: 192}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
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
		if !r.DiskFree.Known || r.DiskFree.Value < 1<<20 || r.DiskFree.Value > r.Disk {
			t.Errorf("the disk is %+v of %v", r.DiskFree, r.Disk)
		}
	}
	if runtime.GOOS == "linux" {
		if !r.Load.Known || !r.MemoryFree.Known || r.MemoryFree.Value <= 0 || r.MemoryFree.Value > r.Memory {
			t.Errorf("%+v", r)
		}
		interval := time.NewTicker(100 * time.Millisecond)
		defer interval.Stop()
		for start := time.Now(); !r.CPU.Known; r = h.Read() {
			if time.Since(start) > 10*time.Second {
				t.Fatal("the use of the CPU is not known after 10 s")
			}
			<-interval.C
		}
	}
	if r := NewHost("/no/such/folder").Read(); r.DiskFree.Known {
		t.Errorf("a folder that is not there: %+v", r)
	}
	if r := NewHost("").Read(); r.DiskFree.Known || r.Disk != 0 {
		t.Errorf("no folder: %+v", r)
	}
}
