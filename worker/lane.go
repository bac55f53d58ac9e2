package worker

import (
	"time"

	"tendril/queue"
)

// share is what a pool keeps of one of its workers.
type share struct {
	// granted is how many slots are reserved for messages that are on their way.
	granted int
	// hopeUntil is when the next of the receives that messages are expected of
	// has been open for so long that the queue must be dry.
	hopeUntil time.Time
	// asked: at least one receive was answered. rich: the last one brought more
	// than half of what it asked for, and did not have to wait. dry: the last one brought nothing, or one
	// is waiting; as of dryAt.
	asked, rich, dry bool
	dryAt            time.Time
	// fed is the last answer that brought messages; quit is when the hope of a
	// rich queue was given up last, quitBefore the time before that.
	fed, quit, quitBefore time.Time
	// since is when the next message was sent at the earliest, as far as is known:
	// the last one that came was, or the queue was found empty; zero if it was
	// never heard of.
	since time.Time
	// emptied: found empty by a whole long poll in this round.
	emptied bool
}

// dryFor is how long a queue that was found dry counts as dry while no receive
// waits there. Then the next free slot is worth a look.
const dryFor = time.Second

// How long the answer of a receive is awaited before its queue counts as dry:
// of a rich queue within these bounds, of one that was never heard of, and of a
// thin stream.
const (
	glanceRichLeast = 250 * time.Millisecond
	glanceRichMost  = 10 * time.Second
	glanceNewLeast  = time.Second
	glanceThinLeast = 5 * time.Millisecond
	glanceThinMost  = time.Second
	glanceThinFirst = 300 * time.Millisecond
)

// glance is how long the answer of a receive is awaited, from its begin or the
// last answer that brought messages, before the queue counts as dry.
//
// A rich queue gets five times the slowest round trip of late, 250 ms to 10 s, or
// twice if that is longer: on a busy machine, or over a bad line, one receive in
// a hundred takes many times as long as the others, and to take its queue for
// dry would give its turns away. Deletes count too, since they never wait. The
// price is that the slots reserved for a queue that has just run dry stand idle
// for that long. For one that often does it is no more than a twentieth of the
// time since it did so last. What a thin stream may bring is awaited for a few
// usual round trips: it has one slot at most. So is any queue where a limiter has
// room for fewer messages than there are queues: there what is reserved is the
// limiter's room, and kept for a queue without answer it is lost to all.
func (w *Worker) glance(now time.Time) time.Duration {
	slowest := max(w.pace.calls.extent(now).most, w.pace.roundTrip, w.pace.call)
	switch {
	case w.share.asked && !w.share.rich:
		return w.glanceThin(now)
	case slowest == 0:
		return w.glanceFirst(now)
	}
	if w.cramped(now) {
		return w.glanceThin(now)
	}
	rich := max(clamp(5*slowest, glanceRichLeast, glanceRichMost), 2*slowest)
	if w.share.quit.IsZero() {
		return rich
	}
	return min(rich, max(now.Sub(w.share.quit)/20, w.glanceThin(now)))
}

// glanceFirst is glance for a queue that was never heard of: a second, or three
// times what other queues take. As long as none of them has answered nobody could
// use what is reserved here, so that it costs nothing to wait; but in
// strict order the others do not even receive, nor do they where a limiter has
// room for fewer than there are queues: then each must have its look soon.
func (w *Worker) glanceFirst(now time.Time) time.Duration {
	if w.pool == nil {
		return glanceNewLeast
	}
	if w.cramped(now) {
		return max(glanceThinFirst, w.glanceThin(now))
	}
	var slowest time.Duration
	for _, m := range w.pool.members {
		slowest = max(slowest, m.pace.calls.extent(now).most)
	}
	if slowest == 0 && !w.pool.strict {
		return w.opts.WaitTime
	}
	return max(glanceNewLeast, 3*slowest)
}

