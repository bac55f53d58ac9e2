package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// visibilityChanger sends all changes of visibility, in tens: extensions, delays before
// the next attempt, and returns of messages that were not posted.
type visibilityChanger struct {
	*core
	queue    Queue
	messages *inventory
	gate     *gate
	changes  batcher
	// returning are returns that wait for the end of the receives under way.
	returning []pending

	// receives is how many receives are under way.
	receives func() int
	// extended takes the result of an extension, and reports whether it was applied.
	extended func(p pending, err error, class errorClass, start, now time.Time) bool
}

// change is the only way in. A message has one change pending or on its way at a time:
// two could arrive in the wrong order. The next waits for the end of the one before it.
func (c *visibilityChanger) change(p pending, due time.Time) {
	if p.h.changing {
		p.h.following = &p
		return
	}
	p.h.changing = true
	c.changes.put(p, due)
}

// ended ends a change that was answered or dropped; the next one may be sent.
func (c *visibilityChanger) ended(h *held, now time.Time) {
	h.changing = false
	if next := h.following; next != nil {
		h.following = nil
		c.change(*next, now)
	}
}

// next returns when flush has to be called again, zero for not before something changes.
func (c *visibilityChanger) next() time.Time { return c.changes.next() }

// flush makes the calls that are due.
func (c *visibilityChanger) flush(now time.Time) {
	for batch := c.changes.cut(now); batch != nil; batch = c.changes.cut(now) {
		if batch = c.sendable(batch, now); len(batch) == 0 {
			c.changes.calls--
			continue
		}
		c.stats.counts.ChangeCalls++
		c.send(batch)
	}
	c.wakeAt(c.changes.next())
}

// sendable drops the extensions that nobody needs any more, and the other
// changes whose receipt has lapsed. What stays is about to be sent.
func (c *visibilityChanger) sendable(batch []pending, now time.Time) []pending {
	kept := batch[:0]
	for _, p := range batch {
		isExtension := p.purpose == extendVisibility
		switch {
		case isExtension && (p.h.stage == gone || p.h.stage == deleting || p.h.lapsed || p.receipt != p.h.receipt):
			c.ended(p.h, now)
			continue
		case !now.Before(p.until):
			c.failed(p, errVisibilityOver, true, now)
			c.ended(p.h, now)
			continue
		case isExtension:
			p.h.extended = true
		default:
			p.visibility = max(p.at.Sub(now), 0)
		}
		kept = append(kept, p)
	}
	return kept
}

func (c *visibilityChanger) send(batch []pending) {
	changes := make([]queue.VisibilityChange, len(batch))
	for i, p := range batch {
		changes[i] = queue.VisibilityChange{ReceiptHandle: p.receipt, Visibility: p.visibility,
			Unread: p.purpose == returnMessage}
	}
	var errs []error
	c.call(func(ctx context.Context) { errs = c.queue.ChangeVisibility(ctx, changes) },
		func(start, now time.Time) { c.answered(batch, errs, start, now) })
}

// answered takes the results of one call.
func (c *visibilityChanger) answered(batch []pending, errs []error, start, now time.Time) {
	var extended, returned, conclusive int
	for i, p := range batch {
		err := entryErr(errs, i)
		class := classify(err)
		if class == applied || class == invalidReceipt {
			conclusive++
		}
		switch {
		case p.purpose == extendVisibility:
			if c.extended(p, err, class, start, now) {
				extended++
			}
		case class != applied:
			c.tryAgain(p, err, class, start, now)
		default:
			c.ended(p.h, now)
			if p.purpose == returnMessage {
				returned++
			}
		}
	}
	c.changes.returned(now, conclusive == 0, rand.Float64())
	c.stats.counts.Extended += int64(extended)
	c.stats.counts.Returned += int64(returned)
	if extended > 0 {
		notify(c.core, c.events.Extended, Extended{Messages: extended, Duration: now.Sub(start)})
	}
	if returned > 0 {
		notify(c.core, c.events.Returned, Returned{Messages: returned})
	}
}

