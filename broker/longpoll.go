package broker

import "slices"

// line is the line of receives that wait for a message, first come first
// woken. The queue's lock guards it.
type line struct{ waiting []*waiter }

// waiter is one waiting receive.
type waiter struct{ woken chan struct{} }

// join puts a receive at the end of the line.
func (l *line) join() *waiter {
	w := &waiter{woken: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w
}

// leave takes a receive out that no longer waits. One that was woken but goes
// without looking passes it on to the next.
func (l *line) leave(w *waiter) {
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.wake(1)
}

// wake wakes up to n receives: one for each message is enough.
func (l *line) wake(n int) {
	n = min(n, len(l.waiting))
	for _, w := range l.waiting[:n] {
		close(w.woken)
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

func (l *line) wakeAll() { l.wake(len(l.waiting)) }
