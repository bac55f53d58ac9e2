package worker

import (
	"context"
	"errors"
	"fmt"
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

// Run serves the queue until one of the contexts is done. It can be called only once.
//
// When receive is done, the worker lets deliveries finish, confirms their deletes and returns unposted messages. When
// work is done, it cancels deliveries and leaves their messages to their visibility timeouts. Run returns an error
// with the number of unfinished messages, if any, once all goroutines have exited.
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
		w.app.startProbing(0)
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
	w.checkClock(now)
	if !now.Before(w.nextCheck) {
		w.nextCheck = now.Add(w.core.clock.interval)
		w.checkAll(now)
	}

	w.app.endPauseIfOver(now)
	w.app.probeIfIdle(now)
	cancelNext := w.poller.cancelWaiting(now)
	w.settler.readyPostponed(now)
	w.proceed(now)

	w.core.sleepUntil = w.nextDue(cancelNext, now)
	return w.core.sleepUntil
}

func (w *Worker) checkAll(now time.Time) {
	w.visibility.checkHeld(now)
	w.settler.returnStale(now)
	w.core.stats.measureRate(w.core.counts.attempts(), now)
	if w.limiter != nil {
		w.limiter.endCalmPeriod(now)
	}
}

func (w *Worker) nextDue(cancelNext, now time.Time) time.Time {
	due := []time.Time{cancelNext, w.poller.notBefore, w.messages.postponed.nextReady(), w.app.pauses.until, w.slots.batchDue(now)}
	if l := w.limiter; l != nil {
		due = append(due, l.lookAt)
		if w.messages.ready.len() > 0 {
			due = append(due, l.shared.askAt)
		}
	}
	if l := w.lane; l != nil {
		due = append(due, l.nextExpiry(), l.pool.restUntil)
	}

	for _, b := range w.batchers() {
		due = append(due, b.next())
	}

	first := w.nextCheck
	for _, t := range due {
		if t.After(now) && t.Before(first) {
			first = t
		}
	}
	return first
}

func (w *Worker) stop(work context.Context) error {
	w.drain(work)
	w.core.endCalls()
	w.close()
	w.core.tasks.Wait()

	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	unfinished := stopError{
		Aborted:   int(w.core.counts.Aborted),
		Undeleted: w.deletes.unconfirmed + w.deletes.abandoned,
	}
	if unfinished != (stopError{}) {
		return &unfinished
	}
	return nil
}

// drain waits until everything is finished or, once work is done, for up to abortGrace.
func (w *Worker) drain(work context.Context) {
	w.enterPhase(draining)
	select {
	case <-w.drained:
		return
	case <-work.Done():
	}

	w.enterPhase(aborting)
	timer := time.NewTimer(abortGrace)
	defer timer.Stop()
	select {
	case <-w.drained:
	case <-timer.C:
	}
}

func (w *Worker) enterPhase(p phase) {
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

func (w *Worker) batchers() [3]*batcher {
	return [...]*batcher{&w.letters.pending, &w.deletes.pending, &w.visibility.pending}
}

func (w *Worker) checkDrained() {
	if w.core.inWork > 0 || len(w.poller.open) > 0 || len(w.visibility.returning) > 0 {
		return
	}
	for _, b := range w.batchers() {
		if !b.idle() {
			return
		}
	}

	select {
	case <-w.drained:
	default:
		close(w.drained)
	}
}

func (w *Worker) close() {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.phase = stopped
	for _, s := range w.slots.parked {
		close(s.work)
	}
	w.slots.parked = nil
	if w.lane != nil {
		w.lane.pool.leave(w.lane)
	}
	w.core.wakeNow()
}
