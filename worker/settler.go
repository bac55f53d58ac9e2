package worker

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// settler decides what becomes of a message after its delivery, and does it: delete,
// make visible later, keep for another try, return to the queue.
type settler struct {
	*core
	messages *inventory
	gate     *gate
	app      *appMonitor
	deletes  *deleter
	changes  *visibilityChanger
	extender *visibilityExtender
	pace     *pace
}

// flush makes the calls of the queue that are due.
func (s *settler) flush(now time.Time) {
	s.deletes.flush(now)
	s.changes.flush(now)
}

// accept takes in the messages of one receive, hidden since began.
func (s *settler) accept(msgs []queue.Message, began, now time.Time) {
	for i := range msgs {
		if m := &msgs[i]; s.messages.held[m.ID] != nil {
			s.receivedAgain(s.messages.held[m.ID], m, began, now)
		} else {
			s.acceptNew(m, began, now)
		}
	}
	if !s.gate.keeping() {
		s.withdraw(now)
	}
}

func (s *settler) acceptNew(m *queue.Message, began, now time.Time) {
	h := &held{msg: *m, receives: m.ReceiveCount, receivesHere: receivesHere(m), life: life(m)}
	h.received(m.ReceiptHandle, began, now, s.opts.VisibilityTimeout)
	s.messages.held[m.ID] = h
	skipped, _ := s.messages.unposted.get(h.life)
	h.attempt = max(or(h.receivesHere, m.ReceiveCount)-skipped, 1)
	h.msg.Attempt = h.attempt
	s.pace.weighed(len(m.Body))
	switch _, isDone := s.messages.done.get(m.ID); {
	case isDone:
		s.duplicate(m, "done")
		s.deletes.remove(h, now)
	case expired(&s.opts, m, now):
		h.expired = true
		s.stats.counts.Expired++
		notify(s.core, s.events.Expired, Expired{ID: m.ID, ReceiveCount: m.ReceiveCount,
			FirstReceivedAt: m.FirstReceivedAt, SentAt: m.SentAt})
		s.deletes.remove(h, now)
	case s.messages.joinGroup(h):
		s.messages.makeReady(h, now)
	}
}

// receivedAgain takes a receive of a message that is held here: its receipt
// replaces the old one, and it is not posted a second time.
func (s *settler) receivedAgain(h *held, m *queue.Message, began, now time.Time) {
	s.duplicate(m, h.stage.String())
	s.messages.skip(h.life, true)
	h.receivesHere, h.receives = receivesHere(m), m.ReceiveCount
	h.received(m.ReceiptHandle, began, now, s.opts.VisibilityTimeout)
	if h.stage == deleting {
		s.deletes.put(h, now)
	}
}

func (s *settler) duplicate(m *queue.Message, stage string) {
	s.stats.counts.Duplicates++
	notify(s.core, s.events.Duplicate, Duplicate{ID: m.ID, ReceiveCount: m.ReceiveCount, Stage: stage})
}

// settle ends a delivery with its results. There is no Settled for those messages that
// were postponed. answered tells that the app answered.
func (s *settler) settle(batch []*held, results []queue.Result, settled []Settled, now time.Time) (
	_ []Settled, answered bool,
) {
	var behind []int
	if s.opts.FIFO && len(batch) > 1 {
		behind = inOrder(batch, results)
	}
	var few [1]action
	actions, aborted := few[:0], false
	for i, h := range batch {
		h.dead = h.last && s.messages.lastReceive(h) && results[i].Outcome == queue.Failed
		act := s.decide(h, &results[i], now)
		if behind != nil && behind[i] >= 0 && act.verb == retry && actions[behind[i]].verb == retry {
			act.after = actions[behind[i]].after
		}
		actions = append(actions, act)
		if results[i].Outcome != queue.Postponed {
			settled = append(settled, s.apply(h, &results[i], act, now))
			last := &settled[len(settled)-1]
			last.Batch = len(batch)
			aborted = aborted || last.Aborted
		}
	}
	s.putOff(batch, results, actions, now)
	if !aborted {
		answered = s.app.learn(batch[0].startedAt, decisive(results), now)
	}
	s.changes.flushReturning(now)
	return settled, answered
}