// glanceThin is glance for a thin stream. As long as nothing is known of its queue
// the slowest of the others stands for it.
func (w *Worker) glanceThin(now time.Time) time.Duration {
	trip := or(w.pace.roundTrip, w.pace.call)
	if trip == 0 && w.pool != nil {
		for _, m := range w.pool.members {
			trip = max(trip, m.pace.calls.extent(now).least)
		}
	}
	if trip == 0 {
		return glanceThinFirst
	}
	return clamp(3*trip, glanceThinLeast, glanceThinMost)
}

// hopeEnd returns when an open receive counts as waiting on a dry queue.
func (w *Worker) hopeEnd(o *openPoll, glance time.Duration) time.Time {
	if w.share.fed.After(o.start) {
		return w.share.fed.Add(glance)
	}
	return o.start.Add(glance)
}

// dryNow reports whether the queue is known to hold nothing.
func (w *Worker) dryNow(now time.Time) bool {
	return w.share.dry && (len(w.polls.open) > 0 || now.Sub(w.share.dryAt) < dryFor)
}

// expected returns how many messages to expect of a receive that asks for n:
// all of them while the queue is rich or unknown, one from a thin stream.
func (w *Worker) expected(n int, now time.Time) int {
	switch {
	case w.dryNow(now):
		return 0
	case w.share.rich || !w.share.asked:
		return n
	}
	return 1
}

// opening completes a receive of a member that is about to begin.
func (p *Pool) opening(w *Worker, o *openPoll) {
	o.wait = p.waitFor(w, o.start)
	if o.hope = w.expected(o.asked, o.start); o.hope == 0 {
		return
	}
	if until := w.hopeEnd(o, min(w.glance(o.start), glanceNewLeast)); w.polls.hope == 0 ||
		until.Before(w.share.hopeUntil) {
		w.share.hopeUntil = until
	}
	w.polls.hope += o.hope
}

// giveUpHope stops expecting something of receives that have been waiting.
func (w *Worker) giveUpHope(now time.Time) {
	if w.polls.hope == 0 || now.Before(w.share.hopeUntil) {
		return
	}
	glance := w.glance(now)
	next := now.Add(min(glance, glanceRichLeast)) // what others learn meanwhile may shorten it
	for o := range w.polls.open {
		switch at := w.hopeEnd(o, glance); {
		case o.hope == 0:
		case !now.Before(at):
			w.polls.hope -= o.hope
			o.hope, o.quit = 0, w.share.giveUp(now)
		case at.Before(next):
			next = at
		}
	}
	w.share.hopeUntil = next
}

// giveUp notes that the queue counts as dry from now on. It reports whether it
// was awaited for as long as a rich queue is.
func (s *share) giveUp(now time.Time) (rich bool) {
	s.dry, s.dryAt = true, now
	if s.asked && !s.rich {
		return false
	}
	if !s.quit.Equal(now) {
		s.quitBefore, s.quit = s.quit, now
	}
	return true
}

// hopeDue returns when to give up hope at the latest, zero when nobody waits
// for that.
func (w *Worker) hopeDue() time.Time {
	p := w.pool
	if p == nil || w.polls.hope == 0 || (p.granted == 0 && !(p.strict && p.inWork < p.opts.Concurrency)) {
		return time.Time{}
	}
	return w.share.hopeUntil
}

// answered takes the answer of a member's receive.
func (p *Pool) answered(w *Worker, o *openPoll, msgs []queue.Message, now time.Time) {
	s := &w.share
	switch n := len(msgs); {
	case n > 0:
		if o.waited && o.hope > 0 {
			s.giveUp(now) // slots were kept for an empty queue all that time
		}
		s.asked, s.dry, s.rich = true, false, 2*n > o.asked && !o.waited
		s.fed, s.since = now, msgs[n-1].SentAt
		if o.quit && !o.waited {
			s.quit = s.quitBefore // it was slow, not dry
		}
		if !s.rich {
			s.hopeUntil = now // the others are awaited for less long now
		}
		for _, m := range p.members {
			m.share.emptied = false
		}
	case !o.cancelled:
		s.asked, s.dry, s.rich = true, true, false
		s.dryAt, s.since = now, now.Round(0)
		if now.Sub(o.start) >= o.wait/2 {
			s.emptied = true
			p.rest(now)
		}
	}
}

