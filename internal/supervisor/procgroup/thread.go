package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// Thread is an operating system thread that lives from the first Do until Close. Linux sends the parent-death signal
// when the parent thread exits, not the parent process, and Go may end threads at any time. The zero value is ready
// to use. It is safe for concurrent use.
type Thread struct {
	mu    sync.Mutex
	calls chan func()
}

// Do runs f on the thread and waits for it to return.
func (t *Thread) Do(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = make(chan func())
		go loop(t.calls)
	}
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

func loop(calls <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // otherwise the thread would exit with this goroutine
	for call := range calls {
		call()
	}
}

// Close releases the thread. No child started on it may be alive.
func (t *Thread) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls != nil {
		close(t.calls)
		t.calls = nil
	}
}

// Leader is the first process of a group, started with [Attributes].
type Leader struct {
	Cmd *exec.Cmd
	err error
}

// PID returns the number of the leader and of its group.
func (l *Leader) PID() int { return l.Cmd.Process.Pid }
