package supervisor

import "runtime"

// launcher starts children from one operating system thread that lives until
// close: Linux sends the parent-death signal when the thread that created the
// child ends, not when the process does, and Go ends threads as it likes.
type launcher struct {
	calls chan func()
}

func newLauncher() *launcher {
	l := &launcher{calls: make(chan func())}
	go l.loop()
	return l
}

func (l *launcher) loop() {
	runtime.LockOSThread()
	// Unlocked again, or the thread would end with this goroutine.
	defer runtime.UnlockOSThread()
	for call := range l.calls {
		call()
	}
}

// do runs f on the thread and returns when f has.
func (l *launcher) do(f func()) {
	done := make(chan struct{})
	l.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close lets the thread go; no child may be alive and no do may follow.
func (l *launcher) close() { close(l.calls) }
