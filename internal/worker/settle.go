package worker

import (
	"slices"
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

// settle appends the attempts to settled.
func (s *settler) settle(batch []*held, results []queue.Result, settled []Settled, now time.Time) (
	_ []Settled, responded bool,
) {
	var behind []int
	if s.core.opts.FIFO && len(batch) > 1 {
		behind = failAfterUnfinished(batch, results)
	}

	workEnded := s.core.workCtx.Err() != nil
	anyAborted := false
	var few [1]action // avoids an allocation for single messages
	actions := few[:0]
	for i, h := range batch {
		res := &results[i]
		aborted := workEnded && res.Outcome != queue.Done && res.Outcome != queue.Postponed
		anyAborted = anyAborted || aborted

		act := s.decide(h, res, aborted, now)
		if behind != nil && behind[i] >= 0 {
			act = act.retriedWith(actions[behind[i]])
		}
		actions = append(actions, act)

		if res.Outcome != queue.Postponed {
			settled = append(settled, newSettled(h, res, len(batch), aborted, now))
			s.apply(&settled[len(settled)-1], h, act, now)
		}
	}

	s.keepOrReturn(batch, results, actions, now)
	responded = !anyAborted && s.app.recordResult(batch[0].startedAt, decisive(results), now)
	return settled, responded
}

func decisive(results []queue.Result) *queue.Result {
	found := &results[0]
	for i := range results {
		if r := &results[i]; evidence(r) > evidence(found) {
			found = r
		}
	}
	return found
}

func evidence(r *queue.Result) int {
	switch {
	case r.Unsent || r.Outcome == queue.Postponed:
		return 0
	case r.Outcome == queue.Unreached:
		return 1
	case r.Outcome == queue.Throttled:
		return 2
	}
	return 3 // the app processed the message
}

// decide changes the result of a kept throttled message to Postponed.
func (s *settler) decide(h *held, res *queue.Result, aborted bool, now time.Time) action {
	h.failedLastReceive = h.onLastReceive && s.messages.lastReceive(h) && res.Outcome == queue.Failed
	if !now.Before(h.hiddenUntil) {
		s.messages.expireVisibility(h)
	}
	h.throttled = res.Outcome == queue.Throttled
	var pause time.Duration
	if h.throttled && !aborted {
		pause = s.pauseForTarget(h, res, now)
	}

	d := endedDelivery{
		result: *res, attempt: h.msg.Attempt, receivedAt: h.receivedAt, due: h.arrivedAt.Add(h.visibility),
		lapsed:     h.lapsed || aborted,
		extended:   h.extended,
		keepable:   res.Outcome == queue.Postponed && s.mayKeep(h, now),
		returnable: res.Outcome == queue.Unreached && s.app.returnable(),
		deadLetter: s.letters.accepts(h, res),
		pause:      pause,
		random:     s.core.opts.Random(),
	}
	return decide(&s.core.opts, &d, now)
}

// pauseForTarget stops receiving and delivering for the returned time. It keeps h if possible, because a return would
// use up a receive, perhaps the last.
func (s *settler) pauseForTarget(h *held, res *queue.Result, now time.Time) time.Duration {
	pause := s.app.pauseReceiving(res, h.startedAt, now)
	if s.core.phase == running {
		for waiting := s.messages.ready.pop(); waiting != nil; waiting = s.messages.ready.pop() {
			s.postpone(waiting, clamp(pause, postponeShortest, postponeLongest), now)
		}
	}

	if !h.lapsed && s.mayKeep(h, now) {
		s.core.counts.Throttled++
		res.Outcome = queue.Postponed
		res.RetryAfter = pause
	}
	return pause
}

func (s *settler) mayKeep(h *held, now time.Time) bool {
	return s.gate.keepsMessages() && s.core.workCtx.Err() == nil && !h.tooOldToExtend(now)
}

func newSettled(h *held, res *queue.Result, batch int, aborted bool, now time.Time) Settled {
	return Settled{ID: h.msg.ID, GroupID: h.msg.GroupID, Task: h.task(), ReceiveCount: h.msg.ReceiveCount, Attempt: h.msg.Attempt,
		ReceivesHere: h.receivesHere, Late: h.lapsed, Aborted: aborted, Unsent: res.Unsent,
		Outcome: res.Outcome, Status: res.Status, Reason: res.Reason, Answer: res.Answer, Err: res.Err,
		Excerpt: res.Excerpt, Process: res.Process, Instruction: res.Instruction,
		Batch: batch, Duration: now.Sub(h.startedAt), Wait: h.waited, Held: h.startedAt.Sub(h.readyAt)}
}

func (s *settler) apply(e *Settled, h *held, act action, now time.Time) {
	if act.verb != returnNow && !e.Aborted && (e.Outcome == queue.Unreached || e.Outcome == queue.Throttled) {
		s.messages.countUnposted(h, true)
	}

	switch act.verb {
	case remove:
		s.deletes.remove(h, now)
	case retry:
		e.NextRetry = now.Add(act.after)
		s.visibility.leaveToTimeout(h, now)
		s.visibility.delayRetry(h, e.NextRetry, now)
	case returnNow: // see keepOrReturn
	case deadLetter:
		e.DeadLettering = true
		s.letters.queueLetter(h, e, now)
	default:
		e.NextRetry = later(h.arrivedAt.Add(h.visibility), h.hiddenUntil)
		s.visibility.leaveToTimeout(h, now)
	}

	if act.verb == remove {
		s.messages.groupRecovered(e.GroupID)
	} else { // also after the last receive: the next message may fail in the same way
		s.messages.groupFailed(h, later(e.NextRetry, now))
	}
	s.core.counts.countAttempt(e)
	s.core.stats.recordOutcome(e.Outcome, now)
}

// keepOrReturn settles messages that use up no attempt: postponed, throttled but kept, or returned because the app was
// not reached. It goes backward to preserve the order of FIFO groups.
func (s *settler) keepOrReturn(batch []*held, results []queue.Result, actions []action, now time.Time) {
	for i, h := range slices.Backward(batch) {
		switch act, outcome := actions[i], results[i].Outcome; {
		case outcome == queue.Unreached && act.verb == returnNow:
			s.visibility.returnWithGroup(h, now)
		case outcome == queue.Postponed:
			s.settlePostponed(h, act, earlierInGroup(batch, actions, i), now)
			s.core.counts.Postponed++
			notify(s.core, s.core.events.Postponed, Postponed{Kept: h.stage != gone, Throttled: h.throttled,
				Status: results[i].Status, Duration: now.Sub(h.startedAt)})
		}
	}
}

func (s *settler) settlePostponed(h *held, act action, before earlierMessages, now time.Time) {
	switch {
	case act.verb != keep || before == earlierUnfinished:
		s.visibility.returnWithGroup(h, now)
	case before == earlierKept: // its predecessor restarts the group
		h.postponeBy(act.after, now)
		s.messages.putBackInGroup(h)
	default:
		s.postpone(h, act.after, now)
	}
}

func (s *settler) returnUnposted(now time.Time) {
	m := s.messages
	for _, list := range [...]*heldList{&m.postponed.heldList, &m.ready} {
		for h := list.pop(); h != nil; h = list.pop() {
			s.visibility.returnWithGroup(h, now)
		}
	}
	for _, g := range m.groups {
		s.visibility.returnAll(m.detachWaiting(g), now)
	}
}

func (s *settler) postpone(h *held, after time.Duration, now time.Time) {
	h.postponeBy(after, now)
	s.messages.postpone(h)
	s.visibility.extendIfDue(h, now)

	list := &s.messages.postponed
	for list.exceeds(postponedPerBytes * s.core.opts.PrefetchBytes) {
		surplus := list.lastPostponed()
		list.remove(surplus)
		s.visibility.returnAll(s.messages.disband(surplus), now)
		s.visibility.returnMessage(surplus, surplusPause, now)
	}
	s.core.wakeAt(s.visibility.pending.next())
}

func (s *settler) readyPostponed(now time.Time) {
	list := &s.messages.postponed
	for h := list.first(); h != nil && !now.Before(h.postponedUntil); h = list.first() {
		s.messages.makeReady(list.pop(), now)
	}
}
