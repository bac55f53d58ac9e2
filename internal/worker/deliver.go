package worker

import (
	"fmt"
	"slices"
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
	starts   history

	parked        []*slot // last in, first out
	gathered      []*held // by gatherBatch
	gatheredBytes int
}

// slot is a goroutine that delivers messages until work is closed.
type slot struct {
	work    chan []*held
	results [1]queue.Result
	settled []Settled
}

// startDeliveries starts deliveries of all workers in the pool. If free is not nil, it returns this worker's first
// batch, to run on free, instead of starting it.
func (w *Worker) startDeliveries(free *slot, now time.Time) (own []*held) {
	for {
		of, batch := w.beginNext(now)
		switch {
		case batch == nil:
			return own
		case of == w && free != nil:
			own, free = batch, nil
		default:
			of.dispatch(batch)
		}
	}
}

func (w *Worker) beginNext(now time.Time) (of *Worker, batch []*held) {
	if w.lane != nil {
		return w.lane.pool.beginNext(now)
	}
	if w.core.inWork >= w.core.limit || w.messages.ready.len() == 0 {
		return w, nil
	}
	return w, w.slots.beginBatch(now)
}

func (w *Worker) dispatch(batch []*held) {
	if last := len(w.slots.parked) - 1; last >= 0 {
		w.slots.parked[last].work <- batch
		w.slots.parked = w.slots.parked[:last]
		return
	}
	added := &slot{work: make(chan []*held, 1)}
	w.core.tasks.Go(func() { w.runSlot(added, batch) })
}

func (w *Worker) runSlot(own *slot, batch []*held) {
	for batch != nil {
		if batch = w.deliver(own, batch); batch == nil {
			batch = <-own.work
		}
	}
}