// decisive returns the result of a delivery that says most about the app: it answered if
// it judged any of the messages.
func decisive(results []queue.Result) *queue.Result {
	worst := &results[0]
	for i := range results {
		r := &results[i]
		switch {
		case r.Unsent:
		case r.Outcome == queue.Done, r.Outcome == queue.Failed:
			return r
		case r.Outcome == queue.Throttled:
			worst = r
		case r.Outcome == queue.Unreached && (worst.Outcome == queue.Postponed || worst.Unsent):
			worst = r
		}
	}
	return worst
}

// aborted reports whether the end of Run cut a delivery off.
func (s *settler) aborted(res *queue.Result) bool {
	return s.workCtx.Err() != nil && res.Outcome != queue.Done && res.Outcome != queue.Postponed
}

// decide says what to do with a message after its delivery. A target that
// throttles closes the gate first, for the pause that the message shares.
func (s *settler) decide(h *held, res *queue.Result, now time.Time) action {
	if !h.lapsed && !now.Before(h.hiddenUntil) {
		s.messages.expireVisibility(h)
	}
	aborted := s.aborted(res)
	h.throttled = res.Outcome == queue.Throttled
	d := endedDelivery{result: *res, attempt: h.attempt, receivedAt: h.receivedAt, due: s.dueAt(h),
		lapsed: h.lapsed || aborted, extended: h.extended, keepable: s.keepable(h, now),
		returnable: s.app.returnable(), random: rand.Float64()}
	if h.throttled && !aborted {
		var closed bool
		if d.pause, closed = s.app.throttled(res, h.startedAt, now); closed {
			s.postponeReady(d.pause, now)
			s.wakeAt(s.app.pauses.until)
		}
		if d.keepable = s.keepable(h, now); d.keepable && !d.lapsed {
			// Nothing was run: it waits here until the pause is over. Returned it
			// would cost a receive, and in the end its place in the queue.
			s.stats.counts.Throttled++
			res.Outcome, res.RetryAfter = queue.Postponed, d.pause
			d.result.Outcome, d.result.RetryAfter = res.Outcome, res.RetryAfter
		}
	}
	return decide(&s.opts, d, now)
}

// dueAt returns when the visibility timeout of a message's receive ends, at the
// latest.
func (s *settler) dueAt(h *held) time.Time { return h.arrivedAt.Add(s.opts.VisibilityTimeout) }

// keepable reports whether a message that was not posted may be kept.
func (s *settler) keepable(h *held, now time.Time) bool {
	return s.gate.keeping() && s.workCtx.Err() == nil && !h.spent(s.opts.VisibilityTimeout, now)
}

// apply does what was decided.
func (s *settler) apply(h *held, res *queue.Result, act action, now time.Time) Settled {
	settled := Settled{
		ID: h.msg.ID, GroupID: h.msg.GroupID, ReceiveCount: h.msg.ReceiveCount, ReceivesHere: h.receivesHere,
		Attempt: h.attempt,
		Outcome: res.Outcome, Status: res.Status, Reason: res.Reason, Answer: res.Answer, Err: res.Err,
		Duration: now.Sub(h.startedAt), Wait: h.waited, Held: h.startedAt.Sub(h.readyAt),
		Late: h.lapsed, Aborted: s.aborted(res), Unsent: res.Unsent,
	}
	if act.verb != giveUp && !settled.Aborted && (res.Outcome == queue.Unreached || res.Outcome == queue.Throttled) {
		s.messages.skip(h.life, true)
	}
	switch act.verb {
	case remove:
		s.deletes.remove(h, now)
	case retry:
		settled.NextRetry = now.Add(act.after)
		s.changes.release(h, now)
		s.changes.delayRetry(h, settled.NextRetry, now)
	case giveUp: // returned by putOff
	default:
		settled.NextRetry = s.dueAt(h)
		if h.hiddenUntil.After(settled.NextRetry) {
			settled.NextRetry = h.hiddenUntil
		}
		s.changes.release(h, now)
	}
	s.stats.settled(&settled)
	return settled
}

