package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// Thread is an operating system thread that exists from the first Do until Close. Linux sends the parent-death signal
// when the parent thread exits, and Go may end its own threads at any time. The zero value is ready to use. It is safe
// for concurrent use.
type Thread struct {
	mu    sync.Mutex
	calls chan func()
}

// Do calls f on the thread and waits for it.
func (t *Thread) Do(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = make(chan func())
		go callOnThread(t.calls)
	}
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

func callOnThread(calls <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // a locked thread would exit with its goroutine
	for call := range calls {
		call()
	}
}

// Close ends the thread. All children started on it must have exited.
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

// PID returns the leader's process ID, which is also the group's ID.
func (l *Leader) PID() int { return l.Cmd.Process.Pid }
