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
	if w.batch.Window > 0 {
		w.wakeAt(w.windowEnd(h))
	}
}

// dispatch starts ready messages on free slots, all at once.
func (w *Worker) dispatch(now time.Time) { w.startAll(nil, now) }

// startAll starts whatever may begin now, also of the other workers of the
// pool. The first one of w is for slot s, if that is not nil, and is returned.
func (w *Worker) startAll(s *slot, now time.Time) (own *held) {
	for {
		of, h := w, (*held)(nil)
		if w.pool != nil {
			of, h = w.pool.take(now)
		} else if w.inWork < w.limit && w.ready.len() > 0 {
			h = w.begin(now)
		}
		switch {
		case h == nil:
			return own
		case of == w && s != nil:
			own, s = h, nil
		default:
			of.launch(h)
		}
	}
}

// launch starts a delivery on an idle slot or a new one.
func (w *Worker) launch(h *held) {
	if n := len(w.parked); n > 0 {
		s := w.parked[n-1]
		w.parked = w.parked[:n-1]
		s.work <- h
		return
	}
	s := &slot{work: make(chan *held, 1)}
	w.tasks.Go(func() { w.run(s, h) })
}

// begin takes the next ready message that is still good to start, or the next
// batch of them; nil when there is none or the limiter refuses.
func (w *Worker) begin(now time.Time) *held {
	w.trim(now)
	h := w.ready.first()
	if h == nil || !w.gate.open() || w.workCtx.Err() != nil {
		return nil
	}
	if w.batch.Size > 1 {
		if h = w.beginBatch(now); h == nil {
			return nil
		}
	} else {
		h.permit = w.brake.acquire(now, 1)
		if h.permit.messages == 0 {
			w.wakeAt(w.askAt())
			return nil
		}
		w.ready.pop()
		w.posted(h, now)
	}
	w.occupy()
	return h
}

// posted notes that a message is about to be handed over.
func (w *Worker) posted(h *held, now time.Time) {
	h.stage, h.startedAt, h.last = posting, now, w.last(h)
	h.waited = now.Round(0).Sub(h.msg.SentAt)
	w.status.counts.Posted++
	if !h.postponed.IsZero() {
		return // it had its turn when it was first asked for
	}
	w.turns.add(now, h.waited)
	if w.pool != nil {
		w.pool.turns.add(now, h.waited)
	}
}

// occupy and vacate count the slots in use.
func (w *Worker) occupy() {
	w.inWork++
	if w.pool != nil {
		w.pool.inWork++
	}
}

func (w *Worker) vacate() {
	w.inWork--
	if w.pool != nil {
		w.pool.inWork--
	}
}

// run delivers one message, or batch, after the other on a slot.
func (w *Worker) run(s *slot, h *held) {
	for h != nil {
		if h.mates != nil {
			h = w.attemptBatch(s, h.mates)
		} else {
			h = w.attempt(s, h)
		}
		if h == nil {
			h = <-s.work
		}
	}
}

// attempt delivers one message and returns the next, nil when the slot is
// parked.
func (w *Worker) attempt(s *slot, h *held) *held {
	w.started(h, 1)
	res := w.deliver(&h.msg)
	now := time.Now()
	w.mu.Lock()
	settled, tried := w.finish(h, res, now)
	next := w.next(s, now)
	w.unlock()
	if f := w.events.Settled; f != nil && tried {
		f(settled)
	}
	return next
}

// started tells that a delivery of a number of messages begins with h among them.
func (w *Worker) started(h *held, batch int) {
	if f := w.events.Started; f != nil {
		f(Started{ID: h.msg.ID, GroupID: h.msg.GroupID, ReceiveCount: h.msg.ReceiveCount, Attempt: h.attempt,
			Batch: batch, Wait: h.waited, Held: h.startedAt.Sub(h.readyAt)})
	}
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
	h := w.startAll(s, now)
	switch {
	case h != nil:
	case w.phase == stopped:
		close(s.work)
	default:
		w.parked = append(w.parked, s)
	}
	w.flush(now)
	w.poll(now)
	w.checkDrained()
	return h
}

// finish settles a delivery of one message that ended now. tried is false when
// it was postponed: then there is nothing to settle.
func (w *Worker) finish(h *held, res queue.Result, now time.Time) (settled Settled, tried bool) {
	w.observe(now)
	w.vacate()
	h.dead = w.dies(h, &res)
	act := w.decide(h, &res, now)
	w.brake.release(now, h.permit, res)
	if res.Outcome != queue.Postponed {
		settled, tried = w.apply(h, &res, act, now), true
		settled.Batch = 1
	}
	if act.verb == keep || act.verb == surrender {
		w.putOff([]*held{h}, []queue.Result{res}, []action{act}, now)
	}
	if tried {
		w.learn(h, &res, settled.Aborted, now)
	}
	w.flushReturning(now)
	return settled, tried
}

