package worker

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"tendril/queue"
)

const (
	maxOpenReceives    = 64
	largeBacklogWant   = 8                // value of want that indicates a large backlog
	receiveMargin      = 30 * time.Second // added to a call's wait time
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
	deletes  *deleter
	pace     *pace
	lane     *lane // nil without a pool
	// A nil filter, or a pointer to nil, delivers all messages.
	filter atomic.Pointer[func(*queue.Message) bool]

	open     map[*openReceive]struct{}
	asked    int
	expected int // messages expected from open receives; used in pools
	// want is the maximum number of open receives. A full response doubles it unless it was slow, and halves it if
	// it was very slow, at most once per round trip. A partial response halves it, and an empty one resets it to
	// one.
	want          int
	wantChangedAt time.Time
	lastFull      bool
	// emptyStreak counts consecutive empty responses that did not wait.
	emptyStreak         int
	fails               int
	failedAt, notBefore time.Time
}

type openReceive struct {
	ctx           context.Context
	cancel        context.CancelFunc
	asked         int
	expected      int
	presumedEmpty bool
	waited        bool
	wait          time.Duration
	visibility    time.Duration
	start         time.Time
	canceled      bool
}

func (p *poller) adaptWant(o *openReceive, n int, l load, now time.Time) {
	changedMeanwhile := o.start.Before(p.wantChangedAt)
	switch {
	case n == 0:
		p.want = 1
	case n < o.asked:
		p.want = max(p.want/2, 1)
	case l == heavy || changedMeanwhile:
		// Keep want: it is right, or was changed after this receive started.
	case l == crowded:
		p.want, p.wantChangedAt = max(p.want/2, 1), now
	default:
		p.want, p.wantChangedAt = min(p.want*2, maxOpenReceives), now
	}
}

func (p *poller) delayIfEmpty(o *openReceive, n int, now time.Time) {
	if n > 0 || o.canceled || now.Sub(o.start) >= o.wait/2 {
		p.emptyStreak = 0
		return
	}
	p.emptyStreak++
	p.notBefore = now.Add(retryWait(p.emptyStreak, failedReceiveFirst, quickReceiveLimit, 0))
}

// backOff returns the wait before the next receive. Concurrent failures count as one.
func (p *poller) backOff(o *openReceive, class errorClass, now time.Time, random float64) time.Duration {
	p.want, p.lastFull = 1, false
	if o.start.Before(p.failedAt) && now.Before(p.notBefore) {
		return p.notBefore.Sub(now)
	}

	p.fails++
	p.failedAt = now
	wait := retryWait(p.fails, failedReceiveFirst, failedReceiveLimit, random)
	if class == refused {
		wait = retryWait(p.fails, refusedFirst, refusedLimit, random)
	}
	p.notBefore = now.Add(wait)
	return wait
}

