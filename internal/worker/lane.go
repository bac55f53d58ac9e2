package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// lane is one queue of a pool: its held and expected messages and its reserved slots.
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
	credit  float64 // in turns, see takeTurn
	wants   bool    // the current turn
	granted int     // slots reserved for messages being received
	// nextCheck is when the next open receive has waited so long that the queue counts as empty.
	nextCheck time.Time
}

// resting reports whether the pool sleeps, or whether this queue was empty and the round is about to end.
func (l *lane) resting(now time.Time) bool {
	p := l.pool
	return p.sleep > 0 && (now.Before(p.restUntil) || l.backlog.pollsEmpty && p.roundLeft(l, now) < time.Second)
}

// needed returns how many messages are still to be received for reserved slots.
func (l *lane) needed() int {
	return l.granted*l.core.opts.Batch.Size - l.messages.ready.len() - l.messages.turning - l.poller.asked
}

// coming returns how many messages new receives may bring.
func (l *lane) coming(now time.Time) int {
	if !l.poller.mayBegin(now) {
		return 0
	}
	return l.expect((l.poller.want-len(l.poller.open))*queue.MaxBatch, now)
}

// isOpen reports whether the queue competes for slots.
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

// near returns how many messages are held or expected from open receives.
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

// usable returns how many slots, including granted ones, the queue can use now or soon.
func (l *lane) usable(now time.Time) int {
	able := l.able(now)
	if able == 0 {
		return 0
	}
	size := l.core.opts.Batch.Size
	near := l.near(now)
	if (l.backlog.plenty || !l.backlog.known) && (l.poller.expected > 0 || l.coming(now) > 0) {
		return able // further receives will fill them
	}
	slots := (near + size - 1) / size
	if slots <= l.granted {
		slots += (l.coming(now) + size - 1) / size
	}
	return min(slots, able)
}

// hasWork reports whether the queue has, or may soon receive, work that its limits allow. In strict order no lower
// queue may then receive.
func (l *lane) hasWork(now time.Time) bool {
	return !l.limiter.refusing(now) && l.limiterRoom(now) > 0 && l.wantsSlots(now)
}

// wantsSlots is hasWork without the limiter.
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

func (l *lane) demand(now time.Time) demand {
	switch {
	case l.usable(now) > l.granted:
		return hasDemand
	case l.pool.strict && l.hasWork(now):
		return openDemand
	}
	return noDemand
}

// overdue returns how long the next message has been waiting if that exceeds MaxWait, otherwise 0. For a queue
// without messages the wait is only a guess: one receive at a time checks it, unless the last one brought plenty.
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

// limiterRoom returns how many deliveries the limiter allows soon, minus the slots reserved by other queues that
// share it.
func (l *lane) limiterRoom(now time.Time) int {
	room := l.limiter.room(now)
	_, reserved := l.usedByOthers(room)
	return max(room-reserved, 0)
}

// limited reports whether the limiter allows no more than the granted slots.
func (l *lane) limited(now time.Time) bool {
	return l.limiter != nil && l.isOpen() && (l.limiter.refusing(now) || l.limiterRoom(now) <= l.granted)
}

// limiterIsTight reports whether the limiter's room is smaller than the number of queues sharing it.
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

// usedByOthers returns how much of a limiter's room other queues use: for messages held or expected, and reserved for
// granted slots. Both are 0 if the room exceeds any possible use.
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

// permitted returns how many messages the limiter lets the next receive request: the queue's share of the room left
// by the others, and at least its reserved slots. An apparently empty queue gets an equal share, because messages may
// arrive in all queues at once. In strict order, a queue gets only its reserved slots while a queue above it waits
// for the same limiter.
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

// room returns how many messages the next receive may request, 0 for no receive: reserved and free slots, and the
// prefetch. An empty queue has one open receive. Below a queue with work, strict order allows only the reserved
// slots.
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

// prefetch returns how many messages to hold in addition to those with a slot, computed as for a single queue from
// its share of the pool's speed.
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

