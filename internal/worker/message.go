package worker

import (
	"strconv"
	"time"

	"tendril/queue"
)

// stage is where a held message is on its way.
type stage uint8

const (
	waiting       stage = iota // behind another message of its FIFO group
	ready                      // for a slot
	posting                    // the app works on it
	postponed                  // the deliverer did not try it yet; it is asked again
	deadLettering              // it gets no further attempt; the dead-letter queue did not accept it yet
	deleting                   // done, expired or dead-lettered; the delete is not confirmed
	gone                       // settled, returned or dropped; no longer ours
)

// String returns the stage's name.
func (s stage) String() string {
	return [...]string{"waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", "gone"}[s]
}

// held is one message from its receive until this worker is done with it. Everything but msg is guarded by the worker's lock; msg is
// read by the delivery and never changes after its receive.
type held struct {
	msg   queue.Message
	group *group
	stage stage

	// Its newest receipt, and the time for which that hides the message:
	receipt string
	// receivedAt is when the receipt was given out, at the earliest; arrivedAt when it
	// came, and so the latest time that receivedAt can be. hiddenFrom and hiddenUntil
	// are the present period of invisibility.
	receivedAt, arrivedAt, hiddenFrom, hiddenUntil time.Time
	// nextExtend is when the next extension may be sent.
	nextExtend time.Time
	// changing: a change of visibility is pending or on its way, and no other may be
	// sent. following is the one that comes after it.
	following *pending
	changing  bool
	// lapsed: hiddenUntil passed. The receipt must not change any visibility.
	lapsed bool
	// extended: an extension of the receipt was sent, so the queue may hide the
	// message for longer than its receive asked for.
	extended  bool
	isExpired bool // it is deleted because its retention is over

	// receives is the count of the newest receive, receivesHere that since the message
	// came to its queue, 0 where that is not known.
	receives, receivesHere int
	// attempt is receivesHere without the receives that never reached the app.
	attempt int
	// readyAt is when it could first be started.
	readyAt time.Time
	// postponedAt is when it was postponed for the first time, zero for never; again
	// is when it is lined up anew, place where it is in the heap until then.
	postponedAt, again time.Time
	place              int

	// Its latest delivery:
	startedAt time.Time
	waited    time.Duration // from the sending of the message to startedAt
	// permit is the limiter's, 0 if there is none; the first message of a batch has it. self is
	// the batch of a single message.
	permit uint64
	self   [1]*held
	// throttled: the target refused it. last: this is the last receive that the queue
	// grants it. dead: it failed there, so the queue never hands it out again.
	throttled, last, dead bool
	// letter is sent to the dead-letter queue, or was, and instruction the app's that asked for it; nil unless the
	// message failed for the last time.
	letter      *queue.DeadLetter
	instruction queue.Instruction
}

// received takes a receive of the message, which hides it since began. Of one that came from
// another queue, a queue that does not tell gives no count of receives here.
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

// hide notes that the receipt hides the message for d from t on.
func (h *held) hide(t time.Time, d time.Duration) {
	h.hiddenFrom, h.hiddenUntil = t, t.Add(d)
}

// shift moves the times after a suspend, during which the queue's clock went on.
func (h *held) shift(hidden time.Duration) {
	for _, t := range [...]*time.Time{&h.receivedAt, &h.arrivedAt, &h.hiddenFrom, &h.hiddenUntil} {
		*t = t.Add(-hidden)
	}
}

// left returns for how long an extension that begins now may hide the message.
func (h *held) left(now time.Time) time.Duration {
	return maxHidden - now.Sub(h.receivedAt) - 5*time.Second
}

// spent reports whether no extension can give the message half of a visibility
// any more: too little for a delivery to begin.
func (h *held) spent(visibility time.Duration, now time.Time) bool {
	return h.left(now) < visibility/2 && h.hiddenUntil.Sub(now) <= visibility/2
}

// extension returns how long to hide the message from now on, 0 for not now. A message in
// work, or on its way to the dead-letter queue, is extended from half of its visibility on;
// one that waits behind its group or is postponed from a third on, so that it has more than
// half left when its turn comes.
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

// stale reports whether a message waited too long for a slot: three eighths of its
// visibility, or 10 s. It is returned instead, so that no delivery begins with less than
// half of the visibility left. The time in which a batch waits for more does not count.
func (h *held) stale(o *Options, now time.Time) bool {
	return now.Sub(h.readyAt) >= min(o.VisibilityTimeout*3/8, 10*time.Second)+o.Batch.Window ||
		now.Sub(h.hiddenFrom) >= o.VisibilityTimeout/2
}

// size returns the bytes of a message's body and attributes.
func (h *held) size() int {
	n := len(h.msg.Body)
	for _, a := range h.msg.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// life names the time of a message in its queue, for its receives and those of them here:
// after a redrive they are counted anew.
func life(id string, receives, here int) string {
	if here == 0 || here == receives {
		return id
	}
	return id + " " + strconv.Itoa(receives-here)
}

// group is the messages of one FIFO message group that are held here, in order. A queue
// gives out no message behind one of its group that is in flight, so they all came with one receive.
type group struct {
	id       string
	active   int // ready, in work, postponed or being deleted: one, or those of one batch
	deleting int // of them
	waiting  []*held
	// turning: all that are active are being deleted and the next one is about
	// to start.
	turning bool
}

// purpose says why a visibility is changed.
type purpose uint8

const (
	extendVisibility purpose = iota // hide a message in work for longer
	delayRetry                      // hide a failed message until its next attempt
	returnMessage                   // make a message visible at once that was not posted
)

// String returns the name that [ChangeFailed] shows.
func (p purpose) String() string {
	return [...]string{"extend", "retry", "give back"}[p]
}

// pending is one entry of a delete or of a change of visibility, on its way to the
// queue.
type pending struct {
	h          *held
	receipt    string
	purpose    purpose // of a change
	tries      int32
	visibility time.Duration // of a change; set when it is sent, unless it is an extension
	at         time.Time     // when a delayed or returned message is visible again; zero for at once
	until      time.Time     // when the entry is no longer worth sending
}

// isWanted reports whether a delete is still needed: not confirmed by another, and of the
// newest receipt, which has a delete of its own.
func (p *pending) isWanted() bool { return p.h.stage == deleting && p.receipt == p.h.receipt }

// nextTry is when an entry that failed is sent again, for a random number in [0,1).
func (p *pending) nextTry(now time.Time, random float64) time.Time {
	return now.Add(retryWait(int(p.tries), 100*time.Millisecond, 5*time.Second, random))
}