// tryAgain puts back a delay or a return that failed. One that may have
// been applied is only good as long as the message is hidden in either case:
// after that it could make visible what another worker has.
func (c *visibilityChanger) tryAgain(p pending, err error, class errorClass, start, now time.Time) {
	p.tries++
	if end := start.Add(p.visibility); class == uncertain && end.Before(p.until) {
		p.until = end
	}
	due := p.nextTry(now)
	final := class == refused || class == invalidReceipt || !due.Before(p.until) || c.callCtx.Err() != nil
	c.failed(p, err, final, now)
	if final {
		c.ended(p.h, now)
		return
	}
	c.changes.put(p, due)
}

func (c *visibilityChanger) failed(p pending, err error, final bool, now time.Time) {
	c.stats.failed("change of visibility", err, now)
	notify(c.core, c.events.ChangeFailed,
		ChangeFailed{ID: p.h.msg.ID, Kind: p.purpose.String(), Err: err, Final: final})
}

// delayRetry makes a failed message visible at a time.
func (c *visibilityChanger) delayRetry(h *held, at, now time.Time) {
	p := pending{h: h, purpose: delayRetry, receipt: h.receipt, at: at, until: h.hiddenUntil}
	c.change(p, c.lingerUntil(now, h.hiddenUntil.Add(-2*margin(c.opts.VisibilityTimeout))))
}

// release lets go of a message whose visibility runs out by itself. What waits behind
// it is returned, unless it failed at its last receive: then the group goes on without
// it. Returned, those behind it would come again only after it, and perhaps be
// dead-lettered unposted: they were received as often as it was.
func (c *visibilityChanger) release(h *held, now time.Time) {
	if h.dead {
		c.messages.leaveGroup(h, now)
	} else {
		c.returnAll(c.messages.disband(h), now)
	}
	c.messages.forget(h)
}

// returnWithGroup returns a message and all that waits behind it.
func (c *visibilityChanger) returnWithGroup(h *held, now time.Time) {
	c.returnAll(c.messages.disband(h), now)
	c.returnMessage(h, 0, now)
}

// returnAll returns messages of one group. The last one goes first, so that none
// overtakes.
func (c *visibilityChanger) returnAll(group []*held, now time.Time) {
	for i := len(group) - 1; i >= 0; i-- {
		c.returnMessage(group[i], 0, now)
	}
}

// returnMessage makes a message that was never posted visible again, after a pause if
// one is given. One whose visibility ran out is dropped: it may be another worker's by now.
func (c *visibilityChanger) returnMessage(h *held, pause time.Duration, now time.Time) {
	c.messages.forget(h)
	c.messages.skip(h.life, !c.opts.UncountedReturns || !now.Before(h.hiddenUntil))
	if !now.Before(h.hiddenUntil) {
		if !h.lapsed {
			c.messages.expireVisibility(h)
		}
		return
	}
	p := pending{h: h, purpose: returnMessage, receipt: h.receipt, at: now.Add(min(pause, max(h.left(now), 0))),
		until: h.hiddenUntil}
	if h.changing {
		h.following = &p
		return
	}
	c.returning = append(c.returning, p)
}

// flushReturning sends the returns. While the gate is closed, or once deliveries
// are cut off, they wait for the end of the receives under way, which would only receive
// them again.
func (c *visibilityChanger) flushReturning(now time.Time) {
	if len(c.returning) == 0 {
		return
	}
	if over := !c.gate.open() || c.workCtx.Err() != nil; over && c.receives() > 0 {
		return
	}
	for _, p := range c.returning {
		c.change(p, now)
	}
	clear(c.returning)
	c.returning = c.returning[:0]
	c.flush(now)
}

// idle reports whether nothing is pending or on its way.
func (c *visibilityChanger) idle() bool { return len(c.returning) == 0 && c.changes.idle() }
