package worker

import (
	"fmt"
	"time"

	"tendril/queue"
)

type slots struct {
	core     *core
	messages *inventory
	gate     *gate
	limiter  *limiterState
	settler  *settler
	pace     *pace
	lane     *lane // nil without a pool
	turns    history

	parked  []*slot // last in, first out
	scratch []*held // reused by gather
}

// slot is a goroutine that delivers messages. It exits when work is closed.
type slot struct {
	work    chan []*held
	results [1]queue.Result
	settled []Settled
}

// startDeliveries starts deliveries of all workers in the pool. This worker's first one is returned if free is not nil,
// to run on that slot.
func (w *Worker) startDeliveries(free *slot, now time.Time) (own []*held) {
	for {
		of := w
		var batch []*held
		if w.lane != nil {
			of, batch = w.lane.pool.take(now)
		} else if w.core.inWork < w.core.limit && w.messages.ready.len() > 0 {
			batch = w.slots.begin(now)
		}

		switch {
		case batch == nil:
			return own
		case of == w && free != nil:
			own, free = batch, nil
		case len(of.slots.parked) > 0:
			last := len(of.slots.parked) - 1
			of.slots.parked[last].work <- batch
			of.slots.parked = of.slots.parked[:last]
		default:
			idle := &slot{work: make(chan []*held, 1)}
			of.core.tasks.Go(func() { of.work(idle, batch) })
		}
	}
}

func (w *Worker) work(own *slot, batch []*held) {
	for batch != nil {
		if batch = w.deliver(own, batch); batch == nil {
			batch = <-own.work
		}
	}
}

// deliver returns the slot's next delivery, or nil if the slot is now parked.
func (w *Worker) deliver(own *slot, batch []*held) (next []*held) {
	results := w.callApp(own, batch)

	now := time.Now()
	w.core.mu.Lock()
	w.observe(now)
	w.slots.end(batch[0], results, now)
	settled, answered := w.settler.settle(batch, results, own.settled[:0], now)
	own.settled = settled
	if answered {
		w.slots.served(now.Sub(batch[0].startedAt), now)
	}

	w.obeyGate(now)
	next = w.startDeliveries(own, now)
	switch {
	case next != nil:
	case w.core.phase == stopped:
		close(own.work)
	default:
		w.slots.parked = append(w.slots.parked, own)
	}
	w.flush(now)
	w.startReceives(now)
	w.core.mu.Unlock()

	if f := w.core.events.Settled; f != nil {
		for i := range settled {
			f(settled[i])
		}
	}
	return next
}

// callApp fails all messages of a batch if the delivery panics. Deliveries share one context, because creating one each
// would cost more than all other processing.
func (w *Worker) callApp(own *slot, batch []*held) (results []queue.Result) {
	results = own.results[:]
	defer func() {
		if p := recover(); p != nil {
			results = make([]queue.Result, len(batch))
			for i := range results {
				results[i] = queue.Result{Reason: "delivery panicked", Err: fmt.Errorf("delivery panicked: %v", p)}
			}
		}
	}()

	if w.core.opts.Batch.Size == 1 {
		results[0] = w.deliverer.Deliver(w.core.workCtx, &batch[0].msg)
		return results
	}

	msgs := make([]*queue.Message, len(batch))
	for i, h := range batch {
		msgs[i] = &h.msg
	}

	results = w.batches.DeliverBatch(w.core.workCtx, msgs)
	results = results[:min(len(results), len(msgs))]
	for len(results) < len(msgs) {
		results = append(results, queue.Result{Reason: "the delivery returned no result for this message"})
	}
	return results
}

