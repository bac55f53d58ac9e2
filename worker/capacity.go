package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// slot is one goroutine that delivers. It lives on when idle, parked until it
// gets its next message; a closed channel ends it.
type slot struct {
	work chan *held
}

// makeReady lines up a message that may be started.
func (w *Worker) makeReady(h *held, now time.Time) {
	h.stage, h.readyAt = ready, now
	w.ready.push(h)
}

// dispatch starts ready messages on free slots, all at once.
func (w *Worker) dispatch(now time.Time) {
	for w.inWork < w.limit && w.ready.len() > 0 {
		h := w.begin(now)
		if h == nil {
			return
		}
		if n := len(w.parked); n > 0 {
			s := w.parked[n-1]
			w.parked = w.parked[:n-1]
			s.work <- h
			continue
		}
		s := &slot{work: make(chan *held, 1)}
		w.tasks.Go(func() { w.run(s, h) })
	}
}

// begin takes the next ready message that is still good to start; nil when
// there is none.
func (w *Worker) begin(now time.Time) *held {
	w.trim(now)
	h := w.ready.first()
	if h == nil || !w.gate.open() || w.workCtx.Err() != nil {
		return nil
	}
	w.ready.pop()
	h.stage, h.startedAt = posting, now
	w.inWork++
	w.status.counts.Posted++
	return h
}

// run delivers one message after the other on a slot.
func (w *Worker) run(s *slot, h *held) {
	for h != nil {
		if h = w.attempt(s, h); h == nil {
			h = <-s.work
		}
	}
}

// attempt delivers one message and returns the next, nil when the slot is
// parked.
func (w *Worker) attempt(s *slot, h *held) *held {
	wait := h.startedAt.Round(0).Sub(h.msg.SentAt)
	if f := w.events.Started; f != nil {
		f(Started{ID: h.msg.ID, GroupID: h.msg.GroupID, ReceiveCount: h.msg.ReceiveCount, Attempt: h.attempt,
			Wait: wait, Held: h.startedAt.Sub(h.readyAt)})
	}
	res := w.deliver(&h.msg)
	now := time.Now()
	w.mu.Lock()
	settled := w.finish(h, res, now)
	next := w.next(s, now)
	w.unlock()
	if f := w.events.Settled; f != nil {
		settled.Wait = wait
		f(settled)
	}
	return next
}

// deliver calls the deliverer under a context of its own. A panic there fails
// this one message.
func (w *Worker) deliver(m *queue.Message) (res queue.Result) {
	ctx, cancel := context.WithCancel(w.workCtx)
	defer func() {
		cancel()
		if p := recover(); p != nil {
			res = queue.Result{Outcome: queue.Failed, Reason: "delivery panicked", Err: fmt.Errorf("delivery panicked: %v", p)}
		}
	}()
	return w.app.Deliver(ctx, m)
}

// next returns the slot's next message, or parks it.
func (w *Worker) next(s *slot, now time.Time) *held {
	var h *held
	if w.inWork < w.limit {
		h = w.begin(now)
	}
	switch {
	case h != nil:
	case w.phase == stopped:
		close(s.work)
	default:
		w.parked = append(w.parked, s)
	}
	w.dispatch(now)
	w.flush(now)
	w.poll(now)
	w.checkDrained()
	return h
}

// finish settles a delivery that ended now.
func (w *Worker) finish(h *held, res queue.Result, now time.Time) Settled {
	w.observe(now)
	w.inWork--
	if !h.lapsed && !now.Before(h.hiddenUntil) {
		w.lapse(h)
	}
	aborted := w.workCtx.Err() != nil && res.Outcome != queue.Done
	d := delivery{result: res, attempt: h.attempt, receivedAt: h.receivedAt, lapsed: h.lapsed || aborted, random: rand.Float64()}
	act := settle(&w.opts, d, now)
	settled := Settled{
		ID: h.msg.ID, GroupID: h.msg.GroupID, ReceiveCount: h.msg.ReceiveCount, Attempt: h.attempt,
		Outcome: res.Outcome, Status: res.Status, Reason: res.Reason, Err: res.Err,
		Duration: now.Sub(h.startedAt), Late: h.lapsed, Aborted: aborted,
	}
	switch act.verb {
	case remove:
		w.remove(h, now)
	case retry:
		settled.NextRetry = now.Add(act.after)
		w.delay(h, act.after, now)
	default:
		settled.NextRetry = h.hiddenUntil
		w.release(h, now)
	}
	w.status.settled(&settled)
	w.learn(h, res, aborted, now)
	w.flushReturning(now)
	return settled
}

// learn takes what a delivery says about the app.
func (w *Worker) learn(h *held, res queue.Result, aborted bool, now time.Time) {
	switch {
	case aborted:
	case res.Outcome == queue.Unreached:
		w.skip(h.msg.ID)
		w.unreached(res.Reason, h.startedAt, now)
	default:
		w.gate.downs = 0
		w.pace.served(now.Sub(h.startedAt), now)
		if w.limit < w.opts.Concurrency {
			w.limit++
		}
	}
}

// release lets go of a message whose visibility runs out by itself.
func (w *Worker) release(h *held, now time.Time) {
	w.disband(h, now)
	w.forget(h)
}

// forget drops a message from what is held.
func (w *Worker) forget(h *held) {
	h.stage = gone
	if w.held[h.msg.ID] == h {
		delete(w.held, h.msg.ID)
	}
}

// lapse notes that a receipt's visibility ran out.
func (w *Worker) lapse(h *held) {
	h.lapsed = true
	w.status.counts.Lapsed++
	if f := w.events.Lapsed; f != nil {
		event := Lapsed{ID: h.msg.ID, InWork: h.stage == posting}
		w.note(func() { f(event) })
	}
}
