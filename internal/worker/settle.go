package worker

import (
	"container/heap"
	"time"

	"tendril/queue"
)

type settler struct {
	core       *core
	messages   *inventory
	gate       *gate
	app        *appMonitor
	deletes    *deleter
	letters    *deadLetters
	visibility *visibilityChanger
	pace       *pace
}

// settle appends the attempts to settled. answered means that the app responded.
func (s *settler) settle(batch []*held, results []queue.Result, settled []Settled, now time.Time) (
	_ []Settled, answered bool,
) {
	var behind []int
	if s.core.opts.FIFO && len(batch) > 1 {
		behind = failAfterUnfinished(batch, results)
	}
	isCutOff := s.core.workCtx.Err() != nil
	anyAborted := false
	anyPutOff := false

	var few [1]action
	actions := few[:0]
	for i, h := range batch {
		res := &results[i]
		h.dead = h.last && s.messages.lastReceive(h) && res.Outcome == queue.Failed
		aborted := isCutOff && res.Outcome != queue.Done && res.Outcome != queue.Postponed
		act := s.decide(h, res, aborted, now)
		if behind != nil && behind[i] >= 0 && act.verb == retry && actions[behind[i]].verb == retry {
			act.after = actions[behind[i]].after
		}
		actions = append(actions, act)

		anyPutOff = anyPutOff || act.verb == keep || act.verb == giveUp
		if res.Outcome != queue.Postponed {
			anyAborted = anyAborted || aborted
			settled = append(settled, newSettled(h, res, len(batch), aborted, now))
			s.apply(&settled[len(settled)-1], h, act, now)
		}
	}

	if anyPutOff {
		s.keepOrReturn(batch, results, actions, now)
	}
	return settled, !anyAborted && s.app.learn(batch[0].startedAt, decisive(results), now)
}

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

// decide closes the gate if the target throttles.
func (s *settler) decide(h *held, res *queue.Result, aborted bool, now time.Time) action {
	if !now.Before(h.hiddenUntil) {
		s.messages.expireVisibility(h)
	}
	h.throttled = res.Outcome == queue.Throttled
	d := endedDelivery{result: *res, attempt: h.attempt, receivedAt: h.receivedAt,
		due: h.arrivedAt.Add(h.visibility), lapsed: h.lapsed || aborted, extended: h.extended,
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
			// Keep the message: returning it would use up a receive, and could lead to the dead-letter queue.
			s.core.stats.counts.Throttled++
			res.Outcome = queue.Postponed
			res.RetryAfter = d.pause
			d.result.Outcome = res.Outcome
			d.result.RetryAfter = res.RetryAfter
		}
	}

	d.keepable = res.Outcome == queue.Postponed && s.keepable(h, now)
	return decide(&s.core.opts, &d, now)
}

func (s *settler) keepable(h *held, now time.Time) bool {
	return s.gate.keeping() && s.core.workCtx.Err() == nil && !h.spent(now)
}

func newSettled(h *held, res *queue.Result, batch int, aborted bool, now time.Time) Settled {
	return Settled{ID: h.msg.ID, GroupID: h.msg.GroupID, Task: h.task(), ReceiveCount: h.msg.ReceiveCount, Attempt: h.attempt,
		ReceivesHere: h.receivesHere, Late: h.lapsed, Aborted: aborted, Unsent: res.Unsent,
		Outcome: res.Outcome, Status: res.Status, Reason: res.Reason, Answer: res.Answer, Err: res.Err,
		Excerpt: res.Excerpt, Process: res.Process, Instruction: res.Instruction,
		Batch: batch, Duration: now.Sub(h.startedAt), Wait: h.waited, Held: h.startedAt.Sub(h.readyAt)}
}

func (s *settler) apply(e *Settled, h *held, act action, now time.Time) {
	if act.verb != giveUp && !e.Aborted && (e.Outcome == queue.Unreached || e.Outcome == queue.Throttled) {
		s.messages.countUnposted(h, true)
	}
	switch act.verb {
	case remove:
		s.deletes.remove(h, now)
	case retry:
		e.NextRetry = now.Add(act.after)
		s.visibility.release(h, now)
		s.visibility.delayRetry(h, e.NextRetry, now)
	case giveUp: // see keepOrReturn
	case deadLetter:
		e.DeadLettering = true
		s.letters.send(h, e, now)
	default:
		e.NextRetry = later(h.arrivedAt.Add(h.visibility), h.hiddenUntil)
		s.visibility.release(h, now)
	}
	if act.verb == remove {
		s.messages.groupRecovered(e.GroupID)
	} else { // also after the last receive: the next message may fail the same way
		s.messages.groupFailed(h, later(e.NextRetry, now))
	}

	s.core.stats.settled(e, now)
}

// keepOrReturn works backward through the batch to preserve the order of FIFO groups.
func (s *settler) keepOrReturn(batch []*held, results []queue.Result, actions []action, now time.Time) {
	for i := len(batch) - 1; i >= 0; i-- {
		h, act := batch[i], actions[i]
		if results[i].Outcome == queue.Unreached && act.verb == giveUp {
			s.visibility.returnWithGroup(h, now)
		}
		if results[i].Outcome != queue.Postponed {
			continue
		}

		switch behind, broken := before(batch, actions, i); {
		case act.verb != keep || broken:
			s.visibility.returnWithGroup(h, now)
		case behind:
			s.messages.waitAgain(h)
		default:
			s.postpone(h, act.after, now)
		}

		s.core.stats.counts.Postponed++
		notify(s.core, s.core.events.Postponed, Postponed{Kept: h.stage != gone, Throttled: h.throttled,
			Status: results[i].Status, Duration: now.Sub(h.startedAt)})
	}
}

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

func (s *settler) resume(now time.Time) {
	d := &s.messages.deferred
	for t := d.next(); !t.IsZero() && !now.Before(t); t = d.next() {
		s.messages.makeReady(heap.Pop(d).(*held), now)
	}
}
