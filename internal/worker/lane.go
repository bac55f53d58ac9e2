package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// lane is one queue of a pool: its messages here, those that may come, and the slots that
// are reserved for it.
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

	weight  int     // at least 1
	credit  float64 // turns that it is owed
	wants   bool    // the present turn
	granted int     // slots reserved for messages that are on their way
	// nextCheck is when the next of the receives that messages are expected of
	// has been open for so long that the queue must be empty.
	nextCheck time.Time
}

// resting reports whether the queue must not be received from now: the pool sleeps, or
// the queue was found empty and the round is about to end.
func (l *lane) resting(now time.Time) bool {
	p := l.pool
	return p.sleep > 0 && (now.Before(p.restUntil) || l.backlog.pollsEmpty && p.roundLeft(l, now) < time.Second)
}

// needed returns how many messages have a reserved slot and are not on their
// way yet.
func (l *lane) needed() int {
	return l.granted*l.core.opts.Batch.Size - l.messages.ready.len() - l.messages.turning - l.poller.asked
}

// coming returns how many messages receives that could begin now may bring.
func (l *lane) coming(now time.Time) int {
	if !l.poller.mayBegin(now) {
		return 0
	}
	return l.expect((l.poller.want-len(l.poller.open))*queue.MaxBatch, now)
}

// isOpen reports whether the queue takes part in the pool's order.
func (l *lane) isOpen() bool { return l.core.phase == running && l.gate.open() }

// able returns how many more deliveries the worker could start soon.
func (l *lane) able(now time.Time) int {
	if !l.isOpen() || l.limiter.refusing(now) {
		return 0
	}
	able := max(l.core.limit-l.core.inWork, 0)
	if l.limiter != nil {
		able = min(able, l.limiterRoom(now))
	}
	return able
}