// next is nil if the slot is now parked or closed.
func (w *Worker) deliver(own *slot, batch []*held) (next []*held) {
	results := w.callApp(own, batch)

	now := time.Now()
	w.core.mu.Lock()
	w.checkClock(now)
	w.slots.endBatch(batch[0], results, now)
	settled, responded := w.settler.settle(batch, results, own.settled[:0], now)
	own.settled = settled
	if responded {
		w.slots.recordDelivery(now.Sub(batch[0].startedAt), now)
	}

	w.applyGate(now)
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

// If the delivery panics, all messages fail. All deliveries share one context, because creating contexts would cost
// more than all other processing.
func (w *Worker) callApp(own *slot, batch []*held) (results []queue.Result) {
	defer func() {
		if p := recover(); p != nil {
			panicked := queue.Result{Reason: "delivery panicked", Err: fmt.Errorf("delivery panicked: %v", p)}
			results = slices.Repeat([]queue.Result{panicked}, len(batch))
		}
	}()
	if w.core.opts.Batch.Size == 1 {
		own.results[0] = w.deliverer.Deliver(w.core.workCtx, &batch[0].msg)
		return own.results[:]
	}
	return w.deliverBatch(batch)
}

func (w *Worker) deliverBatch(batch []*held) []queue.Result {
	msgs := make([]*queue.Message, len(batch))
	for i, h := range batch {
		msgs[i] = &h.msg
	}
	results := w.batches.DeliverBatch(w.core.workCtx, msgs)
	results = results[:min(len(results), len(msgs))]
	for len(results) < len(msgs) {
		results = append(results, queue.Result{Reason: "the delivery returned no result for this message"})
	}
	return results
}

func (s *slots) beginBatch(now time.Time) []*held {
	s.settler.returnStale(now)
	if !s.gate.open() || s.core.workCtx.Err() != nil || !s.startable(now) {
		return nil
	}

	first := s.messages.ready.first()
	first.batchOfOne[0] = first
	batch := first.batchOfOne[:]
	isBatch := s.core.opts.Batch.Size > 1
	if isBatch {
		batch = s.gatherBatch(now)
	}
	if s.limiter != nil {
		permit, size := s.limiter.acquire(now, len(batch))
		if size == 0 {
			s.core.wakeAt(s.limiter.shared.askAt)
			return nil
		}
		first.permit, batch = permit, batch[:size]
	}

	if isBatch {
		batch = slices.Clone(batch)
		s.pace.batch = average(s.pace.batch, float64(len(batch)))
	}
	for _, h := range batch {
		s.beginMessage(h, now)
	}

	s.core.inWork++
	if s.lane != nil {
		s.lane.pool.inWork++
	}
	return batch
}

// beginMessage marks h, which must be the next ready message or the next one of its group, as being delivered.
func (s *slots) beginMessage(h *held, now time.Time) {
	if h.stage == ready {
		s.messages.ready.pop()
	} else {
		h.group.active++
		h.group.waiting = h.group.waiting[1:]
	}

	h.stage = posting
	h.startedAt = now
	h.onLastReceive = s.messages.lastReceive(h)
	h.waited = now.Round(0).Sub(h.msg.SentAt)

	if h.postponedAt.IsZero() { // a postponed message counts only once
		s.starts.add(h.waited, now)
		if s.lane != nil {
			s.lane.pool.starts.add(h.waited, now)
		}
	}
}

// returnStale returns ready messages that have waited too long for a slot, or postpones them again.
func (s *settler) returnStale(now time.Time) {
	for h := s.messages.ready.first(); h != nil; h = s.messages.ready.first() {
		isVisible := !now.Before(h.hiddenUntil)
		if !isVisible && !h.stale(&s.core.opts, now) {
			return
		}

		s.messages.ready.pop()
		if !h.postponedAt.IsZero() && !h.lapsed && !isVisible && s.mayKeep(h, now) {
			s.postpone(h, postponeUsual, now)
		} else {
			s.visibility.returnWithGroup(h, now)
		}
	}
}

func (s *slots) endBatch(first *held, results []queue.Result, now time.Time) {
	s.core.inWork--
	if s.lane != nil {
		s.lane.pool.inWork--
	}
	if s.limiter != nil {
		s.limiter.release(now, first.permit, results)
	}
}

func (s *slots) recordDelivery(took time.Duration, now time.Time) {
	s.pace.recordDelivery(took, now)
	if s.lane != nil {
		s.lane.pool.pace.recordDelivery(took, now)
	}
}

func (s *slots) addStatus(status *Status, now time.Time) {
	own := s.starts.sum(now)
	status.LongestWait = own.most

	all := own.count
	if s.lane != nil {
		all = s.lane.pool.starts.sum(now).count
	}
	if all > 0 {
		status.TurnShare = float64(own.count) / float64(all)
	}
}

// batchDue returns when an incomplete batch may start; zero means now.
func (s *slots) batchDue(now time.Time) time.Time {
	h, o := s.messages.ready.first(), &s.core.opts.Batch
	if h == nil || o.Window == 0 || !h.postponedAt.IsZero() {
		return time.Time{}
	}
	isComplete := s.messages.ready.len() >= o.Size || len(s.gatherBatch(now)) >= o.Size
	if isComplete {
		return time.Time{}
	}
	return s.messages.windowEnd(h)
}

func (s *slots) startable(now time.Time) bool {
	return s.messages.ready.len() > 0 && (s.core.opts.Batch.Window == 0 || !now.Before(s.batchDue(now)))
}

// gatherBatch returns the next batch, valid until the next call: ready messages in order, each followed by the
// waiting ones of its FIFO group. A postponed message forms its own batch.
func (s *slots) gatherBatch(now time.Time) []*held {
	s.gathered, s.gatheredBytes = s.gathered[:0], 0
	ready := &s.messages.ready
	for _, h := range ready.list[ready.head:] {
		alone := !h.postponedAt.IsZero()
		if h.stale(&s.core.opts, now) || alone && len(s.gathered) > 0 {
			break
		}
		if !s.gather(h) || alone {
			break
		}
		if h.group != nil {
			s.gatherBehind(h, now)
		}
	}
	return s.gathered
}

// gatherBehind adds the messages waiting behind h, unless h is retried or on its last receive: if h fails, they fail
// too (see failAfterUnfinished).
func (s *slots) gatherBehind(h *held, now time.Time) {
	for _, next := range h.group.waiting {
		if h.msg.Attempt > 1 || s.messages.lastReceive(h) || next.lapsed || next.isHalfway(now) || !s.gather(next) {
			return
		}
		h = next
	}
}

func (s *slots) gather(h *held) bool {
	o := &s.core.opts.Batch
	s.gatheredBytes += h.size()
	if len(s.gathered) >= o.Size || o.Bytes > 0 && s.gatheredBytes > o.Bytes && len(s.gathered) > 0 {
		return false
	}
	s.gathered = append(s.gathered, h)
	return true
}
