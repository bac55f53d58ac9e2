package worker

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"tendril/queue"
)

const (
	maxReceives        = 64
	fullReceives       = 8                // open receives that indicate a large backlog
	receiveMargin      = 30 * time.Second // before a call times out, in addition to its wait time
	failedReceiveFirst = 250 * time.Millisecond
	failedReceiveLimit = 15 * time.Second
	refusedFirst       = 5 * time.Second // after a permanent refusal
	refusedLimit       = 30 * time.Second
	quickReceiveLimit  = 5 * time.Second // longest wait after empty responses that did not wait
)

type poller struct {
	core     *core
	messages *inventory
	gate     *gate
	limiter  *limiterState
	pace     *pace
	lane     *lane // nil without a pool
	// A nil filter, or a pointer to nil, delivers all messages.
	filter atomic.Pointer[func(*queue.Message) bool]

	open     map[*openReceive]struct{}
	asked    int // messages requested by open receives
	expected int // messages expected from them; used in pools
	// want limits open receives. Full responses double it, or halve it if slow, at most once per round trip. Partial
	// ones halve it, and empty ones reset it to one.
	want    int
	changed time.Time
	full    bool
	// quick counts consecutive empty responses that did not wait.
	quick             int
	fails             int
	failed, notBefore time.Time
}

type openReceive struct {
	ctx        context.Context
	cancel     context.CancelFunc
	asked      int
	expected   int
	gaveUp     bool // no more messages are expected
	waited     bool
	wait       time.Duration
	visibility time.Duration
	start      time.Time
	cancelled  bool
}

// learn adapts want. roundTrip means that the receive took exactly one round trip.
func (p *poller) learn(o *openReceive, n int, l load, now time.Time) (roundTrip bool) {
	p.fails = 0
	wasFull := p.full
	p.full = n >= o.asked
	switch {
	case p.full && (l == heavy || o.start.Before(p.changed)):
		// want is right, or has changed since this receive started.
	case p.full && l == crowded:
		p.want, p.changed = max(p.want/2, 1), now
	case p.full:
		p.want, p.changed = min(p.want*2, maxReceives), now
	case n > 0:
		p.want = max(p.want/2, 1)
	default:
		p.want = 1
	}

	if n == 0 && !o.cancelled && now.Sub(o.start) < o.wait/2 {
		p.quick++
		p.notBefore = now.Add(retryWait(p.quick, failedReceiveFirst, quickReceiveLimit, 0))
	} else {
		p.quick = 0
	}
	return wasFull && p.full
}

// fail returns the wait before the next receive. Concurrent failures count as one.
func (p *poller) fail(o *openReceive, class errorClass, now time.Time, random float64) time.Duration {
	p.want, p.full = 1, false
	if o.start.Before(p.failed) && now.Before(p.notBefore) {
		return p.notBefore.Sub(now)
	}
	p.fails++
	p.failed = now
	wait := retryWait(p.fails, failedReceiveFirst, failedReceiveLimit, random)
	if class == refused {
		wait = retryWait(p.fails, refusedFirst, refusedLimit, random)
	}
	p.notBefore = now.Add(wait)
	return wait
}

// startReceives also starts receives of other workers in the pool, and completes a drain.
func (w *Worker) startReceives(now time.Time) {
	if w.lane == nil {
		w.startOwnReceives(now)
	} else {
		for _, l := range w.lane.pool.lanes {
			l.worker.startOwnReceives(now)
		}
	}
	if w.core.phase == draining || w.core.phase == aborting {
		w.checkDrained()
	}
}

func (w *Worker) startOwnReceives(now time.Time) {
	for o := w.poller.next(now); o != nil; o = w.poller.next(now) {
		w.core.tasks.Go(func() { w.receive(o) })
	}
}

func (w *Worker) receive(o *openReceive) {
	req := queue.ReceiveRequest{CountAtPost: w.core.opts.UncountedReturns}
	for o != nil {
		req.Max = o.asked
		req.Wait, req.Visibility = &o.wait, &o.visibility
		msgs, err := w.queue.Receive(o.ctx, req)
		o.cancel()
		filtered := w.poller.filterMessages(msgs)

		now := time.Now()
		w.core.mu.Lock()
		w.observe(now)
		hiddenSince := w.poller.receiveEnded(o, msgs, err, now)
		w.settler.accept(msgs, filtered, o.visibility, hiddenSince, now)
		w.obeyGate(now)
		w.startDeliveries(nil, now)
		w.flush(now)
		o = w.poller.next(now)
		w.startReceives(now)
		w.core.mu.Unlock()
	}
}

