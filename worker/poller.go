package worker

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"tendril/queue"
)

// polls is what is known of the receives under way and of what they brought.
type polls struct {
	open  map[*openPoll]struct{}
	asked int // messages that the open ones may bring
	hope  int // those of them that are to be expected, as far as a pool is concerned
	// want is how many may be open at once, as far as the queue is concerned:
	// one while it is dry, doubled by full answers, halved by slow ones, but
	// once in a round trip: at changed.
	want    int
	changed time.Time
	// wet: the last answer was full, so that the next one need not wait.
	wet bool
	// quick counts empty answers in a row that came without waiting.
	quick int
	// fails counts failures in a row, failed is when the last one came;
	// no receive begins before notBefore.
	fails             int
	failed, notBefore time.Time
}

// openPoll is one receive under way.
type openPoll struct {
	ctx       context.Context
	cancel    context.CancelFunc
	asked     int
	hope      int           // of a pool, see share
	quit      bool          // the hope of a rich queue was given up
	waited    bool          // for what it brought
	wait      time.Duration // for a first message
	start     time.Time
	cancelled bool // by us
}

// waited reports whether a receive seems to have found the queue empty and
// waited for what it brought now: each message was sent after it began, or came
// back after it was here and the answer took longer than usual. Clocks that
// disagree make young messages look so, or none.
func (w *Worker) waited(o *openPoll, msgs []queue.Message, now time.Time) bool {
	start, end := o.start.Round(0), now.Round(0)
	long := now.Sub(o.start) > w.glanceThin(now)
	for i := range msgs {
		m := &msgs[i]
		late := m.SentAt.After(start) && !m.SentAt.After(end)
		if !late && (!long || !w.returned(m)) {
			return false
		}
	}
	return true
}

// returned reports whether a message was received before, also if that does not
// count any more.
func (w *Worker) returned(m *queue.Message) bool {
	_, here := w.unposted.get(life(m))
	return here || m.ReceiveCount > 1
}

// Bounds of polling.
const (
	maxPolls        = 64               // open at once
	pollMargin      = 30 * time.Second // after the wait, until the queue counts as silent
	failedPollFirst = 250 * time.Millisecond
	failedPollLimit = 15 * time.Second
	refusedFirst    = 5 * time.Second // after a refusal for good
	refusedLimit    = 30 * time.Second
	quickPollLimit  = 5 * time.Second // between empty answers that did not wait
)

// load is what the time of a full answer tells about more receives at once.
type load uint8

const (
	light   load = iota // they would bring more
	heavy               // they would only take longer
	crowded             // there are too many already
)

// loadOf compares a round trip with the shortest of late. A server, or a machine,
// that has enough to do answers later instead of more.
func loadOf(took, least time.Duration) load {
	switch {
	case least == 0 || took <= 3*least+loadSlack:
		return light
	case took <= 6*least+2*loadSlack:
		return heavy
	}
	return crowded
}

// leastTrip returns the shortest round trip of late, 0 when not known. Queues of a
// pool that answer in about the same time are taken to be at one server, which
// each of them slows down for the others: so they have it in common, else
// the one that came last would take its neighbours' load for the usual.
func (w *Worker) leastTrip(now time.Time) time.Duration {
	own := w.pace.trips.extent(now).least
	least := own
	if w.pool != nil {
		for _, m := range w.pool.members {
			if trip := m.pace.trips.extent(now).least; trip > 0 && own <= 8*trip && (least == 0 || trip < least) {
				least = trip
			}
		}
	}
	return least
}

// loadSlack is how much longer than usual an answer may take for other reasons.
const loadSlack = 250 * time.Millisecond

