package worker

import (
	"container/heap"
	"time"
)

// visibilityExtender extends the visibility of messages in work, and of those that wait
// for their turn, until they are done or 12 hours after their receive.
type visibilityExtender struct {
	*core
	messages *inventory
	changes  *visibilityChanger
}

// round looks at all messages: receipts that ran out, extensions that are due.
func (e *visibilityExtender) round(now time.Time) {
	for _, h := range e.messages.held {
		if h.stage != posting && h.stage != waiting && h.stage != postponed {
			continue
		}
		switch {
		case !h.lapsed && !now.Before(h.hiddenUntil):
			e.messages.expireVisibility(h)
		case h.stage == postponed && !h.lapsed && h.spent(e.opts.VisibilityTimeout, now):
			heap.Remove(&e.messages.deferred, h.place)
			e.changes.returnWithGroup(h, now)
		default:
			e.extendIfDue(h, now)
		}
	}
}

// extendIfDue extends the visibility of a message if that is due.
func (e *visibilityExtender) extendIfDue(h *held, now time.Time) {
	if v := h.extension(e.opts.VisibilityTimeout, now); v > 0 {
		e.changes.change(pending{h: h, purpose: extendVisibility, receipt: h.receipt, visibility: v,
			until: h.hiddenUntil}, now)
	}
}

// extended takes the result of one extension and reports whether the message is
// hidden for longer now.
func (e *visibilityExtender) extended(p pending, err error, class errorClass, start, now time.Time) bool {
	h := p.h
	switch isNewest := p.receipt == h.receipt; {
	case isNewest && class == applied:
		h.hide(start, p.visibility)
	case isNewest && h.stage != gone && h.stage != deleting:
		e.failed(p, err, class, now)
	}
	if h.following != nil && h.hiddenUntil.After(h.following.until) {
		h.following.until = h.hiddenUntil
	}
	e.changes.ended(h, now)
	return class == applied
}

// failed decides when to try an extension again.
func (e *visibilityExtender) failed(p pending, err error, class errorClass, now time.Time) {
	h := p.h
	e.changes.failed(p, err, class == invalidReceipt, now)
	switch class {
	case invalidReceipt:
		h.hiddenUntil = now
		if !h.lapsed {
			e.messages.expireVisibility(h)
		}
	case refused:
		h.nextExtend = now.Add(refusedLimit)
	default:
		h.nextExtend = now.Add(min(2*time.Second, e.opts.VisibilityTimeout/16))
	}
}