// aborted reports whether the end of Run cut a delivery off.
func (w *Worker) aborted(res *queue.Result) bool {
	return w.workCtx.Err() != nil && res.Outcome != queue.Done && res.Outcome != queue.Postponed
}

// decide says what to do with a message after its delivery. A target that
// throttles closes the gate first, for the pause that the message shares.
func (w *Worker) decide(h *held, res *queue.Result, now time.Time) action {
	if !h.lapsed && !now.Before(h.hiddenUntil) {
		w.lapse(h)
	}
	aborted := w.aborted(res)
	h.throttled = res.Outcome == queue.Throttled
	d := delivery{result: *res, attempt: h.attempt, receivedAt: h.receivedAt, due: w.dueAt(h), lapsed: h.lapsed || aborted,
		extended: h.extended, keepable: w.keepable(h, now), returnable: w.returnable(), random: rand.Float64()}
	if res.Outcome == queue.Throttled && !aborted {
		d.pause = w.throttled(res, h.startedAt, now)
		if d.keepable = w.keepable(h, now); d.keepable && !d.lapsed {
			// Nothing was run: it waits here until the pause is over. Given back it
			// would cost a receive, and in the end its place in the queue.
			w.status.counts.Throttled++
			res.Outcome, res.RetryAfter, d.result = queue.Postponed, d.pause, *res
			d.result.Outcome, d.result.RetryAfter = res.Outcome, res.RetryAfter
		}
	}
	return settle(&w.opts, d, now)
}

// apply does what was decided.
func (w *Worker) apply(h *held, res *queue.Result, act action, now time.Time) Settled {
	aborted := w.aborted(res)
	settled := Settled{
		ID: h.msg.ID, GroupID: h.msg.GroupID, ReceiveCount: h.msg.ReceiveCount, ReceivesHere: h.here, Attempt: h.attempt,
		Outcome: res.Outcome, Status: res.Status, Reason: res.Reason, Answer: res.Answer, Err: res.Err,
		Duration: now.Sub(h.startedAt), Wait: h.waited, Held: h.startedAt.Sub(h.readyAt),
		Late: h.lapsed, Aborted: aborted, Unsent: res.Unsent,
	}
	if act.verb != surrender && !aborted && (res.Outcome == queue.Unreached || res.Outcome == queue.Throttled) {
		w.skip(h.life, true)
	}
	switch act.verb {
	case remove:
		w.remove(h, now)
	case retry:
		settled.NextRetry = now.Add(act.after)
		w.delay(h, settled.NextRetry, now)
	case surrender: // given back by putOff
	default:
		settled.NextRetry = w.dueAt(h)
		if h.hiddenUntil.After(settled.NextRetry) {
			settled.NextRetry = h.hiddenUntil
		}
		w.release(h, now)
	}
	w.status.settled(&settled)
	return settled
}

// learn takes what a delivery says about the app: nothing, if it was not asked.
func (w *Worker) learn(h *held, res *queue.Result, aborted bool, now time.Time) {
	switch {
	case aborted, res.Outcome == queue.Throttled, res.Outcome == queue.Postponed, res.Unsent:
	case res.Outcome == queue.Unreached:
		w.unreached(res.Reason, h.startedAt, now)
	default:
		w.gate.downs = 0
		if res.Outcome == queue.Done || res.Status != 0 {
			w.gate.alive = now
		}
		if h.startedAt.After(w.throttle.from) {
			w.throttle.count = 0
		}
		w.pace.served(now.Sub(h.startedAt), now)
		if w.pool != nil {
			w.pool.pace.served(now.Sub(h.startedAt), now)
		}
		if w.limit < w.opts.Concurrency {
			w.limit++
		}
	}
}

// dueAt returns when the visibility timeout of a message's receive ends, at the
// latest.
func (w *Worker) dueAt(h *held) time.Time { return h.arrivedAt.Add(w.opts.VisibilityTimeout) }

// release lets go of a message whose visibility runs out by itself.
func (w *Worker) release(h *held, now time.Time) {
	if h.dead {
		w.pass(h, now)
	} else {
		w.disband(h, now)
	}
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
	w.status.counts.VisibilityExpired++
	if f := w.events.VisibilityExpired; f != nil {
		event := VisibilityExpired{ID: h.msg.ID, InWork: h.stage == posting}
		w.note(func() { f(event) })
	}
}
