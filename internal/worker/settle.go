package worker

import (
	"cmp"
	"container/heap"
	"time"

	"tendril/queue"
)

// settler decides what becomes of a message after its delivery, and does it: delete,
// make visible later, keep for another try, return to the queue.
type settler struct {
	core       *core
	messages   *inventory
	gate       *gate
	app        *appMonitor
	deletes    *deleter
	letters    *deadLetters // nil where the queue cannot dead-letter a message itself
	visibility *visibilityChanger
	pace       *pace
}

// accept takes in the messages of one receive, hidden since began. Those that were filtered are deleted.
func (s *settler) accept(msgs []queue.Message, filtered []bool, began, now time.Time) {
	for i := range msgs {
		if m := &msgs[i]; s.messages.held[m.ID] != nil {
			s.receivedAgain(s.messages.held[m.ID], m, began, now)
		} else {
			s.acceptNew(m, filtered != nil && filtered[i], began, now)
		}
	}
}

func (s *settler) acceptNew(m *queue.Message, filtered bool, began, now time.Time) {
	h := &held{msg: *m}
	h.received(m, began, now, s.core.opts.VisibilityTimeout)
	s.messages.hold(h)
	skipped := s.messages.unposted.values[life(m.ID, h.receives, h.receivesHere)]
	h.attempt = max(cmp.Or(h.receivesHere, m.ReceiveCount)-skipped, 1)
	h.msg.Attempt = h.attempt
	s.pace.body = average(s.pace.body, float64(len(m.Body)))
	switch _, isDone := s.messages.done.values[m.ID]; {
	case isDone:
		s.duplicate(m, "done")
		s.deletes.remove(h, now)
	case filtered:
		s.core.stats.counts.Filtered++
		notify(s.core, s.core.events.Filtered, Filtered{ID: m.ID, ReceiveCount: m.ReceiveCount})
		s.deletes.remove(h, now)
	case expired(&s.core.opts, m, now):
		h.isExpired = true
		s.core.stats.counts.Expired++
		notify(s.core, s.core.events.Expired, Expired{ID: m.ID, ReceiveCount: m.ReceiveCount,
			FirstReceivedAt: m.FirstReceivedAt, SentAt: m.SentAt})
		s.deletes.remove(h, now)
	default:
		if h.attempt > 1 {
			s.messages.fails(h, now) // perhaps where another worker posted it
		}
		if s.messages.joinGroup(h) {
			s.messages.makeReady(h, now)
		}
	}
}

// receivedAgain takes a receive of a message that is held here: its receipt
// replaces the old one, and it is not posted a second time.
func (s *settler) receivedAgain(h *held, m *queue.Message, began, now time.Time) {
	s.duplicate(m, h.stage.String())
	s.messages.skip(h, true)
	h.received(m, began, now, s.core.opts.VisibilityTimeout)
	if h.stage == deleting {
		s.deletes.put(h, now)
	}
}

func (s *settler) duplicate(m *queue.Message, stage string) {
	s.core.stats.counts.Duplicates++
	notify(s.core, s.core.events.Duplicate, Duplicate{ID: m.ID, ReceiveCount: m.ReceiveCount, Stage: stage})
}