// filterMessages is called without the lock, because the filter may be slow.
func (p *poller) filterMessages(msgs []queue.Message) (filtered []bool) {
	match := p.filter.Load()
	if match == nil || *match == nil || len(msgs) == 0 {
		return nil
	}
	filtered = make([]bool, len(msgs))
	for i := range msgs {
		filtered[i] = !(*match)(&msgs[i])
	}
	return filtered
}

func (p *poller) next(now time.Time) *openReceive {
	if !p.mayBegin(now) {
		return nil
	}

	n := p.room(now)
	if n > 0 && p.limiter != nil {
		if n = min(n, p.permitted(now)); n <= 0 {
			// The limiter does not report that it has room, so poll it.
			if !now.Before(p.limiter.lookAt) {
				p.limiter.lookAt = now.Add(askLimiterAgain)
			}
			p.core.wakeAt(p.limiter.lookAt)
		}
	}
	if p.core.opts.HeldBytes > 0 {
		n = min(n, p.fitting())
	}
	if n <= 0 {
		return nil
	}

	if n > 1 && p.messages.oneAtATime(now, p.want >= fullReceives) {
		n = 1
	}

	o := &openReceive{asked: n, start: now, wait: p.core.opts.WaitTime, visibility: p.core.opts.VisibilityTimeout}
	if p.lane != nil {
		p.lane.prepare(o)
	}
	o.ctx, o.cancel = context.WithTimeout(p.core.callCtx, o.wait+receiveMargin)
	p.open[o] = struct{}{}
	p.asked += n
	return o
}

func (p *poller) mayBegin(now time.Time) bool {
	if p.core.phase != running || p.core.workCtx.Err() != nil || !p.gate.open() || len(p.open) >= p.want ||
		now.Before(p.notBefore) || p.lane != nil && p.lane.resting(now) {
		return false
	}
	// If the process dies, messages with unconfirmed deletes are delivered again. Limit them to the concurrency plus
	// two round trips.
	underWay := 2 * p.pace.rate(p.core.limit) * p.pace.roundTrip.Seconds()
	return p.messages.unconfirmed <
		p.core.opts.Concurrency*p.core.opts.Batch.Size+int(min(max(underWay, 320), maxCalls*queue.MaxBatch))
}

func (p *poller) room(now time.Time) int {
	if p.lane != nil {
		return p.lane.room(now)
	}
	prefetch := 0
	if p.core.limit == p.core.opts.Concurrency && p.messages.ready.bytes+p.messages.deferred.bytes < p.core.opts.PrefetchBytes {
		prefetch = p.pace.prefetch(p.core.limit, &p.core.opts, now)
	}
	size := p.core.opts.Batch.Size
	limit := p.core.limit * size
	active := p.core.inWork*size + p.messages.ready.len() + p.messages.turning + p.asked
	room := limit + prefetch - active
	if active >= limit && room < min(queue.MaxBatch, prefetch) {
		return 0
	}
	return clamp(room, 0, queue.MaxBatch)
}

// Memory reserved for each requested message.
const (
	leastReserved = 64 << 10
	mostReserved  = 1 << 20 // the largest message
)

// fitting returns how many messages fit in HeldBytes; at least one if nothing is held. For remote queues, which have
// many slow receives open, it assumes the typical message size.
func (p *poller) fitting() int {
	each := mostReserved
	if remote := !p.core.opts.UncountedReturns; remote && p.pace.body > 0 {
		each = clamp(4*int(p.pace.body), leastReserved, mostReserved)
	}
	if p.messages.bytes == 0 && p.asked == 0 {
		return max(p.core.opts.HeldBytes/each, 1)
	}
	return (p.core.opts.HeldBytes-p.messages.bytes)/each - p.asked
}

func (p *poller) permitted(now time.Time) int {
	room := p.limiter.room(now)
	if room == 0 {
		p.limiter.keepBack(now, askLimiterAgain, cmp.Or(p.limiter.roomWhy, "limit"))
		return 0
	}
	if p.lane != nil {
		return p.lane.permitted(room, now)
	}
	return inTens(room, p.messages.ready.len()+p.asked)
}

// inTens returns the unused room, or 0 if it is too small for a full batch of ten.
func inTens(room, near int) int {
	left := room - near
	if near > 0 && left < min(queue.MaxBatch, room) {
		return 0
	}
	return left
}

