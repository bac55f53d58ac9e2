package worker

import (
	"strconv"
	"time"

	"tendril/queue"
)

// stage is the state of a held message.
type stage uint8

const (
	waiting       stage = iota // behind another message of its FIFO group
	ready                      // waiting for a slot
	posting                    // being delivered
	postponed                  // not tried by the deliverer; will be delivered again
	deadLettering              // no further attempt; not yet accepted by the dead-letter queue
	deleting                   // done, expired or dead-lettered; delete not confirmed
	gone                       // settled, returned or dropped
)

func (s stage) String() string {
	return [...]string{"waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", "gone"}[s]
}

// held is a message from its receive until the worker is done with it. The lock guards every field but msg, which the
// delivery reads and which does not change after the receive.
type held struct {
	msg   queue.Message
	group *group
	stage stage

	// Newest receipt and its visibility:
	receipt string
	// receivedAt is the earliest time at which the queue may have issued the receipt, arrivedAt when it came and
	// therefore the latest. hiddenFrom and hiddenUntil bound the current visibility timeout.
	receivedAt, arrivedAt, hiddenFrom, hiddenUntil time.Time
	// nextExtend is the earliest time of the next extension.
	nextExtend time.Time
	// changing is true while a visibility change is pending or in flight; following is the change to send after it.
	following *pending
	changing  bool
	// lapsed: hiddenUntil has passed, and the receipt must not change the visibility any more.
	lapsed bool
	// extended: an extension was sent, so the queue may hide the message for longer than its receive asked.
	extended  bool
	isExpired bool // to be deleted because its retention has passed

	// receives is the receive count; receivesHere counts from the message's arrival in this queue, 0 if unknown.
	receives, receivesHere int
	// attempt is receivesHere minus the receives that never reached the app.
	attempt int
	// readyAt is when it became ready.
	readyAt time.Time
	// postponedAt is when it was first postponed, zero if never; again is when it becomes ready again, place its heap
	// index until then.
	postponedAt, again time.Time
	place              int

	// Latest delivery:
	startedAt time.Time
	waited    time.Duration // from SentAt to startedAt
	// permit is the limiter's, 0 without one; the first message of a batch holds it. self avoids allocating a batch
	// of one.
	permit uint64
	self   [1]*held
	// throttled: the target refused it. last: the queue grants no receive after this one. dead: it failed at that
	// receive.
	throttled, last, dead bool
	// letter is the message for the dead-letter queue, nil unless dead-lettered; instruction is the app's request for
	// that.
	letter      *queue.DeadLetter
	instruction queue.Instruction
}

// received records a receive that has hidden the message since began. For redriven messages some queues report no
// receive count of their own.
func (h *held) received(m *queue.Message, began, now time.Time, visibility time.Duration) {
	h.receipt = m.ReceiptHandle
	h.receivedAt = began
	h.arrivedAt = now
	h.lapsed = false
	h.extended = false
	h.nextExtend = time.Time{}
	h.hide(began, visibility)
	h.receives = m.ReceiveCount
	h.receivesHere = m.Attempt
	if m.Attempt == 0 && m.DeadLetterSource == "" {
		h.receivesHere = m.ReceiveCount
	}
}

func (h *held) hide(t time.Time, d time.Duration) {
	h.hiddenFrom, h.hiddenUntil = t, t.Add(d)
}

// shift moves times back after a suspend, during which the queue's clock kept running.
func (h *held) shift(hidden time.Duration) {
	for _, t := range [...]*time.Time{&h.receivedAt, &h.arrivedAt, &h.hiddenFrom, &h.hiddenUntil} {
		*t = t.Add(-hidden)
	}
}

// left returns the maximum duration of an extension sent now.
func (h *held) left(now time.Time) time.Duration {
	return maxHidden - now.Sub(h.receivedAt) - 5*time.Second
}

// spent reports whether no extension can give the message half a visibility timeout, the minimum to start a delivery.
func (h *held) spent(visibility time.Duration, now time.Time) bool {
	return h.left(now) < visibility/2 && h.hiddenUntil.Sub(now) <= visibility/2
}

// extension returns the new visibility from now, or 0 if none is due. Messages being delivered or dead-lettered are
// extended after half of their visibility. Waiting and postponed messages are extended after a third, so that more
// than half is left when their turn comes.
func (h *held) extension(visibility time.Duration, now time.Time) time.Duration {
	if h.changing || h.lapsed || now.Before(h.nextExtend) {
		return 0
	}
	age := now.Sub(h.hiddenFrom)
	switch {
	case (h.stage == posting || h.stage == deadLettering) && age >= visibility/2:
	case (h.stage == waiting || h.stage == postponed) && age >= visibility/3:
	default:
		return 0
	}
	v := min(visibility, h.left(now))
	if !now.Add(v).After(h.hiddenUntil.Add(time.Second / 2)) {
		return 0
	}
	return v
}

// stale reports whether a message waited too long for a slot: three eighths of its visibility timeout or 10 s, plus
// the batch window. Returning it ensures that deliveries start with more than half of the visibility left.
func (h *held) stale(o *Options, now time.Time) bool {
	return now.Sub(h.readyAt) >= min(o.VisibilityTimeout*3/8, 10*time.Second)+o.Batch.Window ||
		now.Sub(h.hiddenFrom) >= o.VisibilityTimeout/2
}

// size returns the bytes of the body and attributes.
func (h *held) size() int {
	n := len(h.msg.Body)
	for _, a := range h.msg.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// life identifies a message and its stay in the current queue: a redrive resets the receive count.
func life(id string, receives, here int) string {
	if here == 0 || here == receives {
		return id
	}
	return id + " " + strconv.Itoa(receives-here)
}

// group holds the messages of one FIFO message group in order. All come from one receive, because a queue returns no
// messages of a group with messages in flight.
type group struct {
	id       string
	active   int // ready, in flight, postponed or deleting: one message or one batch
	deleting int // part of active
	waiting  []*held
	// turning: all active messages are being deleted, so the next one is about to start.
	turning bool
}

// purpose is the reason for a visibility change.
type purpose uint8

const (
	extendVisibility purpose = iota // of a message in flight
	delayRetry                      // until the next attempt of a failed message
	returnMessage                   // make an unposted message visible at once
)

// String returns the name used by [ChangeFailed].
func (p purpose) String() string {
	return [...]string{"extend", "retry", "give back"}[p]
}

// pending is a delete or a visibility change waiting to be sent, or in flight.
type pending struct {
	h          *held
	receipt    string
	purpose    purpose // of a visibility change
	tries      int32
	visibility time.Duration // of a visibility change; set when sent unless it is an extension
	at         time.Time     // when the message becomes visible; zero for at once
	until      time.Time     // when the entry becomes useless
}

// isWanted reports whether a delete is still needed: not confirmed yet, and not superseded by a newer receipt, which
// has its own.
func (p *pending) isWanted() bool { return p.h.stage == deleting && p.receipt == p.h.receipt }

// nextTry returns when to retry, for a random number in [0,1).
func (p *pending) nextTry(now time.Time, random float64) time.Time {
	return now.Add(retryWait(int(p.tries), 100*time.Millisecond, 5*time.Second, random))
}