// startReceives starts the receives of all workers in the pool, and completes a drain.
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
	for o := w.poller.beginReceive(now); o != nil; o = w.poller.beginReceive(now) {
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
		w.checkClock(now)
		hiddenSince := w.poller.receiveEnded(o, msgs, err, now)
		w.settler.accept(msgs, filtered, o.visibility, hiddenSince, now)
		w.applyGate(now)
		w.startDeliveries(nil, now)
		w.flush(now)
		o = w.poller.beginReceive(now)
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

func (p *poller) beginReceive(now time.Time) *openReceive {
	if !p.mayReceive(now) {
		return nil
	}
	n := p.requestSize(now)
	if n <= 0 {
		return nil
	}

	o := &openReceive{asked: n, start: now, wait: p.core.opts.WaitTime, visibility: p.core.opts.VisibilityTimeout}
	if p.lane != nil {
		o.wait = p.lane.pool.waitTime(p.lane, now)
		p.lane.expectMessages(o)
	}
	o.ctx, o.cancel = context.WithTimeout(p.core.callCtx, o.wait+receiveMargin)
	p.open[o] = struct{}{}
	p.asked += n
	return o
}

func (p *poller) requestSize(now time.Time) int {
	n := p.room(now)
	if n > 0 && p.limiter != nil {
		n = min(n, p.permittedByLimiter(now))
		if n <= 0 {
			p.limiter.askAgainLater(now)
		}
	}
	if p.core.opts.HeldBytes > 0 {
		n = min(n, p.roomInMemory())
	}
	if n > 1 && p.messages.oneAtATime(now, p.want >= largeBacklogWant) {
		return 1
	}
	return n
}

func (p *poller) mayReceive(now time.Time) bool {
	if p.core.phase != running || p.core.workCtx.Err() != nil || !p.gate.open() {
		return false
	}
	if len(p.open) >= p.want || now.Before(p.notBefore) || p.lane != nil && p.lane.resting(now) {
		return false
	}
	return p.deletes.unconfirmed < p.maxUnconfirmed()
}

// maxUnconfirmed limits unconfirmed deletes to the concurrency plus the messages of two round trips, 320 to 640. If the
// process dies, these messages are delivered again.
func (p *poller) maxUnconfirmed() int {
	twoTrips := 2 * p.pace.rate(p.core.limit) * p.pace.roundTrip.Seconds()
	return p.core.opts.Concurrency*p.core.opts.Batch.Size + int(clamp(twoTrips, 320, maxCalls*queue.MaxBatch))
}

func (p *poller) room(now time.Time) int {
	if p.lane != nil {
		return p.lane.room(now)
	}
	prefetch := 0
	if p.mayPrefetch() {
		prefetch = p.pace.prefetch(p.core.limit, &p.core.opts, now)
	}
	size := p.core.opts.Batch.Size
	limit := p.core.limit * size
	active := p.core.inWork*size + p.messages.ready.len() + p.messages.turning + p.asked
	room := limit + prefetch - active
	if active >= limit && room < min(queue.MaxBatch, prefetch) {
		return 0 // all slots have messages, so prefetch only full batches
	}
	return clamp(room, 0, queue.MaxBatch)
}

func (p *poller) mayPrefetch() bool {
	isFull := p.messages.ready.bytes+p.messages.postponed.bytes >= p.core.opts.PrefetchBytes
	return p.core.limit == p.core.opts.Concurrency && !isFull
}

// Bytes reserved for each requested message.
const (
	leastReserved = 64 << 10
	mostReserved  = 1 << 20 // the largest message
)

// roomInMemory returns how many more messages fit in HeldBytes, at least one if none is held. For remote queues,
// with many slow receives open, it assumes four times the average body size.
func (p *poller) roomInMemory() int {
	each := mostReserved
	if remote := !p.core.opts.UncountedReturns; remote && p.pace.body > 0 {
		each = clamp(4*int(p.pace.body), leastReserved, mostReserved)
	}
	if p.messages.bytes == 0 && p.asked == 0 {
		return max(p.core.opts.HeldBytes/each, 1)
	}
	return (p.core.opts.HeldBytes-p.messages.bytes)/each - p.asked
}

func (p *poller) permittedByLimiter(now time.Time) int {
	room := p.limiter.room(now)
	if room == 0 {
		p.limiter.recordRefusal(now, askLimiterAgain, cmp.Or(p.limiter.roomReason, "limit"))
		return 0
	}
	if p.lane != nil {
		return p.lane.permittedByLimiter(room, now)
	}
	return roomForFullBatch(room, p.messages.ready.len()+p.asked)
}

// roomForFullBatch returns the unused room, or 0 if part of it is used and the rest is less than a full batch (ten,
// or room if less).
func roomForFullBatch(room, used int) int {
	unused := room - used
	if used > 0 && unused < min(queue.MaxBatch, room) {
		return 0
	}
	return unused
}

// receiveEnded returns when the visibility timeouts began, or zero after a failure. Failures after a cancellation do
// not count.
func (p *poller) receiveEnded(o *openReceive, msgs []queue.Message, err error, now time.Time) (hiddenSince time.Time) {
	delete(p.open, o)
	p.asked -= o.asked
	p.expected -= o.expected
	switch {
	case err == nil || len(msgs) > 0:
		hiddenSince = p.core.clock.earliestHidden(o.start, now, p.pace.longestTransit(o.visibility))
		p.receiveReturned(o, msgs, now)
	case !o.canceled:
		p.receiveFailed(o, err, now)
	}
	p.core.wakeAt(p.notBefore)
	return hiddenSince
}

func (p *poller) receiveFailed(o *openReceive, err error, now time.Time) {
	class := classify(err)
	wait := p.backOff(o, class, now, p.core.opts.Random())
	p.core.stats.recordFailedCall("receive", err)
	notify(p.core, p.core.events.PollFailed,
		PollFailed{Err: err, Failures: p.fails, Permanent: class == refused, RetryIn: wait})
}

func (p *poller) receiveReturned(o *openReceive, msgs []queue.Message, now time.Time) {
	took := now.Sub(o.start)
	o.waited = p.waitedOnEmptyQueue(o, msgs, now)
	load := light
	if !o.waited {
		load = loadOf(took, p.leastTrip(now))
	}

	p.fails = 0
	p.delayIfEmpty(o, len(msgs), now)
	p.adaptWant(o, len(msgs), load, now)
	isFull := len(msgs) >= o.asked
	if isFull && !o.waited && (!o.presumedEmpty || p.pace.canBeRoundTrip(took, now)) {
		p.pace.recordReceive(took, p.lastFull, now)
	}
	p.lastFull = isFull
	if p.lane != nil {
		p.lane.updateBacklog(o, msgs, now)
	}

	p.core.counts.Received += int64(len(msgs))
	p.reportReceived(msgs, took, now)
}

func (p *poller) reportReceived(msgs []queue.Message, took time.Duration, now time.Time) {
	if p.core.events.Received == nil {
		return
	}
	event := Received{Messages: len(msgs), Duration: took}
	for i := range msgs {
		event.LongestWait = max(event.LongestWait, now.Round(0).Sub(msgs[i].SentAt))
	}
	notify(p.core, p.core.events.Received, event)
}

// waitedOnEmptyQueue reports whether the receive seems to have waited on an empty queue: each message was sent after
// its start or, in a slow response, received before.
func (p *poller) waitedOnEmptyQueue(o *openReceive, msgs []queue.Message, now time.Time) bool {
	start, end := o.start.Round(0), now.Round(0)
	isSlow := now.Sub(o.start) > p.usualResponseTime(now)
	for i := range msgs {
		sentAt := msgs[i].SentAt
		sentMeanwhile := sentAt.After(start) && !sentAt.After(end)
		if !sentMeanwhile && !(isSlow && p.receivedBefore(&msgs[i])) {
			return false
		}
	}
	return true
}

// receivedBefore includes receives that the queue did not count.
func (p *poller) receivedBefore(m *queue.Message) bool {
	_, isBack := p.messages.unposted.values[keyInQueue(m.ID, m.ReceiveCount, m.Attempt)]
	return isBack || m.ReceiveCount > 1
}

const (
	usualResponseLeast = 5 * time.Millisecond
	usualResponseMost  = time.Second
	usualResponseFirst = 300 * time.Millisecond
)

// usualResponseTime is how long a queue with messages takes to respond, estimated from other queues at first.
func (p *poller) usualResponseTime(now time.Time) time.Duration {
	trip := cmp.Or(p.pace.roundTrip, p.pace.call)
	if trip == 0 {
		for _, l := range p.poolLanes() {
			trip = max(trip, l.pace.calls.sum(now).least)
		}
	}
	if trip == 0 {
		return usualResponseFirst
	}
	return clamp(3*trip, usualResponseLeast, usualResponseMost)
}

// leastTrip returns the shortest recent round trip of this queue and the pool's queues about as fast. They
// probably share a server, and a queue that joins under load would measure only that load.
func (p *poller) leastTrip(now time.Time) time.Duration {
	own := p.pace.trips.sum(now).least
	least := own
	for _, l := range p.poolLanes() {
		if trip := l.pace.trips.sum(now).least; trip > 0 && own <= 8*trip && (least == 0 || trip < least) {
			least = trip
		}
	}
	return least
}

func (p *poller) poolLanes() []*lane {
	if p.lane == nil {
		return nil
	}
	return p.lane.pool.lanes
}

// safeToCancelAfter is the age at which an open receive is assumed to be waiting. Canceling earlier could lose
// messages in transit, which stay invisible.
func (p *poller) safeToCancelAfter() time.Duration {
	if p.pace.roundTrip == 0 {
		return 300 * time.Millisecond
	}
	return clamp(3*p.pace.roundTrip, 100*time.Millisecond, time.Second)
}

// cancelWaiting cancels waiting receives if the gate is closed or the breaker open. next is when to call it again, or
// zero.
func (p *poller) cancelWaiting(now time.Time) (next time.Time) {
	if p.gate.open() && !p.limiter.breakerOpen(now) {
		return time.Time{}
	}

	safeAge := p.safeToCancelAfter()
	for o := range p.open {
		if o.canceled {
			continue
		}
		at := o.start.Add(safeAge)
		if p.core.phase == aborting || !now.Before(at) {
			o.canceled = true
			o.cancel()
		} else if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

type load uint8

const (
	light   load = iota // allows more receives
	heavy               // responses are slow: neither more nor fewer receives
	crowded             // there are too many receives
)

// A delay of up to loadSlack may have other causes than load.
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
