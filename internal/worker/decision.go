package worker

import (
	"cmp"
	"time"

	"tendril/queue"
)

type verb uint8

const (
	leave verb = iota // until its visibility timeout expires
	remove
	retry
	keep      // not attempted; deliver again after the delay
	returnNow // not attempted; return it to the queue
	deadLetter
)

type action struct {
	verb  verb
	after time.Duration
}

// retriedWith delays a retry like an earlier message of the FIFO group.
func (a action) retriedWith(earlier action) action {
	if a.verb == retry && earlier.verb == retry {
		return earlier
	}
	return a
}

type endedDelivery struct {
	result  queue.Result
	attempt int // counted from 1
	// SQS's 12-hour limit counts from receivedAt.
	receivedAt time.Time
	// due is the end of the receive's visibility timeout.
	due        time.Time
	lapsed     bool // also true if aborted
	extended   bool
	keepable   bool // may be kept if not attempted
	returnable bool // may be returned if it did not reach the app
	deadLetter bool // may be dead-lettered if it failed
	pause      time.Duration
	random     float64 // in [0,1)
}

// After the visibility timeout, decide leaves the visibility unchanged, because another worker may hold the message.
// It deletes a done message even then, because the receipt handle may still be valid.
func decide(o *Options, d *endedDelivery, now time.Time) action {
	if d.result.Outcome == queue.Done {
		return action{verb: remove}
	}
	if d.result.Outcome == queue.Postponed {
		if d.lapsed || !d.keepable {
			return action{verb: returnNow}
		}
		return action{verb: keep, after: clamp(cmp.Or(d.result.RetryAfter, postponeUsual), postponeShortest, postponeLongest)}
	}

	if d.lapsed {
		return action{verb: leave}
	}
	if d.result.Outcome == queue.Unreached && d.returnable {
		return action{verb: returnNow}
	}
	if d.result.Outcome == queue.Failed && d.deadLetter {
		return action{verb: deadLetter}
	}

	after, found := retryDelay(o, d)
	if !found {
		if !d.extended {
			return action{verb: leave}
		}
		after = d.due.Sub(now) // the extension must not delay the next attempt
	}
	longest := maxHidden - now.Sub(d.receivedAt) - time.Second
	return action{verb: retry, after: max(min(after, longest), 0)}
}

// retryDelay returns false if the visibility timeout of the receive applies.
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

func expired(o *Options, m *queue.Message, now time.Time) bool {
	return m.ReceiveCount > 1 && !m.FirstReceivedAt.IsZero() &&
		now.Round(0).Sub(m.FirstReceivedAt) > o.Retention
}

// failAfterUnfinished marks successes in a FIFO batch as failed behind an unfinished message of their group, which
// would otherwise be processed after them. behind contains the index of the unfinished message for each message, or
// -1.
func failAfterUnfinished(msgs []*held, results []queue.Result) (behind []int) {
	unfinished := map[string]int{} // index of the first, by group
	behind = make([]int, len(msgs))
	for i, h := range msgs {
		res, group := &results[i], h.msg.GroupID
		behind[i] = -1
		if group == "" {
			continue
		}

		if first, found := unfinished[group]; found {
			behind[i] = first
			if res.Outcome == queue.Done {
				res.Outcome = queue.Failed
				res.Reason = "done, but an earlier message of its group is not"
				res.Instruction = queue.NoInstruction
			}
		} else if res.Outcome != queue.Done {
			unfinished[group] = i
		}
	}
	return behind
}

// earlierMessages is the outcome of a batch's earlier messages in the same FIFO group.
type earlierMessages uint8

const (
	noEarlier         earlierMessages = iota
	earlierKept                       // all kept or deleted
	earlierUnfinished                 // at least one is neither
)

func earlierInGroup(batch []*held, actions []action, i int) earlierMessages {
	if batch[i].group == nil {
		return noEarlier
	}
	result := noEarlier
	for j, h := range batch[:i] {
		if h.msg.GroupID != batch[i].msg.GroupID {
			continue
		}
		if actions[j].verb != remove && actions[j].verb != keep {
			return earlierUnfinished
		}
		result = earlierKept
	}
	return result
}
