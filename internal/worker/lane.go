package worker

import (
	"math"
	"slices"
	"time"

	"tendril/queue"
)

type lane struct {
	worker   *Worker
	backlog  backlog
	core     *core
	pool     *Pool
	messages *inventory
	gate     *gate
	limiter  *limiterState
	poller   *poller
	slots    *slots
	deletes  *deleter
	pace     *pace

	weight    int     // at least 1
	credit    float64 // in turns; see takeTurn
	wantsTurn bool
	granted   int       // slots reserved for messages being received
	nextCheck time.Time // by expireExpected
}

func (l *lane) resting(now time.Time) bool {
	p := l.pool
	return p.sleep > 0 && (now.Before(p.restUntil) || l.backlog.pollsEmpty && p.timeLeftInRound(l, now) < time.Second)
}

func (l *lane) preventsRest() bool {
	isActive := len(l.poller.open) > 0 || l.messages.ready.len() > 0
	return l.isOpen() && isActive && !l.backlog.pollsEmpty
}

func (l *lane) neededMessages() int {
	return l.granted*l.core.opts.Batch.Size - l.messages.ready.len() - l.messages.turning - l.poller.asked
}

func (l *lane) receivable(now time.Time) int {
	if !l.poller.mayReceive(now) {
		return 0
	}
	return l.likelyReceived((l.poller.want-len(l.poller.open))*queue.MaxBatch, now)
}

func (l *lane) isOpen() bool { return l.core.phase == running && l.gate.open() }

func (l *lane) freeSlots(now time.Time) int {
	if !l.isOpen() || l.limiter.refusing(now) {
		return 0
	}
	free := max(l.core.limit-l.core.inWork, 0)
	if l.limiter != nil {
		free = min(free, l.limiterRoom(now))
	}
	return free
}

func (l *lane) heldOrExpected(now time.Time) int {
	l.expireExpected(now)
	n := l.poller.expected
	if l.slots.startable(now) {
		n += l.messages.ready.len()
	}
	if !l.deletes.failing() {
		n += l.messages.turning
	}
	return n
}

// usableSlots includes the queue's reserved slots.
func (l *lane) usableSlots(now time.Time) int {
	free := l.freeSlots(now)
	if free == 0 {
		return 0
	}
	if !l.backlog.isTrickle() && l.expectsMore(now) {
		return free // further receives will fill the slots
	}

	slots := l.slotsFor(l.heldOrExpected(now))
	if slots <= l.granted {
		slots += l.slotsFor(l.receivable(now))
	}
	return min(slots, free)
}

func (l *lane) slotsFor(messages int) int {
	size := l.core.opts.Batch.Size
	return (messages + size - 1) / size
}

func (l *lane) hasWork(now time.Time) bool {
	return !l.limiter.refusing(now) && l.limiterRoom(now) > 0 && l.wantsSlots(now)
}

// wantsSlots ignores the limiter.
func (l *lane) wantsSlots(now time.Time) bool {
	reachedOwnLimit := l.core.limit < l.pool.concurrency && l.core.limit-l.core.inWork <= l.granted
	if !l.isOpen() || reachedOwnLimit {
		return false
	}
	if l.slots.startable(now) || l.messages.turning > 0 && !l.deletes.failing() {
		return true
	}
	return !l.backlog.isTrickle() && l.expectsMore(now)
}

func (l *lane) expectsMore(now time.Time) bool {
	l.expireExpected(now)
	return l.poller.expected > 0 || l.receivable(now) > 0
}

func (l *lane) demand(now time.Time) demand {
	switch {
	case l.usableSlots(now) > l.granted:
		return hasDemand
	case l.pool.strict && l.hasWork(now):
		return openDemand
	}
	return noDemand
}

func (l *lane) overdue(now time.Time) time.Duration {
	if l.usableSlots(now) <= l.granted {
		return 0
	}
	if wait := l.nextWaited(now); wait > l.core.opts.MaxWait {
		return wait
	}
	return 0
}

// nextWaited returns how long the next message has waited. Without a ready one, it is the longest possible wait; but 0
// while a receive checks a queue without plenty, and for MaxWait after the start if no receive has returned.
func (l *lane) nextWaited(now time.Time) time.Duration {
	if h := l.messages.ready.first(); h != nil {
		return now.Round(0).Sub(h.msg.SentAt)
	}
	isBeingChecked := l.poller.expected > 0 || l.granted > 0
	if isBeingChecked && !l.backlog.plenty {
		return 0
	}
	if l.backlog.earliestSent.IsZero() && now.Sub(l.core.stats.started) <= l.core.opts.MaxWait {
		return 0
	}
	return now.Round(0).Sub(l.backlog.earliestSent)
}

func (l *lane) limiterRoom(now time.Time) int {
	room := l.limiter.room(now)
	if room >= ampleRoom {
		return room
	}
	_, reserved := l.claimedByOthers()
	return max(room-reserved, 0)
}

func (l *lane) limitedToGranted(now time.Time) bool {
	return l.limiter != nil && l.isOpen() && (l.limiter.refusing(now) || l.limiterRoom(now) <= l.granted)
}

