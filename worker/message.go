package worker

import (
	"time"

	"tendril/queue"
)

// stage is where a held message is on its way.
type stage uint8

const (
	// waiting: behind another message of its FIFO group.
	waiting stage = iota
	// ready: waits for a slot.
	ready
	// posting: the app works on it.
	posting
	// postponed: the deliverer did not try it yet; it is asked again.
	postponed
	// deleting: done or expired; the delete is not confirmed.
	deleting
	// gone: settled, given back or dropped; no longer ours.
	gone
)

// String returns the stage's name.
func (s stage) String() string {
	return [...]string{"waiting", "ready", "posting", "postponed", "deleting", "gone"}[s]
}

// handover is the delivery in work of a held message, or of the batch of which it is
// the first.
type handover struct {
	// mates are all messages of the batch; nil for a delivery of one.
	mates []*held
	// permit is the limiter's.
	permit permit
}

// held is one message between its receive and the end of what this worker has
// to do with it. Everything but msg is guarded by the worker's lock; msg is
// read by the delivery and never changes after accept.
type held struct {
	msg queue.Message
	// receipt and receives are the newest receive's: a queue may hand the
	// message out again while it is here.
	receipt  string
	receives int
	// here is how often it was received since it came to its queue, 0 where that is
	// not known, and life its name for that time.
	here int
	life string
	// attempt is here without the receives that never reached the app.
	attempt int
	stage   stage
	group   *group
	handover

	// receivedAt is when the newest receipt was given out, at the earliest;
	// hiddenFrom and hiddenUntil are the present period of invisibility. arrivedAt
	// is when the receipt came, and so the latest time that receivedAt can be.
	receivedAt, arrivedAt, hiddenFrom, hiddenUntil time.Time
	// readyAt is when it could first be started, startedAt when it was.
	readyAt, startedAt time.Time
	// postponed is when it was postponed for the first time, zero for never;
	// again is when it is lined up anew, place where it is in the heap until then.
	postponed, again time.Time
	place            int
	// waited is from the sending of the message to startedAt.
	waited time.Duration
	// lapsed: hiddenUntil passed. The receipt must not change any visibility.
	lapsed bool
	// expired: it is deleted because its retention is over.
	expired bool
	// throttled: the latest delivery was refused by the target.
	throttled bool
	// last: it is handed over at the last receive that the queue grants it. dead:
	// it failed there, so the queue never hands it out again.
	last, dead bool

	// changing: a change of its visibility is in the box or on its way, and no
	// other may be sent. after is the one that follows.
	changing bool
	after    *order
	// extended: an extension of the receipt was sent, so the queue may hide the
	// message for longer than its receive asked for.
	extended   bool
	nextExtend time.Time
}

// hide notes that the receipt hides the message for v from t on.
func (h *held) hide(t time.Time, v time.Duration) {
	h.hiddenFrom, h.hiddenUntil = t, t.Add(v)
}

// margin is how long before the end of its visibility a message's delete is
// no longer worth sending, and a lingering one goes out.
func margin(visibility time.Duration) time.Duration {
	return min(visibility/10, time.Second)
}

// extension returns how long to hide the message from now on, 0 when it is
// too early, under way already, or the 12 h from its receive are used up. A
// message in work is extended from half of its visibility on; one that waits
// behind its group or is postponed from a third on, so that it has more than
// half left when its turn comes.
func (h *held) extension(visibility time.Duration, now time.Time) time.Duration {
	if h.changing || h.lapsed || now.Before(h.nextExtend) {
		return 0
	}
	age := now.Sub(h.hiddenFrom)
	switch {
	case h.stage == posting && age >= visibility/2:
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

// left returns for how long an extension that begins now may hide the message.
func (h *held) left(now time.Time) time.Duration {
	return maxHidden - now.Sub(h.receivedAt) - 5*time.Second
}

// spent reports whether no extension can give the message half of a visibility
// any more: too little for a delivery to begin.
func (h *held) spent(visibility time.Duration, now time.Time) bool {
	return h.left(now) < visibility/2 && h.hiddenUntil.Sub(now) <= visibility/2
}