func (s *slots) begin(now time.Time) []*held {
	s.settler.returnStale(now)
	first := s.messages.ready.first()
	if first == nil || !s.gate.open() || s.core.workCtx.Err() != nil || !s.startable(now) {
		return nil
	}

	n, isBatch := 1, s.core.opts.Batch.Size > 1
	if isBatch {
		n = len(s.gather(now))
	}

	if s.limiter != nil {
		if first.permit, n = s.limiter.acquire(now, n); n == 0 {
			s.core.wakeAt(s.limiter.shared.askAt)
			return nil
		}
	}

	first.self[0] = first
	batch := first.self[:]
	if isBatch {
		batch = append([]*held(nil), s.scratch[:n]...)
		s.pace.batch = average(s.pace.batch, float64(n))
	}

	for _, h := range batch {
		if h.stage == ready {
			s.messages.ready.pop()
		} else {
			h.group.active++
			h.group.waiting = h.group.waiting[1:]
		}
		h.stage = posting
		h.startedAt = now
		h.last = s.messages.lastReceive(h)
		h.waited = now.Round(0).Sub(h.msg.SentAt)
		s.core.stats.counts.Posted++
		if h.postponedAt.IsZero() { // a postponed message is counted at its first start
			s.turns.add(h.waited, now)
			if s.lane != nil {
				s.lane.pool.begun.add(h.waited, now)
			}
		}
	}

	s.core.inWork++
	if s.lane != nil {
		s.lane.pool.inWork++
	}
	return batch
}

// returnStale returns ready messages that waited too long for a slot; postponed ones are postponed again.
func (s *settler) returnStale(now time.Time) {
	for h := s.messages.ready.first(); h != nil; h = s.messages.ready.first() {
		expired := !now.Before(h.hiddenUntil)
		if !expired && !h.stale(&s.core.opts, now) {
			break
		}
		s.messages.ready.pop()
		if !h.postponedAt.IsZero() && !h.lapsed && !expired && s.keepable(h, now) {
			s.postpone(h, postponeUsual, now)
		} else {
			s.visibility.returnWithGroup(h, now)
		}
	}
}

func (s *slots) end(first *held, results []queue.Result, now time.Time) {
	s.core.inWork--
	if s.lane != nil {
		s.lane.pool.inWork--
	}
	if s.limiter != nil {
		s.limiter.release(now, first.permit, results)
	}
}

func (s *slots) served(took time.Duration, now time.Time) {
	s.pace.served(took, now)
	if s.lane != nil {
		s.lane.pool.pace.served(took, now)
	}
}

// batchDue returns when an incomplete batch may start; zero means now.
func (s *slots) batchDue(now time.Time) time.Time {
	h := s.messages.ready.first()
	if h == nil || s.core.opts.Batch.Window == 0 || !h.postponedAt.IsZero() ||
		s.messages.ready.len() >= s.core.opts.Batch.Size || len(s.gather(now)) >= s.core.opts.Batch.Size {
		return time.Time{}
	}
	return s.messages.windowEnd(h)
}

func (s *slots) startable(now time.Time) bool {
	return s.messages.ready.len() > 0 && (s.core.opts.Batch.Window == 0 || !now.Before(s.batchDue(now)))
}

// gather returns the next batch, valid until the next call: ready messages in order, each followed by those waiting in
// its FIFO group. A postponed message forms its own batch, because the app may handle it differently. A retried
// message, or one on its last receive, ends its group's part: if it fails, attempts of later messages are in vain.
func (s *slots) gather(now time.Time) []*held {
	s.scratch = s.scratch[:0]
	o, bytes := &s.core.opts.Batch, 0
	add := func(h *held) bool {
		bytes += h.size()
		if len(s.scratch) >= o.Size || (o.Bytes > 0 && bytes > o.Bytes && len(s.scratch) > 0) {
			return false
		}
		s.scratch = append(s.scratch, h)
		return true
	}

	ready := &s.messages.ready
	for _, h := range ready.list[ready.head:] {
		alone := !h.postponedAt.IsZero()
		if h.stale(&s.core.opts, now) || alone && len(s.scratch) > 0 || !add(h) || alone {
			break
		}
		if h.group == nil {
			continue
		}
		for _, next := range h.group.waiting {
			if h.attempt > 1 || s.messages.lastReceive(h) || next.lapsed ||
				now.Sub(next.hiddenFrom) >= next.visibility/2 || !add(next) {
				break
			}
			h = next
		}
	}
	return s.scratch
}