// answer learns from an answer of n messages under a load. It reports whether the receive
// took just one round trip: the queue had plenty before it and after.
func (p *polls) answer(o *openPoll, n int, l load, now time.Time) (roundTrip bool) {
	p.fails = 0
	wet := p.wet
	p.wet = n >= o.asked
	switch {
	case n >= o.asked && (l == heavy || o.start.Before(p.changed)):
		// Right as it is, or the answer does not know the present number.
	case n >= o.asked && l == crowded:
		p.want, p.changed = max(p.want/2, 1), now
	case n >= o.asked:
		p.want, p.changed = min(p.want*2, maxPolls), now
	case n > 0:
		p.want = max(p.want/2, 1)
	default:
		p.want = 1
	}
	if n == 0 && !o.cancelled && now.Sub(o.start) < o.wait/2 {
		p.quick++
		p.notBefore = now.Add(again(p.quick, failedPollFirst, quickPollLimit, 0))
	} else {
		p.quick = 0
	}
	return wet && p.wet
}

// fail learns from a failed receive and returns how long to wait. Receives
// that were open together and fail together count once.
func (p *polls) fail(o *openPoll, v verdict, now time.Time, random float64) time.Duration {
	p.want, p.wet = 1, false
	if o.start.Before(p.failed) && now.Before(p.notBefore) {
		return p.notBefore.Sub(now)
	}
	p.fails++
	p.failed = now
	wait := again(p.fails, failedPollFirst, failedPollLimit, random)
	if v == refused {
		wait = again(p.fails, refusedFirst, refusedLimit, random)
	}
	p.notBefore = now.Add(wait)
	return wait
}

// room returns how many messages the next receive may bring, 0 for none now.
// Below the limit that is what slots are free for; beyond it the prefetch,
// and then only in tens.
func (w *Worker) room(now time.Time) int {
	if w.pool != nil {
		return w.pool.room(w, now)
	}
	prefetch := 0
	if w.limit == w.opts.Concurrency && w.ready.bytes+w.aside.bytes < w.opts.PrefetchBytes {
		prefetch = w.pace.prefetch(w.limit, &w.opts, now)
	}
	limit := w.limit * w.batch.Size
	active := w.inWork*w.batch.Size + w.ready.len() + w.turning + w.polls.asked
	room := limit + prefetch - active
	if active >= limit && room < min(queue.MaxBatch, prefetch) {
		return 0
	}
	return clamp(room, 0, queue.MaxBatch)
}

// maxUnconfirmed is how many messages may wait for the end of their deletes
// before receiving stops: once the concurrency, and what is on its way during
// two round trips, at least 320. It bounds how much is attempted again if the
// process dies now.
func (w *Worker) maxUnconfirmed() int {
	underWay := 2 * w.pace.rate(w.limit) * w.pace.roundTrip.Seconds()
	return w.opts.Concurrency*w.batch.Size + int(min(max(underWay, 320), maxCalls*queue.MaxBatch))
}

// mayPoll reports whether a receive may begin now, as far as this queue is
// concerned and whatever there is room for.
func (w *Worker) mayPoll(now time.Time) bool {
	switch {
	case w.phase != running || w.workCtx.Err() != nil || !w.gate.open(),
		len(w.polls.open) >= w.polls.want,
		now.Before(w.polls.notBefore),
		w.unconfirmed >= w.maxUnconfirmed():
		return false
	}
	return w.pool == nil || !w.pool.resting(w, now)
}

// nextPoll opens a receive if one may begin now; nil if not.
func (w *Worker) nextPoll(now time.Time) *openPoll {
	if !w.mayPoll(now) {
		return nil
	}
	n := w.room(now)
	if n > 0 && w.brake != nil {
		if n = min(n, w.permitted(now)); n <= 0 {
			w.lookAgain(now)
		}
	}
	if n <= 0 {
		return nil
	}
	p := &openPoll{asked: n, start: now, wait: w.opts.WaitTime}
	if w.pool != nil {
		w.pool.opening(w, p)
	}
	p.ctx, p.cancel = context.WithTimeout(w.callCtx, p.wait+pollMargin)
	w.polls.open[p] = struct{}{}
	w.polls.asked += n
	return p
}

