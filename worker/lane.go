package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// lane is one queue of a pool: what it has in hand, what may come, and the slots that
// are reserved for it.
type lane struct {
	*core
	backlog
	pool     *Pool
	messages *inventory
	gate     *gate
	limiter  *limiterState
	poller   *poller
	slots    *slots
	settler  *settler
	pace     *pace

	weight  int     // at least 1
	credit  float64 // turns that it is owed
	claims  bool    // the present turn
	granted int     // slots reserved for messages that are on their way
	// nextCheck is when the next of the receives that messages are expected of
	// has been open for so long that the queue must be empty.
	nextCheck time.Time
}

// resting reports whether the queue must not be received from now: the pool sleeps, or
// the queue was found empty and the round is about to end.
func (l *lane) resting(now time.Time) bool {
	p := l.pool
	return p.sleep > 0 && (now.Before(p.restUntil) || l.pollsEmpty && p.roundLeft(l, now) < time.Second)
}

// needed returns how many messages have a reserved slot and are not on their
// way yet.
func (l *lane) needed() int {
	return l.granted*l.opts.Batch.Size - l.messages.ready.len() - l.messages.turning - l.poller.asked
}

// coming returns how many messages receives that could begin now may bring.
func (l *lane) coming(now time.Time) int {
	if !l.poller.mayBegin(now) {
		return 0
	}
	return l.expect((l.poller.want-len(l.poller.open))*queue.MaxBatch, now)
}

// isOpen reports whether the queue takes part in the pool's order.
func (l *lane) isOpen() bool { return l.phase == running && l.gate.open() }

// able returns how many more deliveries the worker could start soon.
func (l *lane) able(now time.Time) int {
	if !l.isOpen() || l.limiter.refusing(now) {
		return 0
	}
	able := max(l.limit-l.inWork, 0)
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
	if l.settler.deletes.deletes.fails == 0 {
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
	size := l.opts.Batch.Size
	near := l.near(now)
	if (l.plenty || !l.known) && (l.poller.expected > 0 || l.coming(now) > 0) {
		return able // as many as it gets: its next receives bring more
	}
	slots := (near + size - 1) / size
	if slots <= l.granted {
		slots += (l.coming(now) + size - 1) / size
	}
	return min(slots, able)
}

// hasWork reports whether in strict order nobody below may receive: there is
// work here, or a receive may bring some, and its own limit leaves slots for it.
func (l *lane) hasWork(now time.Time) bool {
	switch {
	case !l.isOpen() || l.limiter.refusing(now) || l.limiterRoom(now) == 0,
		l.limit < l.pool.concurrency && l.limit-l.inWork <= l.granted:
		return false
	case l.slots.startable(now) || l.messages.turning > 0 && l.settler.deletes.deletes.fails == 0:
		return true
	case l.known && !l.plenty:
		return false
	}
	l.expireExpected(now)
	return l.poller.expected > 0 || l.coming(now) > 0
}

// claim returns whether the queue wants the next free slot.
func (l *lane) claim(now time.Time) claim {
	switch {
	case l.usable(now) > l.granted:
		return claimed
	case l.pool.strict && l.hasWork(now):
		return undecided
	}
	return unclaimed
}

// overdue returns how long the next message of this queue has been waiting if
// that is longer than MaxWait, 0 if not. Of a queue with nothing in hand that is
// how long it may have been: a look will tell, one at a time unless the last one
// brought plenty.
func (l *lane) overdue(now time.Time) time.Duration {
	if l.usable(now) <= l.granted {
		return 0
	}
	wait := now.Round(0).Sub(l.oldest)
	switch h := l.messages.ready.first(); {
	case h != nil:
		wait = now.Round(0).Sub(h.msg.SentAt)
	case (l.poller.expected > 0 || l.granted > 0) && !l.plenty:
		return 0
	case l.oldest.IsZero() && now.Sub(l.stats.started) <= l.opts.MaxWait:
		return 0
	}
	if wait <= l.opts.MaxWait {
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
// slots that they were granted. Both are 0 where the room is larger than anybody's use.
func (l *lane) usedByOthers(room int) (used, reserved int) {
	if room >= maxPrefetch {
		return 0, 0
	}
	for _, m := range l.pool.lanes {
		if m == l || !m.limiter.shares(l.limiter) {
			continue
		}
		near := m.messages.ready.len() + m.poller.expected
		slots := min(m.granted*m.opts.Batch.Size, max(m.granted, near))
		used, reserved = used+max(near, slots), reserved+slots
	}
	return used, reserved
}

// permitted returns how many messages the next receive may ask for as far as the limiter
// is concerned: each queue may use its share of the room that the others leave, and what
// it has reserved slots for. A queue that seems empty waits for no more than an equal
// part, since messages may come to all of them at once, and what has no room then costs
// a receive for nothing.
func (l *lane) permitted(room int, now time.Time) int {
	near := l.messages.ready.len() + l.poller.expected
	used, reserved := l.usedByOthers(room)
	need := min(l.needed(), room-reserved)
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
	if p.strict && p.claimedAbove(l, now) {
		return clamp(need, 0, queue.MaxBatch)
	}
	free := clamp(p.concurrency-p.inWork-p.granted, 0, max(l.limit-l.inWork, 0)) * l.opts.Batch.Size
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
	if l.limit < l.opts.Concurrency || l.messages.bytes() >= l.opts.PrefetchBytes ||
		p.pace.service == 0 || p.pace.service >= slowApp || now.Sub(p.pace.finished) >= slowApp {
		return 0
	}
	rate := p.pace.rate(p.concurrency) * max(l.pace.batch, 1) * p.shareOf(l, now)
	if l.pace.service > 0 {
		rate = min(rate, l.pace.rate(l.limit))
	}
	return l.pace.ahead(rate, &l.opts)
}