// near returns how many messages are in hand or expected of open receives.
func (l *lane) near(now time.Time) int {
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

// usable returns for how many slots, those granted included, there is or may
// soon be work.
func (l *lane) usable(now time.Time) int {
	able := l.able(now)
	if able == 0 {
		return 0
	}
	size := l.core.opts.Batch.Size
	near := l.near(now)
	if (l.backlog.plenty || !l.backlog.known) && (l.poller.expected > 0 || l.coming(now) > 0) {
		return able // as many as it gets: its next receives bring more
	}
	slots := (near + size - 1) / size
	if slots <= l.granted {
		slots += (l.coming(now) + size - 1) / size
	}
	return min(slots, able)
}

// hasWork reports whether in strict order no queue below may receive: there is
// work here, or a receive may bring some, and its own limits leave slots for it.
func (l *lane) hasWork(now time.Time) bool {
	return !l.limiter.refusing(now) && l.limiterRoom(now) > 0 && l.wantsSlots(now)
}

// wantsSlots is hasWork whatever the limiter lets begin.
func (l *lane) wantsSlots(now time.Time) bool {
	switch {
	case !l.isOpen(), l.core.limit < l.pool.concurrency && l.core.limit-l.core.inWork <= l.granted:
		return false
	case l.slots.startable(now) || l.messages.turning > 0 && !l.deletes.failing():
		return true
	case l.backlog.known && !l.backlog.plenty:
		return false
	}
	l.expireExpected(now)
	return l.poller.expected > 0 || l.coming(now) > 0
}

// demand returns whether the queue wants the next free slot.
func (l *lane) demand(now time.Time) demand {
	switch {
	case l.usable(now) > l.granted:
		return hasDemand
	case l.pool.strict && l.hasWork(now):
		return openDemand
	}
	return noDemand
}

// overdue returns how long the next message of this queue has been waiting if
// that is longer than MaxWait, 0 if not. Of a queue with nothing in hand that is
// how long it may have been: a look will tell, one at a time unless the last one
// brought plenty.
func (l *lane) overdue(now time.Time) time.Duration {
	if l.usable(now) <= l.granted {
		return 0
	}
	wait := now.Round(0).Sub(l.backlog.oldest)
	switch h := l.messages.ready.first(); {
	case h != nil:
		wait = now.Round(0).Sub(h.msg.SentAt)
	case (l.poller.expected > 0 || l.granted > 0) && !l.backlog.plenty:
		return 0
	case l.backlog.oldest.IsZero() && now.Sub(l.core.stats.started) <= l.core.opts.MaxWait:
		return 0
	}
	if wait <= l.core.opts.MaxWait {
		return 0
	}
	return wait
}

// limiterRoom returns how many deliveries the limiter lets begin soon, beyond those
// for which others that share it have slots reserved.
func (l *lane) limiterRoom(now time.Time) int {
	room := l.limiter.room(now)
	_, reserved := l.usedByOthers(room)
	return max(room-reserved, 0)
}

// limited reports whether a limiter lets the worker have no more than the slots
// that it was granted.
func (l *lane) limited(now time.Time) bool {
	return l.limiter != nil && l.isOpen() && (l.limiter.refusing(now) || l.limiterRoom(now) <= l.granted)
}

// limiterIsTight reports whether the limiter has room for fewer messages than queues
// share it.
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

// usedByOthers returns how much of a limiter's room the other queues that share it have
// in use: by messages in hand or expected of receives under way, and reserved by the
// slots that they were granted. Both are 0 if the room is larger than any use.
func (l *lane) usedByOthers(room int) (used, reserved int) {
	if room >= maxPrefetch {
		return 0, 0
	}
	for _, m := range l.pool.lanes {
		if m == l || !m.limiter.shares(l.limiter) {
			continue
		}
		near := m.messages.ready.len() + m.poller.expected
		slots := min(m.granted*m.core.opts.Batch.Size, max(m.granted, near))
		used, reserved = used+max(near, slots), reserved+slots
	}
	return used, reserved
}

// permitted returns how many messages the next receive may ask for as far as the limiter
// is concerned: its share of the room that the others leave, and what it has reserved slots
// for. A queue that seems empty waits for no more than an equal part, since messages may
// come to all of them at once. Nor may one below a queue that waits for the same limiter: in
// strict order that one gets what the limiter lets through next.
func (l *lane) permitted(room int, now time.Time) int {
	near := l.messages.ready.len() + l.poller.expected
	used, reserved := l.usedByOthers(room)
	need := min(l.needed(), room-reserved)
	if l.pool.strict && l.pool.waitsAbove(l, now) {
		return need
	}
	share := int(math.Ceil(float64(room) * l.pool.shareOfRoom(l, now)))
	return max(min(inTens(share, near), room-used-near), need)
}

// room returns how many messages the next receive may bring, 0 for
// none now: what slots are reserved or free for, and the prefetch. A queue known to be
// empty has one receive that waits, as long as what it brings can start soon.
// Below a queue with work, strict order leaves only the reserved slots.
func (l *lane) room(now time.Time) int {
	p := l.pool
	need := l.needed()
	if p.strict && p.workAbove(l, now) {
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

// prefetch returns how many messages to hold beyond those that have a slot: by the law
// of a single queue, from its share of the pool's speed.
func (l *lane) prefetch(now time.Time) int {
	p := l.pool
	if l.core.limit < l.core.opts.Concurrency || l.messages.ready.bytes+l.messages.deferred.bytes >= l.core.opts.PrefetchBytes ||
		p.pace.service == 0 || p.pace.service >= slowApp || now.Sub(p.pace.finished) >= slowApp {
		return 0
	}
	rate := p.pace.rate(p.concurrency) * max(l.pace.batch, 1) * p.shareOf(l, now)
	if l.pace.service > 0 {
		rate = min(rate, l.pace.rate(l.core.limit))
	}
	return l.pace.ahead(rate, &l.core.opts)
}

// backlog is a pool's estimate of the backlog of one queue.
type backlog struct {
	// known: at least one receive was answered. plenty: the last one brought more than
	// half of what it asked for, and did not have to wait; a queue that is known and has
	// no plenty is a trickle. empty: the last one brought nothing, or one is waiting; as
	// of emptyAt.
	known, plenty, empty bool
	emptyAt              time.Time
	// fedAt is the last answer that brought messages; gaveUpAt is when messages of a
	// queue with plenty were expected in vain last, gaveUpBefore the time before that.
	fedAt, gaveUpAt, gaveUpBefore time.Time
	// oldest is when the next message was sent at the earliest, as far as is known:
	// the last one that came was, or the queue was found empty; zero if it was
	// never answered.
	oldest time.Time
	// pollsEmpty: found empty by a whole long poll in this round.
	pollsEmpty bool
}

// giveUp notes that the queue counts as empty from now on. It reports whether it
// was awaited for as long as a queue with plenty is.
func (b *backlog) giveUp(now time.Time) (hadPlenty bool) {
	b.empty, b.emptyAt = true, now
	if b.known && !b.plenty {
		return false
	}
	if !b.gaveUpAt.Equal(now) {
		b.gaveUpBefore, b.gaveUpAt = b.gaveUpAt, now
	}
	return true
}

// emptyFor is how long a queue that was found empty counts as empty while no receive
// waits there. Then the next free slot is worth a look.
const emptyFor = time.Second

// Bounds of emptyTimeout, of a queue with plenty and of one that has not answered yet.
const (
	plentyTimeoutLeast = 250 * time.Millisecond
	plentyTimeoutMost  = 10 * time.Second
	firstTimeoutLeast  = time.Second
)

// emptyTimeout is how long the answer of a receive is awaited, from its begin or the
// last answer that brought messages, before the queue counts as empty.
//
// A queue with plenty gets five times the slowest round trip of late (deletes count too,
// since they never wait), 250 ms to 10 s, or twice if that is longer: one receive in a
// hundred takes many times as long as the others, and to take its queue for empty would give
// its turns away. Meanwhile its slots stand idle: for one that often becomes empty no more
// than a twentieth of the time since it did so last. A trickle has one slot at most, and is
// awaited for a few usual round trips. So is any queue where a limiter has room for fewer
// messages than there are queues: what is kept for it is lost to all.
func (l *lane) emptyTimeout(now time.Time) time.Duration {
	slowest := max(l.pace.calls.sum(now).most, l.pace.roundTrip, l.pace.call)
	usual := l.poller.usualAnswer(now)
	switch {
	case l.backlog.known && !l.backlog.plenty:
		return usual
	case slowest == 0:
		return l.firstTimeout(usual, now)
	case l.limiterIsTight(now):
		return usual
	}
	most := max(clamp(5*slowest, plentyTimeoutLeast, plentyTimeoutMost), 2*slowest)
	if l.backlog.gaveUpAt.IsZero() {
		return most
	}
	return min(most, max(now.Sub(l.backlog.gaveUpAt)/20, usual))
}

// firstTimeout is emptyTimeout for a queue that has not answered yet: a second, or three
// times as long as other queues take. Before one of them has answered no queue could use the
// slots that are reserved here; but in strict order the others do not even receive, nor where a limiter has
// room for fewer than there are queues: then each must have its look soon.
func (l *lane) firstTimeout(usual time.Duration, now time.Time) time.Duration {
	if l.limiterIsTight(now) {
		return max(usualAnswerFirst, usual)
	}
	var slowest time.Duration
	for _, m := range l.pool.lanes {
		slowest = max(slowest, m.pace.calls.sum(now).most)
	}
	if slowest == 0 && !l.pool.strict {
		return l.core.opts.WaitTime
	}
	return max(firstTimeoutLeast, 3*slowest)
}

// leastTrip returns the shortest round trip of late. Queues that answer in about the same
// time are taken to be at one server: they have it in common, else the one that came last
// would take its neighbours' load for the usual.
func (l *lane) leastTrip(own time.Duration, now time.Time) time.Duration {
	least := own
	for _, m := range l.pool.lanes {
		if trip := m.pace.trips.sum(now).least; trip > 0 && own <= 8*trip && (least == 0 || trip < least) {
			least = trip
		}
	}
	return least
}

// emptyNow reports whether the queue is known to hold nothing.
func (l *lane) emptyNow(now time.Time) bool {
	return l.backlog.empty && (len(l.poller.open) > 0 || now.Sub(l.backlog.emptyAt) < emptyFor)
}

// expect returns how many messages to expect of a receive that asks for n:
// all of them while the queue has plenty or is unknown, one of a trickle.
func (l *lane) expect(n int, now time.Time) int {
	switch {
	case l.emptyNow(now):
		return 0
	case l.backlog.plenty || !l.backlog.known:
		return n
	}
	return 1
}

// opening completes a receive that is about to begin.
func (l *lane) opening(o *openReceive) {
	o.wait = l.pool.waitFor(l, o.start)
	if o.expected = l.expect(o.asked, o.start); o.expected == 0 {
		return
	}
	until := l.expectedUntil(o, min(l.emptyTimeout(o.start), firstTimeoutLeast))
	if l.poller.expected == 0 || until.Before(l.nextCheck) {
		l.nextCheck = until
	}
	l.poller.expected += o.expected
}

// expectedUntil returns when an open receive counts as waiting on an empty queue.
func (l *lane) expectedUntil(o *openReceive, timeout time.Duration) time.Time {
	return later(o.start, l.backlog.fedAt).Add(timeout)
}

// expireExpected stops expecting something of receives that have been waiting.
func (l *lane) expireExpected(now time.Time) {
	if l.poller.expected == 0 || now.Before(l.nextCheck) {
		return
	}
	timeout := l.emptyTimeout(now)
	next := now.Add(min(timeout, plentyTimeoutLeast)) // what others learn meanwhile may shorten it
	for o := range l.poller.open {
		switch at := l.expectedUntil(o, timeout); {
		case o.expected == 0:
		case !now.Before(at):
			l.poller.expected -= o.expected
			o.expected, o.gaveUp = 0, l.backlog.giveUp(now)
		case at.Before(next):
			next = at
		}
	}
	l.nextCheck = next
}

// expectedDue returns when to call expireExpected at the latest, zero if no queue waits
// for that.
func (l *lane) expectedDue() time.Time {
	p := l.pool
	if l.poller.expected == 0 || (p.granted == 0 && !(p.strict && p.inWork < p.concurrency)) {
		return time.Time{}
	}
	return l.nextCheck
}

// answered takes the answer of a receive.
func (l *lane) answered(o *openReceive, msgs []queue.Message, now time.Time) {
	switch n := len(msgs); {
	case n > 0:
		if o.waited && o.expected > 0 {
			l.backlog.giveUp(now) // slots were kept for an empty queue all that time
		}
		l.backlog.known = true
		l.backlog.empty = false
		l.backlog.plenty = 2*n > o.asked && !o.waited
		l.backlog.fedAt = now
		l.backlog.oldest = msgs[n-1].SentAt
		if o.gaveUp && !o.waited {
			l.backlog.gaveUpAt = l.backlog.gaveUpBefore // it was slow, not empty
		}
		if !l.backlog.plenty {
			l.nextCheck = now // the others are awaited for less long now
		}
		for _, m := range l.pool.lanes {
			m.backlog.pollsEmpty = false
		}
	case !o.cancelled:
		l.backlog.known = true
		l.backlog.empty = true
		l.backlog.plenty = false
		l.backlog.emptyAt = now
		l.backlog.oldest = now.Round(0)
		if now.Sub(o.start) >= o.wait/2 {
			l.backlog.pollsEmpty = true
			l.pool.rest(now)
		}
	}
}