// backlog is the estimated backlog of one queue of a pool.
type backlog struct {
	// known: a receive was answered. plenty: without waiting, the last answer had more than half of the requested
	// messages; a known queue without plenty is a trickle. empty: the last answer was empty, or a receive is waiting,
	// as of emptyAt.
	known, plenty, empty bool
	emptyAt              time.Time
	// fedAt is the last answer with messages. gaveUpAt is when a queue with plenty last failed to answer in time, and
	// gaveUpBefore the time before that.
	fedAt, gaveUpAt, gaveUpBefore time.Time
	// oldest is the earliest possible send time of the next message: the send time of the last message received, or
	// the time the queue was found empty; zero before the first answer.
	oldest time.Time
	// pollsEmpty: a whole long poll of this round brought nothing.
	pollsEmpty bool
}

// giveUp marks the queue as empty, and reports whether it was awaited with the timeout of a queue with plenty.
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

// emptyFor is how long a queue counts as empty while no receive is open. After that it is checked with the next free
// slot.
const emptyFor = time.Second

const (
	plentyTimeoutLeast = 250 * time.Millisecond
	plentyTimeoutMost  = 10 * time.Second
	firstTimeoutLeast  = time.Second
)

// emptyTimeout is how long to wait for messages, from the start of the receive or the last answer with messages,
// before the queue counts as empty.
//
// A queue with plenty gets five times its slowest recent round trip (including deletes, which never wait), within 250
// ms and 10 s, and at least twice that round trip: about one receive in a hundred is many times slower than the
// others, and would cost the queue its turns. Its slots stay idle meanwhile, so the timeout is at most a twentieth of
// the time since the queue last became empty. A trickle, which has at most one slot, gets a few usual round trips. So
// does every queue if a limiter has less room than queues, because capacity reserved for one is lost to all.
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

// firstTimeout is emptyTimeout before the first answer: a second, or three times the slowest queue. Until another
// queue has answered, none could use the slots reserved here, so the wait may be a whole long poll. Exceptions are
// strict order, where the others do not even receive, and a limiter with less room than queues, where each must be
// tried soon.
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

// leastTrip returns the shortest recent round trip. Queues with similar round trips probably share a server, so they
// share the minimum: a queue that starts late would otherwise measure only the loaded server.
func (l *lane) leastTrip(own time.Duration, now time.Time) time.Duration {
	least := own
	for _, m := range l.pool.lanes {
		if trip := m.pace.trips.sum(now).least; trip > 0 && own <= 8*trip && (least == 0 || trip < least) {
			least = trip
		}
	}
	return least
}

// emptyNow reports whether the queue is known to be empty.
func (l *lane) emptyNow(now time.Time) bool {
	return l.backlog.empty && (len(l.poller.open) > 0 || now.Sub(l.backlog.emptyAt) < emptyFor)
}

// expect returns how many messages to expect from a receive of n: all of them from a queue with plenty or unknown
// backlog, one from a trickle.
func (l *lane) expect(n int, now time.Time) int {
	switch {
	case l.emptyNow(now):
		return 0
	case l.backlog.plenty || !l.backlog.known:
		return n
	}
	return 1
}

// opening completes a receive about to start.
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

// expireExpected expects nothing more from receives that have waited too long.
func (l *lane) expireExpected(now time.Time) {
	if l.poller.expected == 0 || now.Before(l.nextCheck) {
		return
	}
	timeout := l.emptyTimeout(now)
	next := now.Add(min(timeout, plentyTimeoutLeast)) // news of other queues may shorten it
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

// expectedDue returns when to call expireExpected, zero if no queue depends on it.
func (l *lane) expectedDue() time.Time {
	p := l.pool
	if l.poller.expected == 0 || (p.granted == 0 && !(p.strict && p.inWork < p.concurrency)) {
		return time.Time{}
	}
	return l.nextCheck
}

// answered updates the backlog from the answer of a receive.
func (l *lane) answered(o *openReceive, msgs []queue.Message, now time.Time) {
	switch n := len(msgs); {
	case n > 0:
		if o.waited && o.expected > 0 {
			l.backlog.giveUp(now) // slots were reserved for an empty queue
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
			l.nextCheck = now // the timeout of the other receives is shorter now
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
