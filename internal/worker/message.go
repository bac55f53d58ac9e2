package worker

import (
	"strconv"
	"time"

	"tendril/queue"
)

type stage uint8

const (
	waiting stage = iota // behind another message of its FIFO group
	ready
	posting
	postponed     // untried; will be delivered again
	deadLettering // not yet accepted by the dead-letter queue
	deleting      // not confirmed yet
	gone          // settled, returned or dropped
)

func (s stage) String() string {
	return [...]string{"waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", "gone"}[s]
}

// held is a received message that is not settled. The lock guards every field but msg, which does not change.
type held struct {
	msg   queue.Message
	group *group
	stage stage

	receipt string
	// receivedAt and arrivedAt are the earliest and latest time of the receive. hiddenFrom and hiddenUntil bound the
	// current visibility timeout.
	receivedAt, arrivedAt, hiddenFrom, hiddenUntil time.Time
	nextExtend                                     time.Time
	// changing is set while a visibility change is pending or in flight; following is the next one.
	following *pending
	changing  bool
	// lapsed is set when the visibility has ended.
	lapsed bool
	// extended is set when an extension was sent, so the queue may hide the message longer than its receive asked.
	extended  bool
	isExpired bool // past its retention

	// receives is the receive count, receivesHere only since the message arrived in this queue; 0 if unknown.
	receives, receivesHere int
	// attempt is receivesHere without receives that never reached the app.
	attempt int
	readyAt time.Time
	// postponedAt is the first time; again is when it becomes ready, place its heap index.
	postponedAt, again time.Time
	place              int

	// Latest delivery:
	startedAt time.Time
	waited    time.Duration // from SentAt to startedAt
	// permit is held by the first message of a batch. self is a batch of one.
	permit uint64
	self   [1]*held
	// throttled is set if the target refused the message, last if this is its last receive, dead if it failed then.
	throttled, last, dead bool
	// letter is for the dead-letter queue, by instruction or after the last receive.
	letter      *queue.DeadLetter
	instruction queue.Instruction
}

// received records a receive. Some queues do not report Attempt for redriven messages.
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

// shift corrects times after a suspend, during which the queue's clock kept running.
func (h *held) shift(hidden time.Duration) {
	for _, t := range [...]*time.Time{&h.receivedAt, &h.arrivedAt, &h.hiddenFrom, &h.hiddenUntil} {
		*t = t.Add(-hidden)
	}
}

// left returns the longest possible extension.
func (h *held) left(now time.Time) time.Duration {
	return maxHidden - now.Sub(h.receivedAt) - 5*time.Second
}

// spent reports whether no extension can leave half a visibility timeout, the minimum to start a delivery.
func (h *held) spent(visibility time.Duration, now time.Time) bool {
	return h.left(now) < visibility/2 && h.hiddenUntil.Sub(now) <= visibility/2
}

// extension returns the new visibility, or 0 if none is due. Messages in flight are extended after half of it,
// waiting ones after a third, so that more than half is left when their turn comes.
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

// stale reports whether a message waited too long for a slot. Returning it ensures that deliveries start with more
// than half of the visibility left.
func (h *held) stale(o *Options, now time.Time) bool {
	return now.Sub(h.readyAt) >= min(o.VisibilityTimeout*3/8, 10*time.Second)+o.Batch.Window ||
		now.Sub(h.hiddenFrom) >= o.VisibilityTimeout/2
}

func (h *held) size() int {
	n := len(h.msg.Body)
	for _, a := range h.msg.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// life identifies a message in its current queue, because a redrive resets the receive count.
func life(id string, receives, here int) string {
	if here == 0 || here == receives {
		return id
	}
	return id + " " + strconv.Itoa(receives-here)
}

// group holds the messages of one FIFO message group. All come from one receive: a queue holds back groups in flight.
type group struct {
	id       string
	active   int // neither waiting nor settled: one message or one batch
	deleting int // part of active
	waiting  []*held
	// turning is set while all active messages are being deleted and others wait.
	turning bool
}

type purpose uint8

const (
	extendVisibility purpose = iota
	delayRetry
	returnMessage
)

// String returns the name used by [ChangeFailed].
func (p purpose) String() string {
	return [...]string{"extend", "retry", "give back"}[p]
}

// pending is a delete or visibility change that is waiting or in flight.
type pending struct {
	h          *held
	receipt    string
	purpose    purpose
	tries      int32
	visibility time.Duration // set when sent, unless an extension
	at         time.Time     // when the message becomes visible; zero for now
	until      time.Time     // the entry is useless afterwards
}

// isWanted reports whether a delete is still needed: neither confirmed nor superseded by a newer receipt.
func (p *pending) isWanted() bool { return p.h.stage == deleting && p.receipt == p.h.receipt }

func (p *pending) nextTry(now time.Time, random float64) time.Time {
	return now.Add(retryWait(int(p.tries), 100*time.Millisecond, 5*time.Second, random))
}