// poll begins as many receives as may begin now, also those of the other
// workers of the pool.
func (w *Worker) poll(now time.Time) {
	if w.pool != nil {
		w.pool.poll(now)
		return
	}
	w.pollOwn(now)
}

// pollOwn begins as many receives of this queue as may begin now.
func (w *Worker) pollOwn(now time.Time) {
	for p := w.nextPoll(now); p != nil; p = w.nextPoll(now) {
		w.tasks.Go(func() { w.poller(p) })
	}
}

// poller receives until no further receive may begin.
func (w *Worker) poller(p *openPoll) {
	req := queue.ReceiveRequest{Visibility: &w.opts.VisibilityTimeout}
	for p != nil {
		req.Max, req.Wait = p.asked, &p.wait
		msgs, err := w.queue.Receive(p.ctx, req)
		p.cancel()
		now := time.Now()
		w.mu.Lock()
		p = w.received(p, msgs, err, now)
		w.unlock()
	}
}

// received takes the answer of a receive and returns the next one to make.
func (w *Worker) received(p *openPoll, msgs []queue.Message, err error, now time.Time) *openPoll {
	w.observe(now)
	delete(w.polls.open, p)
	w.polls.asked -= p.asked
	w.polls.hope -= p.hope
	w.status.counts.Polls++
	switch {
	case err == nil || len(msgs) > 0:
		w.take(p, msgs, now)
	case !p.cancelled:
		w.pollFailed(p, err, now)
	}
	w.flushReturning(now)
	w.dispatch(now)
	w.flush(now)
	next := w.nextPoll(now)
	w.poll(now)
	w.wakeAt(w.polls.notBefore)
	w.checkDrained()
	return next
}

// take accepts the messages of one receive.
func (w *Worker) take(p *openPoll, msgs []queue.Message, now time.Time) {
	took := now.Sub(p.start)
	began := w.clock.began(p.start, now, w.pace.travel(w.opts.VisibilityTimeout))
	p.waited = w.waited(p, msgs, now)
	l := light
	if !p.waited {
		l = loadOf(took, w.leastTrip(now))
	}
	plenty := w.polls.answer(p, len(msgs), l, now)
	if len(msgs) >= p.asked && !p.waited && (!p.quit || w.pace.credible(took, now)) {
		w.pace.travelled(took, plenty, now)
	}
	if len(msgs) == 0 {
		w.status.counts.EmptyPolls++
	}
	if w.pool != nil {
		w.pool.answered(w, p, msgs, now)
	}
	w.status.counts.Received += int64(len(msgs))
	for i := range msgs {
		w.accept(&msgs[i], began, now)
	}
	if !w.keeping(now) {
		w.withdraw(now)
	}
	if f := w.events.Received; f != nil {
		event := Received{Asked: p.asked, Messages: len(msgs), Duration: took}
		for i := range msgs {
			wait := now.Round(0).Sub(msgs[i].SentAt)
			event.TotalWait += wait
			event.LongestWait = max(event.LongestWait, wait)
		}
		w.note(func() { f(event) })
	}
}

func (w *Worker) pollFailed(p *openPoll, err error, now time.Time) {
	v := judge(err)
	wait := w.polls.fail(p, v, now, rand.Float64())
	w.status.counts.FailedPolls++
	w.status.failed("receive", err, now)
	if f := w.events.PollFailed; f != nil {
		event := PollFailed{Err: err, Failures: w.polls.fails, Permanent: v == refused, RetryIn: wait}
		w.note(func() { f(event) })
	}
}