func (l *lane) limiterIsTight(now time.Time) bool {
	if l.limiter == nil {
		return false
	}
	queues := 0
	for _, m := range l.pool.lanes {
		if m.limiter.shares(l.limiter) {
			queues++
		}
	}
	return l.limiter.room(now) < queues
}

// claimedByOthers returns the room of a shared limiter that other queues need: for all messages held or expected, and
// for their reserved slots alone.
func (l *lane) claimedByOthers() (claimed, reserved int) {
	for _, m := range l.pool.lanes {
		if m == l || !m.limiter.shares(l.limiter) {
			continue
		}
		messages := m.readyOrExpected()
		forSlots := min(m.granted*m.core.opts.Batch.Size, max(m.granted, messages))
		claimed += max(messages, forSlots)
		reserved += forSlots
	}
	return claimed, reserved
}

func (l *lane) readyOrExpected() int { return l.messages.ready.len() + l.poller.expected }

// permittedByLimiter returns how many messages the next receive may request: the queue's share of the limiter's room,
// or as many as its reserved slots need if that is more. Empty queues get shares too, because messages may arrive in
// all of them at once. In strict order, a queue gets only what its reserved slots need while a higher one waits for the
// limiter.
func (l *lane) permittedByLimiter(room int, now time.Time) int {
	claimed, reserved := 0, 0
	if room < ampleRoom {
		claimed, reserved = l.claimedByOthers()
	}
	need := min(l.neededMessages(), room-reserved)
	isWaiting := func(m *lane) bool { return m.limiter.shares(l.limiter) && m.wantsSlots(now) }
	if l.pool.strict && slices.ContainsFunc(l.pool.above(l), isWaiting) {
		return need
	}
	share := int(math.Ceil(float64(room) * l.pool.shareOfLimiter(l, now)))
	used := l.readyOrExpected()
	return max(min(roomForFullBatch(share, used), room-claimed-used), need)
}

func (l *lane) room(now time.Time) int {
	p := l.pool
	need := l.neededMessages()
	if p.strict && slices.ContainsFunc(p.above(l), func(m *lane) bool { return m.hasWork(now) }) {
		return clamp(need, 0, queue.MaxBatch)
	}

	free := clamp(p.concurrency-p.inWork-p.granted, 0, max(l.core.limit-l.core.inWork, 0)) * l.core.opts.Batch.Size
	ahead := l.prefetch(now)
	if l.emptyNow(now) {
		if len(l.poller.open) > 0 {
			return 0
		}
		return clamp(free+ahead, 0, queue.MaxBatch)
	}

	room := need + free + ahead
	if need <= 0 && free == 0 && room < min(queue.MaxBatch, ahead) {
		return 0
	}

	return clamp(room, 0, queue.MaxBatch)
}

func (l *lane) prefetch(now time.Time) int {
	p := l.pool
	if !l.poller.mayPrefetch() || !p.pace.isFast(now) {
		return 0
	}
	rate := p.pace.rate(p.concurrency) * max(l.pace.batch, 1) * p.shareOf(l, now)
	if l.pace.service > 0 {
		rate = min(rate, l.pace.rate(l.core.limit))
	}
	return l.pace.prefetchAtRate(rate, &l.core.opts)
}

type backlog struct {
	// known means that a receive has returned. plenty means that the last response did not wait and contained more
	// than half of the requested messages. A known queue without plenty has a trickle of messages.
	known, plenty, empty bool
	emptyAt              time.Time
	// receivedAt is the time of the last response with messages; the others are the last two times at which the queue
	// seemed empty without having a trickle.
	receivedAt, presumedEmptyAt, presumedEmptyBefore time.Time
	// earliestSent bounds the next message's sent time; zero before the first response.
	earliestSent time.Time
	pollsEmpty   bool
}

func (b *backlog) isTrickle() bool { return b.known && !b.plenty }

// presumeEmpty returns false for a trickle, which is often empty.
func (b *backlog) presumeEmpty(now time.Time) (mayHavePlenty bool) {
	b.empty, b.emptyAt = true, now
	if b.isTrickle() {
		return false
	}
	if !b.presumedEmptyAt.Equal(now) {
		b.presumedEmptyBefore, b.presumedEmptyAt = b.presumedEmptyAt, now
	}
	return true
}

func (b *backlog) recordMessages(lastSent time.Time, plenty bool, now time.Time) {
	b.known = true
	b.empty = false
	b.plenty = plenty
	b.receivedAt = now
	b.earliestSent = lastSent
}

func (b *backlog) recordEmpty(now time.Time) {
	b.known = true
	b.empty = true
	b.plenty = false
	b.emptyAt = now
	b.earliestSent = now.Round(0)
}

// emptyFor is how long a queue without an open receive counts as empty.
const emptyFor = time.Second

const (
	plentyTimeoutLeast = 250 * time.Millisecond
	plentyTimeoutMost  = 10 * time.Second
	firstTimeoutLeast  = time.Second
)

