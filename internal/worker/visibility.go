package worker

import (
	"container/heap"
	"slices"
	"time"
)

type visibilityChanger struct {
	core      *core
	messages  *inventory
	pending   batcher
	returning []pending
}

func (v *visibilityChanger) round(now time.Time) {
	for _, h := range v.messages.held {
		switch {
		case h.stage != posting && h.stage != waiting && h.stage != postponed && h.stage != deadLettering:
		case !h.lapsed && !now.Before(h.hiddenUntil):
			v.messages.expireVisibility(h)
		case h.stage == postponed && !h.lapsed && h.spent(now):
			heap.Remove(&v.messages.deferred, h.place)
			v.returnWithGroup(h, now)
		default:
			v.extendIfDue(h, now)
		}
	}
}

func (v *visibilityChanger) extendIfDue(h *held, now time.Time) {
	if d := h.extension(now); d > 0 {
		v.change(pending{h: h, purpose: extendVisibility, receipt: h.receipt, visibility: d, until: h.hiddenUntil}, now)
	}
}

// change queues a visibility change. Each message has at most one, because two could arrive in the wrong order.
func (v *visibilityChanger) change(p pending, due time.Time) {
	if p.h.changing {
		p.h.following = &p
		return
	}
	p.h.changing = true
	v.pending.put(p, due)
}

func (v *visibilityChanger) ended(h *held, now time.Time) {
	h.changing = false
	if next := h.following; next != nil {
		h.following = nil
		v.change(*next, now)
	}
}

func (v *visibilityChanger) queueReturns(now time.Time) {
	for _, p := range v.returning {
		v.change(p, now)
	}
	clear(v.returning)
	v.returning = v.returning[:0]
}

func (v *visibilityChanger) answered(batch []pending, errs []error, start, now time.Time) {
	v.core.stats.counts.ChangeCalls++
	var extended, returned, conclusive int
	for i, p := range batch {
		err := entryErr(errs, i)
		class := classify(err)
		if class == applied || class == invalidReceipt {
			conclusive++
		}
		switch {
		case p.purpose == extendVisibility:
			v.extended(p, err, class, start, now)
			if class == applied {
				extended++
			}
		case class != applied:
			v.tryAgain(p, err, class, start, now)
		default:
			v.ended(p.h, now)
			if p.purpose == returnMessage {
				returned++
			}
		}
	}

	v.pending.returned(batch, now, conclusive == 0, v.core.opts.Random())
	v.core.stats.counts.Extended += int64(extended)
	v.core.stats.counts.Returned += int64(returned)
	if extended > 0 {
		notify(v.core, v.core.events.Extended, Extended{Messages: extended, Duration: now.Sub(start)})
	}
	if returned > 0 {
		notify(v.core, v.core.events.Returned, Returned{Messages: returned})
	}
}

func (v *visibilityChanger) extended(p pending, err error, class errorClass, start, now time.Time) {
	h := p.h
	switch isNewest := p.receipt == h.receipt; {
	case !isNewest:
	case class == applied:
		h.hide(start, p.visibility)
	case h.stage != gone && h.stage != deleting:
		v.failed(p, err)
		h.nextExtend = now.Add(min(2*time.Second, h.visibility/16))
		if class == refused {
			h.nextExtend = now.Add(refusedLimit)
		}
		if class == invalidReceipt {
			h.hiddenUntil = now
			v.messages.expireVisibility(h)
		}
	}

	if h.following != nil {
		h.following.until = later(h.following.until, h.hiddenUntil)
	}
	v.ended(h, now)
}

// tryAgain retries a failed change. One that may have been applied is retried only while the message is invisible
// either way, because another worker may receive it after that.
func (v *visibilityChanger) tryAgain(p pending, err error, class errorClass, start, now time.Time) {
	p.tries++
	if end := start.Add(p.visibility); class == uncertain && end.Before(p.until) {
		p.until = end
	}
	due := p.nextTry(now, v.core.opts.Random())
	final := class == refused || class == invalidReceipt || !due.Before(p.until) || v.core.callCtx.Err() != nil
	v.failed(p, err)
	if final {
		v.ended(p.h, now)
		return
	}
	v.pending.put(p, due)
}

func (v *visibilityChanger) failed(p pending, err error) {
	v.core.stats.failed("change of visibility", err)
	notify(v.core, v.core.events.ChangeFailed,
		ChangeFailed{ID: p.h.msg.ID, Task: p.h.task(), Kind: p.purpose.String(), Err: err})
}

func (v *visibilityChanger) delayRetry(h *held, at, now time.Time) {
	p := pending{h: h, purpose: delayRetry, receipt: h.receipt, at: at, until: h.hiddenUntil}
	v.change(p, v.core.lingerUntil(now, h.hiddenUntil))
}

// release drops a message that becomes visible when its timeout expires, and returns the messages behind it in its FIFO
// group. If it failed on its last receive, they are kept: they have been received as often, and another receive might
// dead-letter them unposted.
func (v *visibilityChanger) release(h *held, now time.Time) {
	if h.dead {
		v.messages.leaveGroup(h, now)
	} else {
		v.returnAll(v.messages.disband(h), now)
	}
	v.messages.forget(h)
}

func (v *visibilityChanger) returnWithGroup(h *held, now time.Time) {
	v.returnAll(v.messages.disband(h), now)
	v.returnMessage(h, 0, now)
}

// returnAll works backward to preserve the order of the group.
func (v *visibilityChanger) returnAll(group []*held, now time.Time) {
	for _, h := range slices.Backward(group) {
		v.returnMessage(h, 0, now)
	}
}

func (v *visibilityChanger) returnMessage(h *held, pause time.Duration, now time.Time) {
	isOver := !now.Before(h.hiddenUntil)
	v.messages.forget(h)
	v.messages.countUnposted(h, !v.core.opts.UncountedReturns || isOver)
	if isOver {
		v.messages.expireVisibility(h)
		return
	}
	p := pending{h: h, purpose: returnMessage, receipt: h.receipt, at: now.Add(min(pause, max(h.left(now), 0))),
		until: h.hiddenUntil}
	if h.changing {
		h.following = &p
		return
	}
	v.returning = append(v.returning, p)
	v.core.wakeAt(now)
}
