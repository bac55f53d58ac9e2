package worker

import (
	"cmp"
	"time"

	"tendril/queue"
)

// verb says what to do with a message after its delivery.
type verb uint8

const (
	leave      verb = iota // do nothing; the visibility that it has runs out
	remove                 // delete it
	retry                  // set its visibility to the action's delay
	keep                   // it was not tried; hold it and ask again after the action's delay
	giveUp                 // it was not tried and is not held; return it
	deadLetter             // it failed and gets no further attempt; send it to the dead-letter queue
)

// action is a verb and the delay of a retry, or until the next asking.
type action struct {
	verb  verb
	after time.Duration
}

// endedDelivery is the input of decide about one delivery.
type endedDelivery struct {
	result  queue.Result
	attempt int // 1 for the first
	// receivedAt is when the receipt was given out, at the earliest: a message may
	// be hidden for 12 h from there.
	receivedAt time.Time
	// due is when the visibility timeout of the receive ends, at the latest.
	due        time.Time
	lapsed     bool          // the receipt's visibility ran out during the delivery
	extended   bool          // the queue may hide the message for longer than its receive asked for
	keepable   bool          // a message that was not tried may be kept
	returnable bool          // a message that did not reach the app may come again at once
	deadLetter bool          // it can be sent to the dead-letter queue now, if it failed
	pause      time.Duration // how long the target is left alone that throttled it
	random     float64       // in [0,1)
}

// decide says what becomes of a message. A success is deleted, whatever else happened: the
// queue is the judge of an old receipt. A receipt that lapsed must not change the visibility
// of what may be another worker's by now. What failed is visible again when the visibility
// timeout of its receive is over, unless a delay is configured.
func decide(o *Options, d *endedDelivery, now time.Time) action {
	if d.result.Outcome == queue.Done {
		return action{verb: remove}
	}
	if d.result.Outcome == queue.Postponed {
		if d.lapsed || !d.keepable {
			return action{verb: giveUp}
		}
		return action{verb: keep, after: clamp(cmp.Or(d.result.RetryAfter, postponeUsual), postponeShortest, postponeLongest)}
	}

	if d.lapsed {
		return action{verb: leave}
	}
	if d.result.Outcome == queue.Unreached && d.returnable {
		return action{verb: giveUp}
	}
	if d.result.Outcome == queue.Failed && d.deadLetter {
		return action{verb: deadLetter}
	}

	after, ok := retryDelay(o, d)
	switch {
	case ok:
	case d.extended:
		// The extension served the delivery, and must not delay the next attempt.
		after = d.due.Sub(now)
	default:
		return action{verb: leave}
	}

	longest := maxHidden - now.Sub(d.receivedAt) - time.Second
	return action{verb: retry, after: max(min(after, longest), 0)}
}

// retryDelay picks the delay after a failure: the app's instruction, its Retry-After, then the
// back-off, then the error visibility timeout, each if configured. What was
// throttled did not fail: it comes again after the pause, whatever is configured.
func retryDelay(o *Options, d *endedDelivery) (time.Duration, bool) {
	switch {
	case d.result.Outcome == queue.Throttled:
		return d.pause, true
	case d.result.Instruction == queue.Retry:
		return d.result.RetryAfter, true
	case o.RespectRetryAfter && d.result.RetryAfter > 0:
		return d.result.RetryAfter, true
	case o.Backoff.Min > 0:
		return o.Backoff.delay(d.attempt, d.random), true
	case o.ErrorVisibilityTimeout != nil:
		return *o.ErrorVisibilityTimeout, true
	}
	return 0, false
}

// expired reports whether a message is past its retention: received before,
// and first so longer ago than the retention. One never tried never expires.
func expired(o *Options, m *queue.Message, now time.Time) bool {
	return m.ReceiveCount > 1 && !m.FirstReceivedAt.IsZero() &&
		now.Round(0).Sub(m.FirstReceivedAt) > o.Retention
}

// inOrder turns the successes of a FIFO batch into failures that come after a message
// of the same group which is not done. To delete them would make the earlier
// one the last to take effect; so they come again behind it. The result tells for each
// message which one of the batch it has to come behind, -1 for none.
func inOrder(msgs []*held, results []queue.Result) (behind []int) {
	broken := map[string]int{}
	behind = make([]int, len(msgs))

	for i, h := range msgs {
		id := h.msg.GroupID
		first, found := broken[id]
		switch {
		case id == "":
			behind[i] = -1
		case found:
			behind[i] = first
			if results[i].Outcome == queue.Done {
				results[i].Outcome, results[i].Reason = queue.Failed, "done, but an earlier message of its group is not"
				results[i].Instruction = queue.NoInstruction
			}
		default:
			behind[i] = -1
			if results[i].Outcome != queue.Done {
				broken[id] = i
			}
		}
	}
	return behind
}

// before looks at what is ahead of a message in its batch and FIFO group:
// behind tells that there is something, broken that one of it neither is done
// nor stays here.
func before(batch []*held, actions []action, i int) (behind, broken bool) {
	if batch[i].group == nil {
		return false, false
	}
	for j, h := range batch[:i] {
		if h.msg.GroupID == batch[i].msg.GroupID {
			behind = true
			broken = broken || actions[j].verb != remove && actions[j].verb != keep
		}
	}
	return behind, broken
}
