package procgroup

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

func TestThreadIsKept(t *testing.T) {
	t.Parallel()
	var th Thread
	defer th.Close()
	var own int
	th.Do(func() { own = syscall.Gettid() })
	for range 100 {
		if onThreadThatEnds() == own {
			t.Fatal("another goroutine ran on the thread and ended it")
		}
	}
	th.Do(func() {
		if tid := syscall.Gettid(); tid != own {
			t.Errorf("it moved from thread %d to %d", own, tid)
		}
	})
}

func onThreadThatEnds() int {
	thread := make(chan int)
	go func() {
		// The main thread would not end with its locked goroutine.
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			thread <- onThreadThatEnds()
			return
		}
		thread <- syscall.Gettid()
	}()
	return <-thread
}