// needed returns how many messages have a reserved slot and are not on their
// way yet.
func (w *Worker) needed() int {
	return w.share.granted*w.batch.Size - w.ready.len() - w.turning - w.polls.asked
}

// coming returns how many messages receives that could begin now may bring.
func (w *Worker) coming(now time.Time) int {
	if !w.mayPoll(now) {
		return 0
	}
	return w.expected((w.polls.want-len(w.polls.open))*queue.MaxBatch, now)
}

// able returns how many more deliveries the worker could start soon.
func (w *Worker) able(now time.Time) int {
	if w.phase != running || !w.gate.open() || w.brake.refusing(now) {
		return 0
	}
	able := max(w.limit-w.inWork, 0)
	if w.brake != nil {
		able = min(able, w.roomAhead(now))
	}
	return able
}

// limited reports whether a limiter lets the worker have no more than the slots
// that it was granted.
func (w *Worker) limited(now time.Time) bool {
	return w.brake != nil && w.phase == running && w.gate.open() &&
		(w.brake.refusing(now) || w.roomAhead(now) <= w.share.granted)
}

// near returns how many messages are in hand or expected of open receives.
func (w *Worker) near(now time.Time) int {
	w.giveUpHope(now)
	n := w.polls.hope
	if w.startable(now) {
		n += w.ready.len()
	}
	if w.deletes.fails == 0 {
		n += w.turning
	}
	return n
}

// prospects returns for how many slots, those granted included, there is or may
// soon be work.
func (w *Worker) prospects(now time.Time) int {
	able := w.able(now)
	if able == 0 {
		return 0
	}
	size := w.batch.Size
	near := w.near(now)
	if (w.share.rich || !w.share.asked) && (w.polls.hope > 0 || w.coming(now) > 0) {
		return able // as many as it gets: its next receives bring more
	}
	slots := (near + size - 1) / size
	if slots <= w.share.granted {
		slots += (w.coming(now) + size - 1) / size
	}
	return min(slots, able)
}

// claims reports whether in strict order nobody below may receive: there is
// work here, or a receive may bring some, and its own limit leaves slots for it.
func (w *Worker) claims(now time.Time) bool {
	if w.phase != running || !w.gate.open() || w.brake.refusing(now) || w.roomAhead(now) == 0 {
		return false
	}
	if w.limit < w.pool.opts.Concurrency && w.limit-w.inWork <= w.share.granted {
		return false
	}
	if w.startable(now) || (w.turning > 0 && w.deletes.fails == 0) {
		return true
	}
	if w.share.asked && !w.share.rich {
		return false
	}
	w.giveUpHope(now)
	return w.polls.hope > 0 || w.coming(now) > 0
}

// stand returns where the worker stands in the draw for a free slot.
func (w *Worker) stand(now time.Time) stand {
	switch {
	case w.prospects(now) > w.share.granted:
		return wants
	case w.pool.strict && w.claims(now):
		return unsure
	}
	return passes
}

// overdue returns how long the next message of this queue has been waiting if
// that is longer than MaxWait, 0 if not. Of a queue with nothing in hand that is
// how long it may have been: a look will tell, one at a time unless the last one
// brought plenty.
func (w *Worker) overdue(now time.Time) time.Duration {
	if w.prospects(now) <= w.share.granted {
		return 0
	}
	wait := now.Round(0).Sub(w.share.since)
	switch h := w.ready.first(); {
	case h != nil:
		wait = now.Round(0).Sub(h.msg.SentAt)
	case (w.polls.hope > 0 || w.share.granted > 0) && !w.share.rich:
		return 0
	case w.share.since.IsZero() && now.Sub(w.status.started) <= w.opts.MaxWait:
		return 0
	}
	if wait <= w.opts.MaxWait {
		return 0
	}
	return wait
}
