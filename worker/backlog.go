package worker

import (
	"time"

	"tendril/queue"
)

// backlog is what a pool believes about the backlog of one queue.
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

// How long the answer of a receive is awaited before its queue counts as empty:
// of a queue with plenty within these bounds, and of one that was never heard of.
const (
	plentyTimeoutLeast = 250 * time.Millisecond
	plentyTimeoutMost  = 10 * time.Second
	firstTimeoutLeast  = time.Second
)

// emptyTimeout is how long the answer of a receive is awaited, from its begin or the
// last answer that brought messages, before the queue counts as empty.
//
// A queue with plenty gets five times the slowest round trip of late, 250 ms to 10 s, or
// twice if that is longer: on a busy machine, or over a bad line, one receive in
// a hundred takes many times as long as the others, and to take its queue for
// empty would give its turns away. Deletes count too, since they never wait. The
// price is that the slots reserved for a queue that has just become empty stand idle
// for that long. For one that often does it is no more than a twentieth of the
// time since it did so last. What a trickle may bring is awaited for a few
// usual round trips: it has one slot at most. So is any queue where a limiter has
// room for fewer messages than there are queues: there what is reserved is the
// limiter's room, and kept for a queue without answer it is lost to all.
func (l *lane) emptyTimeout(now time.Time) time.Duration {
	slowest := max(l.pace.calls.extent(now).most, l.pace.roundTrip, l.pace.call)
	usual := l.poller.usualAnswer(now)
	switch {
	case l.known && !l.plenty:
		return usual
	case slowest == 0:
		return l.firstTimeout(usual, now)
	case l.limiterIsTight(now):
		return usual
	}
	most := max(clamp(5*slowest, plentyTimeoutLeast, plentyTimeoutMost), 2*slowest)
	if l.gaveUpAt.IsZero() {
		return most
	}
	return min(most, max(now.Sub(l.gaveUpAt)/20, usual))
}

// firstTimeout is emptyTimeout for a queue that was never heard of: a second, or three
// times what other queues take. As long as none of them has answered nobody could
// use what is reserved here, so that it costs nothing to wait; but in
// strict order the others do not even receive, nor do they where a limiter has
// room for fewer than there are queues: then each must have its look soon.
func (l *lane) firstTimeout(usual time.Duration, now time.Time) time.Duration {
	if l.limiterIsTight(now) {
		return max(usualAnswerFirst, usual)
	}
	var slowest time.Duration
	for _, m := range l.pool.lanes {
		slowest = max(slowest, m.pace.calls.extent(now).most)
	}
	if slowest == 0 && !l.pool.strict {
		return l.opts.WaitTime
	}
	return max(firstTimeoutLeast, 3*slowest)
}

// slowestNeighbour returns the longest of the shortest calls of all queues.
func (l *lane) slowestNeighbour(now time.Time) (trip time.Duration) {
	for _, m := range l.pool.lanes {
		trip = max(trip, m.pace.calls.extent(now).least)
	}
	return trip
}

// leastTrip returns the shortest round trip of late. Queues of a pool that answer in
// about the same time are taken to be at one server, which each of them slows down for
// the others: so they have it in common, else the one that came last would take its
// neighbours' load for the usual.
func (l *lane) leastTrip(own time.Duration, now time.Time) time.Duration {
	least := own
	for _, m := range l.pool.lanes {
		if trip := m.pace.trips.extent(now).least; trip > 0 && own <= 8*trip && (least == 0 || trip < least) {
			least = trip
		}
	}
	return least
}

// emptyNow reports whether the queue is known to hold nothing.
func (l *lane) emptyNow(now time.Time) bool {
	return l.empty && (len(l.poller.open) > 0 || now.Sub(l.emptyAt) < emptyFor)
}

// expect returns how many messages to expect of a receive that asks for n:
// all of them while the queue has plenty or is unknown, one of a trickle.
func (l *lane) expect(n int, now time.Time) int {
	switch {
	case l.emptyNow(now):
		return 0
	case l.plenty || !l.known:
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
	if l.fedAt.After(o.start) {
		return l.fedAt.Add(timeout)
	}
	return o.start.Add(timeout)
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
			o.expected, o.gaveUp = 0, l.giveUp(now)
		case at.Before(next):
			next = at
		}
	}
	l.nextCheck = next
}

// expectedDue returns when to call expireExpected at the latest, zero when nobody waits
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
			l.giveUp(now) // slots were kept for an empty queue all that time
		}
		l.known, l.empty, l.plenty = true, false, 2*n > o.asked && !o.waited
		l.fedAt, l.oldest = now, msgs[n-1].SentAt
		if o.gaveUp && !o.waited {
			l.gaveUpAt = l.gaveUpBefore // it was slow, not empty
		}
		if !l.plenty {
			l.nextCheck = now // the others are awaited for less long now
		}
		for _, m := range l.pool.lanes {
			m.pollsEmpty = false
		}
	case !o.cancelled:
		l.known, l.empty, l.plenty = true, true, false
		l.emptyAt, l.oldest = now, now.Round(0)
		if now.Sub(o.start) >= o.wait/2 {
			l.pollsEmpty = true
			l.pool.rest(now)
		}
	}
}
