package worker

import (
	"slices"
	"time"
)

type visibilityChanger struct {
	core      *core
	messages  *inventory
	pending   batcher
	returning []pending
}

func (v *visibilityChanger) checkHeld(now time.Time) {
	for _, h := range v.messages.held {
		if h.stage == ready || h.stage == deleting {
			continue
		}
		switch {
		case !h.lapsed && !now.Before(h.hiddenUntil):
			v.messages.expireVisibility(h)
		case h.stage == postponed && !h.lapsed && h.tooOldToExtend(now):
			v.messages.postponed.remove(h)
			v.returnWithGroup(h, now)
		default:
			v.extendIfDue(h, now)
		}
	}
}

func (v *visibilityChanger) extendIfDue(h *held, now time.Time) {
	if d := h.extension(now); d > 0 {
		v.queueChange(pending{h: h, purpose: extendVisibility, receipt: h.receipt, visibility: d, until: h.hiddenUntil}, now)
	}
}

// queueChange waits for the end of the message's current change, because two could arrive in the wrong order.
func (v *visibilityChanger) queueChange(p pending, due time.Time) {
	if p.h.changing {
		p.h.nextChange = &p
		return
	}
	p.h.changing = true
	v.pending.put(p, due)
}

func (v *visibilityChanger) changeEnded(h *held, now time.Time) {
	h.changing = false
	if next := h.nextChange; next != nil {
		h.nextChange = nil
		v.queueChange(*next, now)
	}
}

func (v *visibilityChanger) queueReturns(now time.Time) {
	for _, p := range v.returning {
		v.queueChange(p, now)
	}
	clear(v.returning)
	v.returning = v.returning[:0]
}

func (v *visibilityChanger) callEnded(batch []pending, errs []error, start, now time.Time) {
	var changed [returnMessage + 1]int
	failed := true
	for i, p := range batch {
		err := entryErr(errs, i)
		class := classify(err)
		if class == applied {
			changed[p.purpose]++
		}
		if class == applied || class == invalidReceipt {
			failed = false
		}

		switch {
		case p.purpose == extendVisibility:
			v.extensionEnded(p, err, class, start, now)
		case class == applied:
			v.changeEnded(p.h, now)
		default:
			v.retryChange(p, err, class, start, now)
		}
	}

	v.pending.callEnded(batch, now, failed, v.core.opts.Random())
	extended, returned := changed[extendVisibility], changed[returnMessage]
	v.core.counts.Extended += int64(extended)
	v.core.counts.Returned += int64(returned)
	if extended > 0 {
		notify(v.core, v.core.events.Extended, Extended{Messages: extended, Duration: now.Sub(start)})
	}
	if returned > 0 {
		notify(v.core, v.core.events.Returned, Returned{Messages: returned})
	}
}

func (v *visibilityChanger) extensionEnded(p pending, err error, class errorClass, start, now time.Time) {
	h := p.h
	isLatestReceive := p.receipt == h.receipt
	if isLatestReceive && class == applied {
		h.hide(start, p.visibility)
	}
	if isLatestReceive && class != applied && h.stage != gone && h.stage != deleting {
		v.extensionFailed(p, err, class, now)
	}
	if h.nextChange != nil {
		h.nextChange.until = later(h.nextChange.until, h.hiddenUntil)
	}
	v.changeEnded(h, now)
}

// A later round tries again, unless the receipt handle is invalid.
func (v *visibilityChanger) extensionFailed(p pending, err error, class errorClass, now time.Time) {
	h := p.h
	v.reportFailure(p, err)
	switch class {
	case refused:
		h.nextExtend = now.Add(refusedLimit)
	case invalidReceipt:
		h.hiddenUntil = now
		v.messages.expireVisibility(h)
	default:
		h.nextExtend = now.Add(min(2*time.Second, h.visibility/16))
	}
}

// If a change may have been applied, retryChange retries it only while the message is invisible in either case,
// because another worker may receive it later.
func (v *visibilityChanger) retryChange(p pending, err error, class errorClass, start, now time.Time) {
	v.reportFailure(p, err)
	p.tries++
	if end := start.Add(p.visibility); class == uncertain && end.Before(p.until) {
		p.until = end
	}
	due := p.nextTry(now, v.core.opts.Random())
	isPermanent := class == refused || class == invalidReceipt
	if isPermanent || !due.Before(p.until) || v.core.callCtx.Err() != nil {
		v.changeEnded(p.h, now)
		return
	}
	v.pending.put(p, due)
}

func (v *visibilityChanger) reportFailure(p pending, err error) {
	v.core.stats.recordFailedCall("change of visibility", err)
	notify(v.core, v.core.events.ChangeFailed,
		ChangeFailed{ID: p.h.msg.ID, Task: p.h.task(), Kind: p.purpose.String(), Err: err})
}

func (v *visibilityChanger) delayRetry(h *held, at, now time.Time) {
	p := pending{h: h, purpose: delayRetry, receipt: h.receipt, at: at, until: h.hiddenUntil}
	v.queueChange(p, v.core.lingerUntil(now, h.hiddenUntil))
}

// leaveToTimeout drops a message, which becomes visible when its timeout ends, and returns the messages behind it in
// its FIFO group. After a failure on the last receive, it keeps them: they have been received as often, and another
// receive might dead-letter them unposted.
func (v *visibilityChanger) leaveToTimeout(h *held, now time.Time) {
	if h.failedLastReceive {
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

// returnAll works backward to preserve the group's order.
func (v *visibilityChanger) returnAll(group []*held, now time.Time) {
	for _, h := range slices.Backward(group) {
		v.returnMessage(h, 0, now)
	}
}

// After its visibility timeout, h is only dropped.
func (v *visibilityChanger) returnMessage(h *held, pause time.Duration, now time.Time) {
	isVisible := !now.Before(h.hiddenUntil)
	v.messages.forget(h)
	v.messages.countUnposted(h, !v.core.opts.UncountedReturns || isVisible)
	if isVisible {
		v.messages.expireVisibility(h)
		return
	}

	pause = min(pause, max(h.longestTimeout(now), 0))
	p := pending{h: h, purpose: returnMessage, receipt: h.receipt, at: now.Add(pause), until: h.hiddenUntil}
	if h.changing {
		h.nextChange = &p
		return
	}
	v.returning = append(v.returning, p)
	v.core.wakeAt(now)
}