// settle ends a delivery with its results. There is no Settled for those messages that
// were postponed. answered tells that the app answered.
func (s *settler) settle(batch []*held, results []queue.Result, settled []Settled, now time.Time) (
	_ []Settled, answered bool,
) {
	var behind []int
	if s.core.opts.FIFO && len(batch) > 1 {
		behind = inOrder(batch, results)
	}
	var few [1]action
	actions, isCutOff, anyAborted, putOff := few[:0], s.core.workCtx.Err() != nil, false, false
	for i, h := range batch {
		res := &results[i]
		h.dead = h.last && s.messages.lastReceive(h) && res.Outcome == queue.Failed
		aborted := isCutOff && res.Outcome != queue.Done && res.Outcome != queue.Postponed
		act := s.decide(h, res, aborted, now)
		if behind != nil && behind[i] >= 0 && act.verb == retry && actions[behind[i]].verb == retry {
			act.after = actions[behind[i]].after
		}
		actions = append(actions, act)
		putOff = putOff || act.verb == keep || act.verb == giveUp
		if res.Outcome != queue.Postponed {
			anyAborted = anyAborted || aborted
			settled = append(settled, Settled{Batch: len(batch), Aborted: aborted})
			s.apply(&settled[len(settled)-1], h, res, act, now)
		}
	}
	if putOff {
		s.putOff(batch, results, actions, now)
	}
	return settled, !anyAborted && s.app.learn(batch[0].startedAt, decisive(results), now)
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

// decide says what to do with a message after its delivery, which the end of Run may have
// aborted. A target that throttles closes the gate first, for the pause that the message
// shares.
func (s *settler) decide(h *held, res *queue.Result, aborted bool, now time.Time) action {
	if !now.Before(h.hiddenUntil) {
		s.messages.expireVisibility(h)
	}
	h.throttled = res.Outcome == queue.Throttled
	d := endedDelivery{result: *res, attempt: h.attempt, receivedAt: h.receivedAt,
		due: h.arrivedAt.Add(s.core.opts.VisibilityTimeout), lapsed: h.lapsed || aborted, extended: h.extended,
		returnable: res.Outcome == queue.Unreached && s.app.returnable(), deadLetter: s.letters.takes(h, res),
		random: s.core.opts.Random()}
	if h.throttled && !aborted {
		var closed bool
		if d.pause, closed = s.app.throttled(res, h.startedAt, now); closed {
			for h := s.messages.ready.pop(); h != nil; h = s.messages.ready.pop() {
				s.postpone(h, clamp(d.pause, postponeShortest, postponeLongest), now)
			}
			s.core.wakeAt(s.app.pauses.until)
		}
		if !d.lapsed && s.keepable(h, now) {
			// Nothing was run: it waits here until the pause is over. Returned it
			// would cost a receive, and in the end its place in the queue.
			s.core.stats.counts.Throttled++
			res.Outcome, res.RetryAfter = queue.Postponed, d.pause
			d.result.Outcome, d.result.RetryAfter = res.Outcome, res.RetryAfter
		}
	}
	d.keepable = res.Outcome == queue.Postponed && s.keepable(h, now)
	return decide(&s.core.opts, &d, now)
}

// keepable reports whether a message that was not posted may be kept.
func (s *settler) keepable(h *held, now time.Time) bool {
	return s.gate.keeping() && s.core.workCtx.Err() == nil && !h.spent(s.core.opts.VisibilityTimeout, now)
}

// apply does what was decided, and tells of it in e.
func (s *settler) apply(e *Settled, h *held, res *queue.Result, act action, now time.Time) {
	e.ID, e.GroupID, e.ReceiveCount, e.Attempt = h.msg.ID, h.msg.GroupID, h.msg.ReceiveCount, h.attempt
	e.ReceivesHere, e.Late, e.Unsent = h.receivesHere, h.lapsed, res.Unsent
	e.Outcome, e.Status, e.Reason, e.Answer, e.Err = res.Outcome, res.Status, res.Reason, res.Answer, res.Err
	e.Excerpt, e.Process, e.Instruction = res.Excerpt, res.Process, res.Instruction
	e.Duration, e.Wait, e.Held = now.Sub(h.startedAt), h.waited, h.startedAt.Sub(h.readyAt)
	if act.verb != giveUp && !e.Aborted && (res.Outcome == queue.Unreached || res.Outcome == queue.Throttled) {
		s.messages.skip(h, true)
	}
	switch act.verb {
	case remove:
		s.deletes.remove(h, now)
	case retry:
		e.NextRetry = now.Add(act.after)
		s.visibility.release(h, now)
		s.visibility.delayRetry(h, e.NextRetry, now)
	case giveUp: // returned by putOff
	case deadLetter:
		e.DeadLettering = true
		s.letters.send(h, e, now)
	default:
		e.NextRetry = later(h.arrivedAt.Add(s.core.opts.VisibilityTimeout), h.hiddenUntil)
		s.visibility.release(h, now)
	}
	if act.verb == remove {
		s.messages.goesOn(e.GroupID)
	} else { // also behind one that is dead: the next one may be like it
		s.messages.fails(h, later(e.NextRetry, now))
	}
	c := &s.core.stats.counts
	switch e.Outcome {
	case queue.Done:
		c.Done++
	case queue.Unreached:
		c.Unreached++
	case queue.Throttled:
		c.Throttled++
	default:
		c.Failed++
	}
	if e.Aborted {
		c.Aborted++
	}
	if e.Late {
		c.Late++
	}
}

// putOff keeps those messages of a delivery that were postponed, or returns them, as it
// does with those that did not reach the app. It begins with the last one, so that
// none overtakes another of its FIFO group.
func (s *settler) putOff(batch []*held, results []queue.Result, actions []action, now time.Time) {
	for i := len(batch) - 1; i >= 0; i-- {
		h, act := batch[i], actions[i]
		if results[i].Outcome == queue.Unreached && act.verb == giveUp {
			s.visibility.returnWithGroup(h, now)
		}
		if results[i].Outcome != queue.Postponed {
			continue
		}
		var after time.Duration
		switch behind, broken := before(batch, actions, i); {
		case act.verb != keep || broken:
			s.visibility.returnWithGroup(h, now)
		case behind:
			s.messages.waitAgain(h)
		default:
			after = act.after
			s.postpone(h, after, now)
		}
		s.core.stats.counts.Postponed++
		notify(s.core, s.core.events.Postponed, Postponed{ID: h.msg.ID, GroupID: h.msg.GroupID, Reason: results[i].Reason,
			Kept: h.stage != gone, For: after, Throttled: h.throttled, Status: results[i].Status,
			Duration: now.Sub(h.startedAt)})
	}
}

// returnStale takes from the head of the line what may not be started any more. What was
// postponed before and found no slot in time is postponed once more.
func (s *settler) returnStale(now time.Time) {
	for h := s.messages.ready.first(); h != nil; h = s.messages.ready.first() {
		expired := !now.Before(h.hiddenUntil)
		if !expired && !h.stale(&s.core.opts, now) {
			break
		}
		s.messages.ready.pop()
		if !h.postponedAt.IsZero() && !h.lapsed && !expired && s.keepable(h, now) {
			s.postpone(h, postponeUsual, now)
		} else {
			s.visibility.returnWithGroup(h, now)
		}
	}
}

// withdraw returns everything that was received and not posted.
func (s *settler) withdraw(now time.Time) {
	m := s.messages
	for m.deferred.Len() > 0 {
		s.visibility.returnWithGroup(m.deferred.Pop().(*held), now)
	}
	for h := m.ready.pop(); h != nil; h = m.ready.pop() {
		s.visibility.returnWithGroup(h, now)
	}
	for _, g := range m.groups {
		s.visibility.returnAll(m.takeWaiting(g), now)
	}
}

// postpone keeps a message, hidden, and lines it up again after a time.
func (s *settler) postpone(h *held, after time.Duration, now time.Time) {
	if h.postponedAt.IsZero() {
		h.postponedAt = now
	}
	h.stage, h.again = postponed, now.Add(after)
	heap.Push(&s.messages.deferred, h)
	s.visibility.extendIfDue(h, now)
	d := &s.messages.deferred
	for d.Len() > maxPostponed || d.Len() > 1 && d.bytes > postponedPerBytes*s.core.opts.PrefetchBytes {
		h := d.youngest()
		heap.Remove(d, h.place)
		s.visibility.returnAll(s.messages.disband(h), now)
		s.visibility.returnMessage(h, surplusPause, now)
	}
	s.core.wakeAt(d.next())
	s.core.wakeAt(s.visibility.pending.next())
}

// resume lines up what was postponed until now.
func (s *settler) resume(now time.Time) {
	d := &s.messages.deferred
	for t := d.next(); !t.IsZero() && !now.Before(t); t = d.next() {
		s.messages.makeReady(heap.Pop(d).(*held), now)
	}
}
