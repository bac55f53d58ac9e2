package supervisor

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestUsageIncludesAllDescendants(t *testing.T) {
	t.Parallel()
	before := []process{{pid: 10, ppid: 1, pgrp: 10, state: 'S', start: 1, ticks: 100, memory: 1000},
		{pid: 11, ppid: 10, pgrp: 10, state: 'S', start: 2, ticks: 50, memory: 500},
		{pid: 20, ppid: 1, pgrp: 20, state: 'S', start: 3, ticks: 7, memory: 70}}
	usage, ticks := measure(before, []int{10, 20, 30}, nil, time.Hour)
	if len(usage) != 2 || usage[10] != (Usage{1500, 0}) || usage[20] != (Usage{70, 0}) {
		t.Errorf("the first reading is %v", usage)
	}
	after := []process{{pid: 10, ppid: 1, pgrp: 10, state: 'S', start: 1, ticks: 150, memory: 1000},
		{pid: 11, ppid: 10, pgrp: 10, state: 'S', start: 9, ticks: 20, memory: 100},
		{pid: 12, ppid: 11, pgrp: 12, state: 'S', start: 10, ticks: 30, memory: 10},
		{pid: 20, ppid: 1, pgrp: 20, state: 'S', start: 3, ticks: 7, memory: 70}}
	usage, _ = measure(after, []int{10, 20}, ticks, 2*time.Second)
	if usage[10] != (Usage{1110, 50}) || usage[20] != (Usage{70, 0}) {
		t.Errorf("two seconds later: %v", usage)
	}
}

func TestMeterReadsThisProcess(t *testing.T) {
	t.Parallel()
	var m Meter
	now, self := time.Now(), os.Getpid()
	used := m.Read([]int{self}, now)[self]
	if used.Memory < 1<<20 || used.CPU != 0 {
		t.Errorf("the first reading is %+v", used)
	}
	for until := cpuTime(t) + 100*time.Millisecond; cpuTime(t) < until; {
		_ = bytes.Repeat([]byte{1}, 1<<16)
	}
	if again := m.Read([]int{self}, now.Add(time.Second))[self]; again != used {
		t.Errorf("read again after a second: %+v", again)
	}
	if later := m.Read([]int{self}, now.Add(3*time.Second))[self]; later.CPU < 1 {
		t.Errorf("after work: %+v", later)
	}
	if gone := m.Read([]int{1 << 30}, now.Add(6*time.Second)); len(gone) != 0 {
		t.Errorf("a process that is not there: %v", gone)
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
