package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
)

// Thread is one operating system thread that lives from the first Do until Close:
// Linux sends a child its parent-death signal when the thread that created it ends,
// not when the process does, and Go ends threads as it likes. The zero value is ready;
// its methods are safe for concurrent use.
type Thread struct {
	mu    sync.Mutex
	calls chan func()
}

// Do runs f on the thread and returns when f has.
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
	defer runtime.UnlockOSThread() // or the thread would end with this goroutine
	for call := range calls {
		call()
	}
}

// Close lets the thread go; no child that was started on it may be alive.
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
	// Cmd is its command, which somebody else started.
	Cmd *exec.Cmd
	// err is what waiting for it said.
	err error
}

// PID is the number of the leader and of its group.
func (l *Leader) PID() int { return l.Cmd.Process.Pid }
