package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

var errUsed = errors.New("worker: Run was already called; create another worker with New")

type stopError struct {
	Aborted   int
	Undeleted int
}

func (e *stopError) Error() string {
	return fmt.Sprintf("worker stopped with %d deliveries aborted and %d done messages not deleted; they return after "+
		"their visibility timeout", e.Aborted, e.Undeleted)
}

const abortGrace = 2 * time.Second

// Run serves the queue until one of the contexts is done; it can be called only once. When receive is done, the worker
// lets deliveries finish, confirms their deletes and returns unposted messages. When work is done, it cancels
// deliveries and leaves their messages to their visibility timeouts. Run returns an error that counts unfinished
// messages, if any. All goroutines have exited when it returns.
func (w *Worker) Run(receive, work context.Context) error {
	now := time.Now()
	w.core.mu.Lock()
	if w.core.phase != notStarted {
		w.core.mu.Unlock()
		return errUsed
	}
	w.core.phase = running
	w.core.workCtx = work
	w.core.stats.started = now
	w.core.clock.tick(now)
	if w.gate.has(AppDown) && !w.app.readinessSet {
		w.app.probe(0)
	}
	w.core.tasks.Go(w.maintain)
	w.proceed(now)
	w.core.mu.Unlock()

	select {
	case <-receive.Done():
	case <-work.Done():
	}
	return w.stop(work)
}

func (w *Worker) maintain() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.core.wake:
		}
		now := time.Now()
		w.core.mu.Lock()
		if w.core.phase == stopped {
			w.core.mu.Unlock()
			return
		}
		next := w.round(now)
		w.core.mu.Unlock()
		timer.Reset(next.Sub(now))
	}
}

func (w *Worker) round(now time.Time) time.Time {
	w.observe(now)
	if !now.Before(w.nextRound) {
		w.nextRound = now.Add(w.core.clock.rhythm)
		w.visibility.round(now)
		w.settler.returnStale(now)
		w.core.stats.measure(now)
		if w.limiter != nil {
			w.limiter.calm(now)
		}
	}

	if w.gate.has(Throttling) && !now.Before(w.app.pauses.until) {
		w.core.limit = 1 // deliveries resume one at a time
		w.gate.lift(Throttling)
	}
	w.app.watchIdle(now)
	cancelAt := w.poller.cancelWaiting(now)
	w.settler.resume(now)
	w.proceed(now)

	w.core.sleepUntil = w.nextRound
	due := []time.Time{cancelAt, w.letters.pending.next(), w.deletes.pending.next(), w.visibility.pending.next(),
		w.poller.notBefore, w.messages.deferred.next(), w.app.pauses.until, w.slots.batchDue(now)}
	if l := w.limiter; l != nil {
		due = append(due, l.lookAt)
		if w.messages.ready.len() > 0 {
			due = append(due, l.shared.askAt)
		}
	}
	if l := w.lane; l != nil {
		due = append(due, l.expectedDue(), l.pool.restUntil)
	}
	for _, t := range due {
		if t.After(now) && t.Before(w.core.sleepUntil) {
			w.core.sleepUntil = t
		}
	}
	return w.core.sleepUntil
}

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

	w.core.endCalls()
	w.close()
	w.core.tasks.Wait()

	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	left := stopError{Aborted: int(w.core.stats.counts.Aborted), Undeleted: w.messages.unconfirmed + w.deletes.abandoned}
	if left != (stopError{}) {
		return &left
	}
	return nil
}

func (w *Worker) enter(p phase) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	w.core.phase = p
	w.app.stopProbing()
	w.gate.close(Draining, "the worker is stopping", now)
	for _, b := range w.batchers() {
		b.due = now // send lingering entries
	}
	w.proceed(now)
}

func (w *Worker) batchers() []*batcher {
	return []*batcher{&w.letters.pending, &w.deletes.pending, &w.visibility.pending}
}

func (w *Worker) checkDrained() {
	isBusy := func(b *batcher) bool { return !b.idle() }
	if w.core.inWork > 0 || len(w.poller.open) > 0 || len(w.visibility.returning) > 0 ||
		slices.ContainsFunc(w.batchers(), isBusy) {
		return
	}
	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
}

func (w *Worker) close() {
	w.core.mu.Lock()
	w.core.phase = stopped
	for _, s := range w.slots.parked {
		close(s.work)
	}
	w.slots.parked = nil
	if w.lane != nil {
		w.lane.pool.leave(w.lane)
	}
	w.core.mu.Unlock()
	select {
	case w.core.wake <- struct{}{}:
	default:
	}
}
