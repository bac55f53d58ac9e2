package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errUsed is what [Worker.Run] returns when it is called a second time.
var errUsed = errors.New("worker: Run was called before; a worker runs once, make another with New")

// stopError says what a stopped worker left to others. Each such message
// becomes visible again when its visibility timeout ends.
type stopError struct {
	// Aborted is how many deliveries were cut off in work.
	Aborted int
	// Undeleted is how many messages were done without a confirmed delete: they
	// may be attempted again.
	Undeleted int
}

// Error says both counts.
func (e *stopError) Error() string {
	return fmt.Sprintf("worker stopped with %d deliveries aborted and %d done messages not deleted; they return after "+
		"their visibility timeout", e.Aborted, e.Undeleted)
}

// abortGrace is how long an aborted worker still tries to delete what was
// answered and to return what was not posted.
const abortGrace = 2 * time.Second

// Run works until a context is done. When receive is, the worker drains: it
// ends its receives, lets deliveries in work finish, confirms their deletes and
// returns what was never posted. When work is, deliveries are cancelled and
// their messages left to their visibility timeout. Run returns nil after a
// clean drain, else an error that counts what is left to others; it fails when it ran before. Every
// goroutine that it started has ended by then.
func (w *Worker) Run(receive, work context.Context) error {
	now := time.Now()
	w.mu.Lock()
	if w.phase != notStarted {
		w.mu.Unlock()
		return errUsed
	}
	w.phase, w.workCtx, w.stats.started = running, work, now
	w.clock.tick(now)
	if w.gate.has(AppDown) && !w.app.fixed {
		w.app.probe(0)
	}
	w.tasks.Go(w.maintain)
	w.proceed(now)
	w.mu.Unlock()

	select {
	case <-receive.Done():
	case <-work.Done():
	}
	return w.stop(work)
}

// maintain makes a round in each rhythm, and earlier when something is due.
func (w *Worker) maintain() {
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
		w.mu.Unlock()
		timer.Reset(next.Sub(now))
	}
}

// round does what is due now and returns when the next round is.
func (w *Worker) round(now time.Time) time.Time {
	w.observe(now)
	if !now.Before(w.nextRound) {
		w.nextRound = now.Add(w.clock.rhythm)
		w.visibility.round(now)
		w.settler.returnStale(now)
		w.stats.measure(now)
		if w.limiter != nil {
			w.limiter.calm(now)
		}
	}
	if w.gate.has(Throttling) && !now.Before(w.app.pauses.until) {
		w.limit = 1 // one delivery at a time at first
		w.gate.lift(Throttling, now)
	}
	w.app.watchIdle(now)
	cancelAt := w.poller.cancelWaiting(now)
	w.settler.resume(now)
	w.proceed(now)
	w.sleepUntil = w.nextRound
	due := []time.Time{cancelAt, w.letters.next(), w.deletes.deletes.next(), w.visibility.changes.next(),
		w.poller.notBefore, w.messages.deferred.next(), w.app.pauses.until, w.slots.batchDue(now)}
	if l := w.limiter; l != nil {
		due = append(due, l.lookAt)
		if w.messages.ready.len() > 0 {
			due = append(due, l.askAt)
		}
	}
	if l := w.lane; l != nil {
		due = append(due, l.expectedDue(), l.pool.restUntil)
	}
	for _, t := range due {
		if t.After(now) && t.Before(w.sleepUntil) {
			w.sleepUntil = t
		}
	}
	return w.sleepUntil
}

// stalled notes that the process stood still. After a suspend every message
// held is closer to the end of its visibility by what the monotonic clock does
// not know.
func (w *Worker) stalled(gap, hidden time.Duration) {
	for _, h := range w.messages.held {
		h.shift(hidden)
	}
	w.deletes.deletes.shift(hidden)
	w.visibility.changes.shift(hidden)
	w.stats.counts.Stalls++
	notify(w.core, w.events.Stalled, Stalled{For: gap})
}

// stop ends a run: it drains, until work is done.
func (w *Worker) stop(work context.Context) error {
	w.enter(draining)
	select {
	case <-w.drained:
	case <-work.Done():
		w.enter(aborting)
		timer := time.NewTimer(abortGrace)
		defer timer.Stop()
		select {
		case <-w.drained:
		case <-timer.C:
		}
	}
	w.endCalls()
	w.close()
	w.tasks.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	left := stopError{Aborted: int(w.stats.counts.Aborted), Undeleted: w.messages.unconfirmed + w.deletes.abandoned}
	if left != (stopError{}) {
		return &left
	}
	return nil
}

// enter goes on to the next phase of the end.
func (w *Worker) enter(p phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.phase = p
	w.app.stopProbing()
	w.gate.close(Draining, "the worker is stopping", now, now)
	w.deletes.deletes.due, w.visibility.changes.due = now, now // nothing lingers any more
	if w.letters != nil {
		w.letters.sends.due = now
	}
	w.wakeAt(w.poller.cancelWaiting(now))
	w.proceed(now)
}

// checkDrained ends the drain when nothing is open, in work or unsaid.
func (w *Worker) checkDrained() {
	if w.inWork > 0 || len(w.poller.open) > 0 || !w.letters.idle() || !w.deletes.deletes.idle() ||
		!w.visibility.changes.idle() || len(w.visibility.returning) > 0 {
		return
	}
	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
}

// close ends the idle goroutines. Deliveries still in work end by themselves:
// their slots find no next message.
func (w *Worker) close() {
	w.mu.Lock()
	w.phase = stopped
	for _, s := range w.slots.parked {
		close(s.work)
	}
	w.slots.parked = nil
	if w.lane != nil {
		w.lane.pool.leave(w.lane)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
