package worker

import (
	"context"
	"time"
)

// abortGrace is how long an aborted worker still tries to delete what was
// answered and to give back what was not posted.
const abortGrace = 2 * time.Second

// stop ends a run: it drains, until work is done.
func (w *Worker) stop(work context.Context) error {
	w.enter(draining)
	select {
	case <-w.drained:
	case <-work.Done():
		w.enter(aborting)
		w.awaitDrained(abortGrace)
	}
	w.endCall()
	w.close()
	w.tasks.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	left := StopError{Aborted: int(w.status.counts.Aborted), Undeleted: w.unconfirmed + w.status.undeleted}
	if left != (StopError{}) {
		return &left
	}
	return nil
}

// enter goes on to the next phase of the end.
func (w *Worker) enter(p phase) {
	now := time.Now()
	w.mu.Lock()
	w.phase = p
	if w.gate.stopProbe != nil {
		w.gate.stopProbe()
		w.gate.stopProbe = nil
	}
	w.shut(drain, "the worker is stopping", now)
	w.yield(now)
	w.deletes.due, w.changes.due = now, now // nothing lingers any more
	w.wakeAt(w.cancelPolls(now))
	w.flushReturning(now)
	w.flush(now)
	w.checkDrained()
	w.unlock()
}

// checkDrained ends the drain when nothing is open, in work or unsaid.
func (w *Worker) checkDrained() {
	if w.phase != draining && w.phase != aborting {
		return
	}
	if w.inWork > 0 || len(w.polls.open) > 0 || len(w.returning) > 0 || !w.deletes.idle() || !w.changes.idle() {
		return
	}
	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
}

// awaitDrained waits until the drain is over, but no longer than limit.
func (w *Worker) awaitDrained(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.drained:
	case <-timer.C:
	}
}

// close ends the idle goroutines. Deliveries still in work end by themselves:
// their slots find no next message.
func (w *Worker) close() {
	w.mu.Lock()
	w.phase = stopped
	for _, s := range w.parked {
		close(s.work)
	}
	w.parked = nil
	if w.pool != nil {
		w.pool.leave(w)
	}
	w.unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
