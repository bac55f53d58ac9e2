package worker

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// BatchDeliverer is a [Deliverer] that can also hand over several messages at
// once. It is used so when [Batch] asks for more than one message.
type BatchDeliverer interface {
	// DeliverBatch hands over up to [Batch].Size messages in one delivery, at
	// most once, and says how that ended for each, in their order. A message
	// without a result is failed. What is said of Deliver holds here too.
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// Batch says how many messages travel in one delivery. The zero value is one.
type Batch struct {
	// Size is the most messages of one delivery, 1 to 10; 0 means 1. It takes
	// effect when the worker's [Deliverer] is a [BatchDeliverer] as well.
	Size int
	// Window is how long a delivery that has fewer messages waits for more,
	// counted from the first of them, 0 to 300 s and at most three eighths of
	// the visibility timeout; 0 means not at all.
	Window time.Duration
	// Bytes bounds the bodies and attributes of one delivery, as they are in
	// the queue; a single message may be larger. 0 means no bound.
	Bytes int
}

// MaxBatchWindow is the longest [Batch].Window.
const MaxBatchWindow = 300 * time.Second

// settled returns a copy with everything in its range.
func (b Batch) settled(visibility time.Duration) Batch {
	b.Size = clamp(b.Size, 1, queue.MaxBatch)
	b.Window = clamp(b.Window, 0, min(MaxBatchWindow, visibility*3/8))
	if b.Size == 1 {
		b.Window = 0
	}
	return b
}

// due returns when the head of the line-up may start with what is there; zero
// when that is now, because a whole batch is there or nothing is waited for.
func (w *Worker) due(now time.Time) time.Time {
	h := w.ready.first()
	if h == nil || w.batch.Window == 0 || !h.postponed.IsZero() || w.ready.len() >= w.batch.Size ||
		len(w.gather(now)) >= w.batch.Size {
		return time.Time{}
	}
	return w.windowEnd(h)
}

// windowEnd returns when the window of a batch ends that begins with h: in any
// case while h may still be started.
func (w *Worker) windowEnd(h *held) time.Time {
	end, latest := h.readyAt.Add(w.batch.Window), h.hiddenFrom.Add(w.opts.VisibilityTimeout*7/16)
	if latest.Before(end) {
		return latest
	}
	return end
}

// startable reports whether the head of the line-up may start now.
func (w *Worker) startable(now time.Time) bool {
	return w.ready.len() > 0 && (w.batch.Window == 0 || !now.Before(w.due(now)))
}

// gather returns the messages of the next batch without taking them: those at
// the head of the line-up, each followed by what waits behind it in its FIFO
// group. What was postponed before travels alone: it may be tried in a way of
// its own. Nothing travels behind a message of its group that was tried before,
// or cannot be tried again: should it fail, those behind it were tried in vain.
// The result is good until the next call.
func (w *Worker) gather(now time.Time) []*held {
	w.scratch = w.scratch[:0]
	bytes := 0
	add := func(h *held) bool {
		bytes += h.size()
		if len(w.scratch) >= w.batch.Size || (w.batch.Bytes > 0 && bytes > w.batch.Bytes && len(w.scratch) > 0) {
			return false
		}
		w.scratch = append(w.scratch, h)
		return true
	}
	for _, h := range w.ready.list[w.ready.head:] {
		alone := !h.postponed.IsZero()
		if w.stale(h, now) || alone && len(w.scratch) > 0 || !add(h) || alone {
			break
		}
		if h.group == nil {
			continue
		}
		for _, next := range h.group.waiting {
			if h.attempt > 1 || w.last(h) || now.Sub(next.hiddenFrom) >= w.opts.VisibilityTimeout/2 || next.lapsed ||
				!add(next) {
				break
			}
			h = next
		}
	}
	return w.scratch
}

// size returns the bytes of a message's body and attributes.
func (h *held) size() int {
	n := len(h.msg.Body)
	for _, a := range h.msg.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// beginBatch takes the next batch; nil when it is not time for one. The first
// message carries the others.
func (w *Worker) beginBatch(now time.Time) *held {
	if !w.startable(now) {
		return nil
	}
	msgs := w.gather(now)
	p := w.brake.acquire(now, len(msgs))
	if p.messages == 0 {
		w.wakeAt(w.askAt())
		return nil
	}
	msgs = append([]*held(nil), msgs[:p.messages]...)
	for _, h := range msgs {
		if h.stage == ready {
			w.ready.pop()
		} else {
			g := h.group
			g.active++
			g.waiting = g.waiting[1:]
		}
		w.posted(h, now)
	}
	h := msgs[0]
	h.mates, h.permit = msgs, p
	w.pace.loaded(len(msgs))
	return h
}

// attemptBatch is attempt for several messages in one delivery.
func (w *Worker) attemptBatch(s *slot, batch []*held) *held {
	msgs := make([]*queue.Message, len(batch))
	for i, h := range batch {
		msgs[i] = &h.msg
		w.started(h, len(batch))
	}
	results := complete(w.deliverBatch(msgs), len(msgs))
	now := time.Now()
	w.mu.Lock()
	settled := w.finishBatch(batch, results, now)
	next := w.next(s, now)
	w.unlock()
	if f := w.events.Settled; f != nil {
		for i := range settled {
			f(settled[i])
		}
	}
	return next
}

// deliverBatch is deliver for several messages.
func (w *Worker) deliverBatch(msgs []*queue.Message) (results []queue.Result) {
	ctx, cancel := context.WithCancel(w.workCtx)
	defer func() {
		cancel()
		if p := recover(); p != nil {
			err := fmt.Errorf("delivery panicked: %v", p)
			results = make([]queue.Result, len(msgs))
			for i := range results {
				results[i] = queue.Result{Reason: "delivery panicked", Err: err}
			}
		}
	}()
	return w.batchApp.DeliverBatch(ctx, msgs)
}

// complete returns one result for each of n messages: nobody vouched for those
// without one.
func complete(results []queue.Result, n int) []queue.Result {
	results = results[:min(len(results), n)]
	for len(results) < n {
		results = append(results, queue.Result{Reason: "the delivery gave no result for this message"})
	}
	return results
}

// inOrder takes back the successes of a FIFO batch that come after a message
// of the same group which is not done. To delete them would make the earlier
// one the last to take effect; so they are failures, and come again behind it.
// The result tells for each message which one of the batch it has to come
// behind, -1 for none.
func inOrder(msgs []*held, results []queue.Result) (behind []int) {
	broken := map[string]int{}
	behind = make([]int, len(msgs))
	for i, h := range msgs {
		id := h.msg.GroupID
		first, found := broken[id]
		switch {
		case id == "":
			behind[i] = -1
		case found:
			behind[i] = first
			if results[i].Outcome == queue.Done {
				results[i].Outcome, results[i].Reason = queue.Failed, "done, but an earlier message of its group is not"
			}
		default:
			behind[i] = -1
			if results[i].Outcome != queue.Done {
				broken[id] = i
			}
		}
	}
	return behind
}

// finishBatch settles every message of a delivery that ended now; there is no
// Settled for those that were postponed.
func (w *Worker) finishBatch(batch []*held, results []queue.Result, now time.Time) []Settled {
	w.observe(now)
	w.vacate()
	first := batch[0]
	first.mates = nil
	var behind []int
	if w.opts.FIFO {
		behind = inOrder(batch, results)
	}
	w.brake.release(now, first.permit, results...)
	settled := make([]Settled, 0, len(batch))
	actions := make([]action, len(batch))
	aborted := false
	for i, h := range batch {
		h.dead = w.dies(h, &results[i])
		actions[i] = w.decide(h, &results[i], now)
		if behind != nil && behind[i] >= 0 && actions[i].verb == retry && actions[behind[i]].verb == retry {
			actions[i].after = actions[behind[i]].after
		}
		if results[i].Outcome == queue.Postponed {
			continue
		}
		s := w.apply(h, &results[i], actions[i], now)
		s.Batch = len(batch)
		aborted = aborted || s.Aborted
		settled = append(settled, s)
	}
	w.putOff(batch, results, actions, now)
	w.learnBatch(first, results, aborted, now)
	w.flushReturning(now)
	return settled
}

// learnBatch takes what a delivery of several messages says about the app:
// it answered if it judged any of them.
func (w *Worker) learnBatch(first *held, results []queue.Result, aborted bool, now time.Time) {
	worst := &results[0]
	for i := range results {
		r := &results[i]
		switch {
		case r.Unsent:
		case r.Outcome == queue.Done, r.Outcome == queue.Failed:
			w.learn(first, r, aborted, now)
			return
		case r.Outcome == queue.Throttled:
			worst = r
		case r.Outcome == queue.Unreached:
			if worst.Outcome == queue.Postponed || worst.Unsent {
				worst = r
			}
		}
	}
	w.learn(first, worst, aborted, now)
}