// hiddenSince is zero if the receive failed. Failures after a cancellation do not count.
func (p *poller) receiveEnded(o *openReceive, msgs []queue.Message, err error, now time.Time) (hiddenSince time.Time) {
	delete(p.open, o)
	p.asked -= o.asked
	p.expected -= o.expected
	p.core.stats.counts.Polls++
	switch {
	case err == nil || len(msgs) > 0:
		hiddenSince = p.core.clock.began(o.start, now, p.pace.travel(o.visibility))
		p.answered(o, msgs, now)
	case !o.cancelled:
		p.failedReceive(o, err, now)
	}
	p.core.wakeAt(p.notBefore)
	return hiddenSince
}

func (p *poller) failedReceive(o *openReceive, err error, now time.Time) {
	class := classify(err)
	wait := p.fail(o, class, now, p.core.opts.Random())
	p.core.stats.failed("receive", err)
	notify(p.core, p.core.events.PollFailed,
		PollFailed{Err: err, Failures: p.fails, Permanent: class == refused, RetryIn: wait})
}

func (p *poller) answered(o *openReceive, msgs []queue.Message, now time.Time) {
	took := now.Sub(o.start)
	o.waited = p.waited(o, msgs, now)

	l := light
	if !o.waited {
		l = loadOf(took, p.leastTrip(now))
	}
	plenty := p.learn(o, len(msgs), l, now)
	if len(msgs) >= o.asked && !o.waited && (!o.gaveUp || p.pace.credible(took, now)) {
		p.pace.travelled(took, plenty, now)
	}

	if p.lane != nil {
		p.lane.answered(o, msgs, now)
	}
	p.core.stats.counts.Received += int64(len(msgs))

	if p.core.events.Received != nil {
		event := Received{Messages: len(msgs), Duration: took}
		for i := range msgs {
			event.LongestWait = max(event.LongestWait, now.Round(0).Sub(msgs[i].SentAt))
		}
		notify(p.core, p.core.events.Received, event)
	}
}

// waited reports whether the receive seems to have waited on an empty queue: each message was sent after its start or,
// in a slow response, had been received before.
func (p *poller) waited(o *openReceive, msgs []queue.Message, now time.Time) bool {
	start, end := o.start.Round(0), now.Round(0)
	long := now.Sub(o.start) > p.usualAnswer(now)
	for i := range msgs {
		m := &msgs[i]
		_, isBack := p.messages.unposted.values[life(m.ID, m.ReceiveCount, m.Attempt)] // even if not counted
		late := m.SentAt.After(start) && !m.SentAt.After(end)
		if !late && (!long || !isBack && m.ReceiveCount <= 1) {
			return false
		}
	}
	return true
}

const (
	usualAnswerLeast = 5 * time.Millisecond
	usualAnswerMost  = time.Second
	usualAnswerFirst = 300 * time.Millisecond
)

// usualAnswer returns how long a queue with messages usually takes to respond, if necessary as estimated from other
// queues.
func (p *poller) usualAnswer(now time.Time) time.Duration {
	trip := cmp.Or(p.pace.roundTrip, p.pace.call)
	if trip == 0 && p.lane != nil {
		for _, l := range p.lane.pool.lanes {
			trip = max(trip, l.pace.calls.sum(now).least)
		}
	}
	if trip == 0 {
		return usualAnswerFirst
	}
	return clamp(3*trip, usualAnswerLeast, usualAnswerMost)
}

func (p *poller) leastTrip(now time.Time) time.Duration {
	own := p.pace.trips.sum(now).least
	if p.lane == nil {
		return own
	}
	return p.lane.leastTrip(own, now)
}

// grace returns the age from which an open receive is assumed to be waiting. Canceling it earlier could lose messages
// in transit, which stay invisible.
func (p *poller) grace() time.Duration {
	if p.pace.roundTrip == 0 {
		return 300 * time.Millisecond
	}
	return clamp(3*p.pace.roundTrip, 100*time.Millisecond, time.Second)
}

// cancelWaiting returns when to call it again.
func (p *poller) cancelWaiting(now time.Time) (next time.Time) {
	if p.gate.open() && !p.limiter.breakerOpen(now) {
		return time.Time{}
	}
	grace := p.grace()
	for o := range p.open {
		switch at := o.start.Add(grace); {
		case o.cancelled:
		case p.core.phase == aborting || !now.Before(at):
			o.cancelled = true
			o.cancel()
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return next
}

type load uint8

const (
	light   load = iota // more messages
	heavy               // only slower responses
	crowded             // already too many
)

// Delays up to loadSlack may have other causes.
const loadSlack = 250 * time.Millisecond

func loadOf(took, least time.Duration) load {
	switch {
	case least == 0 || took <= 3*least+loadSlack:
		return light
	case took <= 6*least+2*loadSlack:
		return heavy
	}
	return crowded
}
