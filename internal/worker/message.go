package worker

import (
	"math"
	"strconv"
	"time"

	"tendril/queue"
)

type stage uint8

const (
	waiting stage = iota // behind another message of its FIFO group
	ready
	posting
	postponed     // not attempted; will be delivered again
	deadLettering // not yet accepted by the dead-letter queue
	deleting
	gone // settled, returned or dropped
)

func (s stage) String() string {
	return [...]string{"waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", "gone"}[s]
}

// held is a received, unsettled message. The lock guards every field but msg, which does not change.
type held struct {
	msg   queue.Message // Attempt is [Settled].Attempt
	group *group
	stage stage

	receipt    string
	visibility time.Duration
	// receivedAt and arrivedAt bound the time of the receive. The visibility timeout runs from hiddenFrom to
	// hiddenUntil.
	receivedAt, arrivedAt, hiddenFrom, hiddenUntil time.Time
	nextExtend                                     time.Time
	nextChange                                     *pending
	changing                                       bool
	lapsed                                         bool
	// After an extension, the message may stay invisible longer than the receive requested.
	extended  bool
	isExpired bool

	// receivesHere is the count in this queue, or 0 if unknown.
	receives, receivesHere      int
	readyAt                     time.Time
	postponedAt, postponedUntil time.Time

	startedAt time.Time
	waited    time.Duration // from SentAt to startedAt
	// permit is set on a batch's first message. batchOfOne has only this message.
	permit                                      uint64
	batchOfOne                                  [1]*held
	throttled, onLastReceive, failedLastReceive bool
	letter                                      *queue.DeadLetter
	instruction                                 queue.Instruction
}

func (h *held) task() string { return h.msg.Attribute(queue.AttributeTask) }

// If the queue does not report Attempt, receivesHere is unknown for redriven messages.
func (h *held) received(m *queue.Message, visibility time.Duration, hiddenSince, now time.Time) {
	h.receipt = m.ReceiptHandle
	h.receivedAt = hiddenSince
	h.arrivedAt = now
	h.lapsed = false
	h.extended = false
	h.nextExtend = time.Time{}
	h.visibility = visibility
	h.hide(hiddenSince, visibility)
	h.receives = m.ReceiveCount
	h.receivesHere = m.Attempt
	if m.Attempt == 0 && m.DeadLetterSource == "" {
		h.receivesHere = m.ReceiveCount
	}
}

func (h *held) hide(t time.Time, d time.Duration) {
	h.hiddenFrom, h.hiddenUntil = t, t.Add(d)
}

func (h *held) moveBack(hidden time.Duration) {
	for _, t := range [...]*time.Time{&h.receivedAt, &h.arrivedAt, &h.hiddenFrom, &h.hiddenUntil} {
		*t = t.Add(-hidden)
	}
}

// postponeBy records that h was not attempted and may be delivered again after d.
func (h *held) postponeBy(d time.Duration, now time.Time) {
	if h.postponedAt.IsZero() {
		h.postponedAt = now
	}
	h.postponedUntil = now.Add(d)
}

// longestTimeout is the longest timeout that SQS allows, with a margin for a slow call.
func (h *held) longestTimeout(now time.Time) time.Duration {
	return maxHidden - now.Sub(h.receivedAt) - 5*time.Second
}

// tooOldToExtend reports whether no extension can leave the half of a visibility timeout that a delivery needs.
func (h *held) tooOldToExtend(now time.Time) bool {
	return h.longestTimeout(now) < h.visibility/2 && h.hiddenUntil.Sub(now) <= h.visibility/2
}

// extension returns the visibility timeout to set, or 0 if not due.
func (h *held) extension(now time.Time) time.Duration {
	if h.changing || h.lapsed || now.Before(h.nextExtend) || now.Sub(h.hiddenFrom) < h.extendAfter() {
		return 0
	}
	timeout := min(h.visibility, h.longestTimeout(now))
	if gain := now.Add(timeout).Sub(h.hiddenUntil); gain <= time.Second/2 {
		return 0
	}
	return timeout
}

// extendAfter is the age of the visibility timeout at which to extend it: earlier for waiting and postponed messages,
// so that more than half is left when their turn comes.
func (h *held) extendAfter() time.Duration {
	switch h.stage {
	case posting, deadLettering:
		return h.visibility / 2
	case waiting, postponed:
		return h.visibility / 3
	}
	return math.MaxInt64
}

func (h *held) isHalfway(now time.Time) bool { return now.Sub(h.hiddenFrom) >= h.visibility/2 }

// stale reports whether h has waited too long to start with more than half of its visibility timeout left.
func (h *held) stale(o *Options, now time.Time) bool {
	longest := min(h.visibility*3/8, 10*time.Second) + o.Batch.Window
	return now.Sub(h.readyAt) >= longest || h.isHalfway(now)
}

func (h *held) size() int {
	n := len(h.msg.Body)
	for _, a := range h.msg.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// keyInQueue identifies a message's stay in its current queue: a move between queues keeps the ID and the receive
// count, but starts the attempts again.
func keyInQueue(id string, receives, receivesHere int) string {
	receivesBefore := receives - receivesHere
	if receivesHere == 0 || receivesBefore == 0 {
		return id
	}
	return id + " " + strconv.Itoa(receivesBefore)
}

// group holds the messages of one FIFO message group. All are from one receive, because a queue returns no others
// of the group while one is in flight.
type group struct {
	id       string
	active   int // messages being delivered or deleted: one message or one batch
	deleting int
	waiting  []*held
	// turning means that all active messages are being deleted and others wait.
	turning bool
}

type purpose uint8

const (
	extendVisibility purpose = iota
	delayRetry
	returnMessage
)

func (p purpose) String() string {
	return [...]string{"extend", "retry", "return"}[p]
}

type pending struct {
	h          *held
	receipt    string
	purpose    purpose
	tries      int32
	visibility time.Duration // for extensions; otherwise set when sent
	at         time.Time     // when the message becomes visible; zero means now
	until      time.Time     // the change has no effect after this time
}

func (p *pending) isWanted() bool { return p.h.stage == deleting && p.receipt == p.h.receipt }

func (p *pending) mayExtend() bool {
	return p.h.stage != gone && p.h.stage != deleting && !p.h.lapsed && p.receipt == p.h.receipt
}

func (p *pending) nextTry(now time.Time, random float64) time.Time {
	return now.Add(retryWait(int(p.tries), 100*time.Millisecond, 5*time.Second, random))
}
