package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUsed is what [Worker.Run] returns when it is called a second time.
var ErrUsed = errors.New("worker: Run was called before; a worker runs once, make another with New")

// StopError says what a stopped worker left to others. Each such message
// becomes visible again when its visibility timeout ends.
type StopError struct {
	// Aborted is how many deliveries were cut off in work.
	Aborted int
	// Undeleted is how many messages were done without a confirmed delete: they
	// may be attempted again.
	Undeleted int
}

// Error says both counts.
func (e *StopError) Error() string {
	return fmt.Sprintf("worker stopped with %d deliveries aborted and %d done messages not deleted; they return after "+
		"their visibility timeout",
		e.Aborted, e.Undeleted)
}

// Run works until a context is done. When receive is, the worker drains: it
// ends its receives, lets deliveries in work finish, confirms their deletes and
// gives back what was never posted. When work is, deliveries are cancelled and
// their messages left to their visibility timeout. Run returns nil after a
// clean drain, else a [*StopError]; [ErrUsed] when it ran before. Every
// goroutine that it started has ended by then.
func (w *Worker) Run(receive, work context.Context) error {
	now := time.Now()
	w.mu.Lock()
	if w.phase != notStarted {
		w.mu.Unlock()
		return ErrUsed
	}
	w.phase = running
	w.workCtx = work
	w.status.started = now
	w.clock.tick(now)
	if w.gate.shut[appDown] && !w.gate.fixed {
		w.probe(0)
	}
	w.tasks.Go(w.keeper)
	w.dispatch(now)
	w.poll(now)
	w.unlock()

	select {
	case <-receive.Done():
	case <-work.Done():
	}
	return w.stop(work)
}

// keeper makes a round in each rhythm, and earlier when something is due.
func (w *Worker) keeper() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.wake:
		}
		now := time.Now()
		w.mu.Lock()
		if w.phase == stopped {
			w.mu.Unlock()
			return
		}
		next := w.round(now)
		w.unlock()
		timer.Reset(next.Sub(now))
	}
}

// round does what is due now and returns when the next round is.
func (w *Worker) round(now time.Time) time.Time {
	w.observe(now)
	if !now.Before(w.nextTend) {
		w.nextTend = now.Add(w.rhythm)
		w.tend(now)
		w.status.measure(now)
		w.brake.calm(now)
	}
	w.unthrottle(now)
	w.watchIdle(now)
	cut := w.cancelPolls(now)
	w.flushReturning(now)
	w.flush(now)
	w.resume(now)
	w.dispatch(now)
	w.poll(now)
	w.checkDrained()
	w.sleepUntil = w.nextTend
	for _, t := range [...]time.Time{cut, w.deletes.next(), w.changes.next(), w.polls.notBefore, w.aside.next(),
		w.throttle.until, w.lookAt, w.askAt(), w.due(now), w.hopeDue(), w.restDue()} {
		if t.After(now) && t.Before(w.sleepUntil) {
			w.sleepUntil = t
		}
	}
	return w.sleepUntil
}

// wakeAt asks the keeper for a round at t, if it would sleep longer.
func (w *Worker) wakeAt(t time.Time) {
	if t.IsZero() || !t.Before(w.sleepUntil) {
		return
	}
	w.sleepUntil = t
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// observe looks at the clocks.
func (w *Worker) observe(now time.Time) {
	if gap, hidden := w.clock.tick(now); gap > 0 {
		w.stalled(gap, hidden)
	}
}

// stalled notes that the process stood still. After a suspend every message
// held is closer to the end of its visibility by what the monotonic clock does
// not know.
func (w *Worker) stalled(gap, hidden time.Duration) {
	for _, h := range w.held {
		h.receivedAt = h.receivedAt.Add(-hidden)
		h.arrivedAt = h.arrivedAt.Add(-hidden)
		h.hiddenFrom = h.hiddenFrom.Add(-hidden)
		h.hiddenUntil = h.hiddenUntil.Add(-hidden)
	}
	for _, b := range []*box{&w.deletes, &w.changes} {
		for i := range b.orders {
			b.orders[i].until = b.orders[i].until.Add(-hidden)
			b.orders[i].at = b.orders[i].at.Add(-hidden)
		}
	}
	w.status.counts.Stalls++
	if f := w.events.Stalled; f != nil {
		w.note(func() { f(Stalled{For: gap}) })
	}
}