// accept takes in one received message, hidden since began.
func (w *Worker) accept(m *queue.Message, began, now time.Time) {
	if h := w.held[m.ID]; h != nil {
		w.receivedAgain(h, m, began, now)
		return
	}
	h := &held{msg: *m, receipt: m.ReceiptHandle, receives: m.ReceiveCount, receivedAt: began, arrivedAt: now}
	h.hide(began, w.opts.VisibilityTimeout)
	w.held[m.ID] = h
	h.life, h.here = life(m), receivesHere(m)
	skipped, _ := w.unposted.get(h.life)
	h.attempt = max(or(h.here, m.ReceiveCount)-skipped, 1)
	h.msg.Attempt = h.attempt
	w.pace.weighed(len(m.Body))
	if _, ok := w.done.get(m.ID); ok {
		w.noteDuplicate(m, "done")
		w.remove(h, now)
		return
	}
	if expired(&w.opts, m, now) {
		h.expired = true
		w.status.counts.Expired++
		if f := w.events.Expired; f != nil {
			event := Expired{ID: m.ID, ReceiveCount: m.ReceiveCount, FirstReceivedAt: m.FirstReceivedAt, SentAt: m.SentAt}
			w.note(func() { f(event) })
		}
		w.remove(h, now)
		return
	}
	if w.line(h) {
		w.makeReady(h, now)
	}
}

// receivedAgain takes a receive of a message that is held here: its receipt
// replaces the old one, and it is not posted a second time.
func (w *Worker) receivedAgain(h *held, m *queue.Message, began, now time.Time) {
	w.noteDuplicate(m, h.stage.String())
	w.skip(h.life, true)
	h.here = receivesHere(m)
	h.receipt, h.receives, h.receivedAt, h.arrivedAt = m.ReceiptHandle, m.ReceiveCount, began, now
	h.hide(began, w.opts.VisibilityTimeout)
	h.lapsed, h.extended, h.nextExtend = false, false, time.Time{}
	if h.stage == deleting {
		w.putDelete(h, now)
	}
}

func (w *Worker) noteDuplicate(m *queue.Message, stage string) {
	w.status.counts.Duplicates++
	if f := w.events.Duplicate; f != nil {
		event := Duplicate{ID: m.ID, ReceiveCount: m.ReceiveCount, Stage: stage}
		w.note(func() { f(event) })
	}
}

// receivesHere returns how often a message was received since it came to its queue;
// 0 for one that came from another, where the queue does not tell.
func receivesHere(m *queue.Message) int {
	if m.Attempt == 0 && m.DeadLetterSource == "" {
		return m.ReceiveCount
	}
	return m.Attempt
}

// life names the time of a message in its queue: after a redrive its receives are
// counted anew.
func life(m *queue.Message) string {
	if m.Attempt == 0 || m.Attempt == m.ReceiveCount {
		return m.ID
	}
	return m.ID + " " + strconv.Itoa(m.ReceiveCount-m.Attempt)
}

// skip notes a receive of a message that never reached the app; counted tells
// that it is among those that the queue counts.
func (w *Worker) skip(life string, counted bool) {
	n, _ := w.unposted.get(life)
	if counted {
		n++
	}
	w.unposted.put(life, n)
}

// pollGrace is how old a receive is when it is taken to wait on a dry queue. A
// younger one may have an answer on its way; cutting it off would leave those
// messages hidden until their visibility ends.
func (w *Worker) pollGrace() time.Duration {
	if w.pace.roundTrip == 0 {
		return 300 * time.Millisecond
	}
	return clamp(3*w.pace.roundTrip, 100*time.Millisecond, time.Second)
}

// cancelPolls cuts off the receives that wait on a dry queue, while the gate
// is closed or the breaker open. It returns when to come again, zero for never.
func (w *Worker) cancelPolls(now time.Time) (next time.Time) {
	if w.gate.open() && !w.tripped(now) {
		return time.Time{}
	}
	grace := w.pollGrace()
	for p := range w.polls.open {
		switch at := p.start.Add(grace); {
		case p.cancelled:
		case w.phase == aborting || !now.Before(at):
			p.cancelled = true
			p.cancel()
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return next
}