// putOff keeps those messages of a delivery that were postponed, or returns them, as it
// does with those that did not reach the app. It begins with the last one, so that
// none overtakes another of its FIFO group.
func (s *settler) putOff(batch []*held, results []queue.Result, actions []action, now time.Time) {
	for i := len(batch) - 1; i >= 0; i-- {
		h, act := batch[i], actions[i]
		if results[i].Outcome == queue.Unreached && act.verb == giveUp {
			s.changes.returnWithGroup(h, now)
		}
		if results[i].Outcome != queue.Postponed {
			continue
		}
		var after time.Duration
		switch behind, broken := before(batch, actions, i); {
		case act.verb != keep || broken:
			s.changes.returnWithGroup(h, now)
		case behind:
			s.messages.waitAgain(h)
		default:
			after = act.after
			s.postpone(h, after, now)
		}
		s.stats.counts.Postponed++
		notify(s.core, s.events.Postponed, Postponed{ID: h.msg.ID, GroupID: h.msg.GroupID, Reason: results[i].Reason,
			Kept: h.stage != gone, For: after, Throttled: h.throttled, Status: results[i].Status,
			Duration: now.Sub(h.startedAt)})
	}
}

// returnStale takes from the head of the line what may not be started any more. What was
// postponed before and found no slot in time is postponed once more.
func (s *settler) returnStale(now time.Time) {
	for h := s.messages.ready.first(); h != nil; h = s.messages.ready.first() {
		expired := !now.Before(h.hiddenUntil)
		if !expired && !h.stale(&s.opts, now) {
			break
		}
		s.messages.ready.pop()
		if !h.postponedAt.IsZero() && !h.lapsed && !expired && s.keepable(h, now) {
			s.postpone(h, postponeUsual, now)
		} else {
			s.changes.returnWithGroup(h, now)
		}
	}
	s.changes.flushReturning(now)
}

// withdraw returns everything that was received and not posted.
func (s *settler) withdraw(now time.Time) {
	m := s.messages
	for m.deferred.Len() > 0 {
		s.changes.returnWithGroup(m.deferred.Pop().(*held), now)
	}
	for h := m.ready.pop(); h != nil; h = m.ready.pop() {
		s.changes.returnWithGroup(h, now)
	}
	for _, g := range m.groups {
		s.changes.returnAll(m.takeWaiting(g), now)
	}
	s.changes.flushReturning(now)
}

// postpone keeps a message, hidden, and lines it up again after a time.
func (s *settler) postpone(h *held, after time.Duration, now time.Time) {
	if h.postponedAt.IsZero() {
		h.postponedAt = now
	}
	h.stage, h.again = postponed, now.Add(after)
	heap.Push(&s.messages.deferred, h)
	s.extender.extendIfDue(h, now)
	for s.surplus() {
		h := s.messages.deferred.youngest()
		heap.Remove(&s.messages.deferred, h.place)
		s.changes.returnAll(s.messages.disband(h), now)
		s.changes.returnMessage(h, surplusPause, now)
	}
	s.wakeAt(s.messages.deferred.next())
	s.wakeAt(s.changes.next())
}

// surplus reports whether more messages are postponed than may be kept.
func (s *settler) surplus() bool {
	d := &s.messages.deferred
	return d.Len() > maxPostponed || d.Len() > 1 && d.bytes > postponedPerBytes*s.opts.PrefetchBytes
}

// resume lines up what was postponed until now.
func (s *settler) resume(now time.Time) {
	d := &s.messages.deferred
	for t := d.next(); !t.IsZero() && !now.Before(t); t = d.next() {
		s.messages.makeReady(heap.Pop(d).(*held), now)
	}
}

// postponeReady postpones what is lined up until a pause is over, so that it is kept
// hidden meanwhile.
func (s *settler) postponeReady(pause time.Duration, now time.Time) {
	for h := s.messages.ready.pop(); h != nil; h = s.messages.ready.pop() {
		s.postpone(h, clamp(pause, postponeShortest, postponeLongest), now)
	}
}
