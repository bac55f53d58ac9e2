package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	h := newHost()
	p := self("w", "idle", w)
	var c *child
	var err error
	task := fmt.Sprintf("/proc/self/task/%d", onThreadThatEnds(func() { c, err = h.start(&p, nil) }))
	if err != nil {
		t.Fatal(err)
	}
	g := w.next()
	for {
		if _, err := os.Stat(task); err != nil {
			break
		}
		runtime.Gosched()
	}
	g.answers()
	c.group.signal(syscall.SIGKILL)
	<-c.exited
	if exit := c.group.reap(); exit.Signal != "SIGKILL" {
		t.Errorf("it ended with %s", exit)
	}
	h.close()
}

func TestParentDeathSignalWorksWithoutTheGuard(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	parent := exec.Command(os.Args[0])
	parent.Env = childEnv("unguarded", w.address())
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	one, two := w.next(), w.next()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	one.awaitGone()
	two.awaitGone()
	if err := parent.Wait(); err == nil {
		t.Error("the supervisor was not killed")
	}
}

func onThreadThatEnds(f func()) int {
	thread := make(chan int)
	go func() {
		// The main thread would not end with its locked goroutine.
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			thread <- onThreadThatEnds(f)
			return
		}
		f()
		thread <- syscall.Gettid()
	}()
	return <-thread
}