// emptyTimeout returns how long a receive may take before the queue counts as empty.
//
// With plenty, it is five times the slowest recent call, 250 ms to 10 s, but at least twice that call: one receive in
// a hundred is much slower, and the queue would lose its turns. It is at most a twentieth of the time since the queue
// last seemed empty, because slots are idle meanwhile. For a trickle or a tight limiter, it is a few typical round
// trips.
func (l *lane) emptyTimeout(now time.Time) time.Duration {
	slowest := max(l.pace.calls.sum(now).most, l.pace.roundTrip, l.pace.call)
	usual := l.poller.usualResponseTime(now)
	switch {
	case l.backlog.isTrickle():
		return usual
	case slowest == 0:
		return l.firstTimeout(usual, now)
	case l.limiterIsTight(now):
		return usual
	}
	most := max(clamp(5*slowest, plentyTimeoutLeast, plentyTimeoutMost), 2*slowest)
	if l.backlog.presumedEmptyAt.IsZero() {
		return most
	}
	return min(most, max(now.Sub(l.backlog.presumedEmptyAt)/20, usual))
}

// firstTimeout is the timeout before the first response: three times the slowest call of any queue, at least a
// second, or an entire long poll while no queue has responded, because no other can use the slots. In strict order or
// with a tight limiter, it stays short, because a long wait would block other queues.
func (l *lane) firstTimeout(usual time.Duration, now time.Time) time.Duration {
	if l.limiterIsTight(now) {
		return max(usualResponseFirst, usual)
	}
	var slowest time.Duration
	responded := false // also true for responses that waited, which do not measure a call
	for _, m := range l.pool.lanes {
		slowest = max(slowest, m.pace.calls.sum(now).most)
		responded = responded || slowest > 0 || m.backlog.known
	}
	if !responded && !l.pool.strict {
		return l.core.opts.WaitTime
	}
	return max(firstTimeoutLeast, 3*slowest)
}

func (l *lane) emptyNow(now time.Time) bool {
	return l.backlog.empty && (len(l.poller.open) > 0 || now.Sub(l.backlog.emptyAt) < emptyFor)
}

func (l *lane) likelyReceived(n int, now time.Time) int {
	switch {
	case l.emptyNow(now):
		return 0
	case l.backlog.isTrickle():
		return 1
	}
	return n
}

func (l *lane) expectMessages(o *openReceive) {
	o.expected = l.likelyReceived(o.asked, o.start)
	if o.expected == 0 {
		return
	}

	until := l.expectedUntil(o, min(l.emptyTimeout(o.start), firstTimeoutLeast))
	if l.poller.expected == 0 || until.Before(l.nextCheck) {
		l.nextCheck = until
	}
	l.poller.expected += o.expected
}

func (l *lane) expectedUntil(o *openReceive, timeout time.Duration) time.Time {
	return later(o.start, l.backlog.receivedAt).Add(timeout)
}

func (l *lane) expireExpected(now time.Time) {
	if l.poller.expected == 0 || now.Before(l.nextCheck) {
		return
	}

	timeout := l.emptyTimeout(now)
	l.nextCheck = now.Add(min(timeout, plentyTimeoutLeast)) // other queues' responses may shorten the timeout
	for o := range l.poller.open {
		if o.expected == 0 {
			continue
		}
		until := l.expectedUntil(o, timeout)
		if now.Before(until) {
			l.nextCheck = earlier(l.nextCheck, until)
			continue
		}
		l.poller.expected -= o.expected
		o.expected = 0
		o.presumedEmpty = l.backlog.presumeEmpty(now)
	}
}

// nextExpiry returns when to call expireExpected again, or zero if no slots wait for expected messages.
func (l *lane) nextExpiry() time.Time {
	p := l.pool
	if l.poller.expected == 0 || (p.granted == 0 && !(p.strict && p.inWork < p.concurrency)) {
		return time.Time{}
	}
	return l.nextCheck
}

func (l *lane) updateBacklog(o *openReceive, msgs []queue.Message, now time.Time) {
	if n := len(msgs); n > 0 {
		l.messagesReceived(o, n, msgs[n-1].SentAt, now)
		return
	}
	if o.canceled {
		return
	}

	l.backlog.recordEmpty(now)
	if now.Sub(o.start) >= o.wait/2 {
		l.backlog.pollsEmpty = true
		l.pool.restIfEmpty(now)
	}
}

func (l *lane) messagesReceived(o *openReceive, n int, lastSent, now time.Time) {
	if o.waited && o.expected > 0 {
		l.backlog.presumeEmpty(now)
	}
	l.backlog.recordMessages(lastSent, 2*n > o.asked && !o.waited, now)
	if o.presumedEmpty && !o.waited {
		l.backlog.presumedEmptyAt = l.backlog.presumedEmptyBefore // the queue was slow, not empty
	}
	if !l.backlog.plenty {
		l.nextCheck = now
	}
	for _, m := range l.pool.lanes {
		m.backlog.pollsEmpty = false
	}
}
