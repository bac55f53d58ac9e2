package worker

import "time"

type deleter struct {
	core        *core
	messages    *inventory
	gate        *gate
	visibility  *visibilityChanger
	pace        *pace
	pending     batcher
	unconfirmed int // messages being deleted
	abandoned   int // while stopping
}

func (d *deleter) remove(h *held, now time.Time) {
	h.stage = deleting
	d.unconfirmed++
	if g := h.group; g != nil {
		g.deleting++
		d.messages.markTurning(g)
	}
	d.queueDelete(h, now)
}

func (d *deleter) queueDelete(h *held, now time.Time) {
	p := pending{h: h, receipt: h.receipt, until: h.hiddenUntil.Add(-d.core.margin)}
	if h.lapsed {
		p.until = now.Add(callTimeout) // the queue decides whether the receipt handle is valid
	}
	d.pending.put(p, d.core.lingerUntil(now, h.hiddenUntil))
}

func (d *deleter) failing() bool { return d.pending.fails > 0 }

func (d *deleter) callEnded(batch []pending, errs []error, start, now time.Time) {
	var deleted, conclusive int
	var refusal error
	for i, p := range batch {
		err := entryErr(errs, i)
		class := classify(err)
		switch class {
		case applied:
			deleted++
			conclusive++
			if p.isWanted() {
				d.confirm(p.h, start, now)
			}
		case invalidReceipt:
			conclusive++
			d.giveUp(p, err, now)
		default:
			if class == refused {
				refusal = err
			}
			d.retryDelete(p, err, class, now)
		}
	}

	d.pending.callEnded(batch, now, conclusive == 0, d.core.opts.Random())
	if conclusive > 0 {
		d.pace.recordDelete(now.Sub(start), now)
		d.gate.lift(DeleteRefused)
	} else if refusal != nil {
		d.stopReceiving(refusal, now)
	}
	d.core.counts.Deleted += int64(deleted)
	if deleted > 0 {
		notify(d.core, d.core.events.Deleted, Deleted{Messages: deleted, Duration: now.Sub(start)})
	}
}

func (d *deleter) stopReceiving(refusal error, now time.Time) {
	d.pending.holdUntil = now.Add(retryWait(d.pending.fails, refusedFirst, refusedLimit, d.core.opts.Random()))
	d.gate.close(DeleteRefused, "the queue rejects deletes, so messages would be processed repeatedly: "+refusal.Error(), now)
}

// A standard queue confirms deletes with outdated receipt handles without deleting anything, so confirm remembers a
// message deleted after its visibility timeout as done.
func (d *deleter) confirm(h *held, sent, now time.Time) {
	d.unconfirmed--
	m := d.messages
	m.forget(h)
	delete(m.unposted.values, keyInQueue(h.msg.ID, h.receives, h.receivesHere))

	isCertain := d.core.opts.FIFO || sent.Before(h.hiddenUntil)
	if isCertain {
		delete(m.done.values, h.msg.ID)
	} else if !h.lapsed && !h.isExpired {
		m.done.remember(h.msg.ID, struct{}{})
	}
	if h.group != nil {
		h.group.deleting--
		m.leaveGroup(h, now)
	}
}

func (d *deleter) retryDelete(p pending, err error, class errorClass, now time.Time) {
	p.tries++
	if (class == refused && d.core.phase != running) || d.core.callCtx.Err() != nil {
		d.giveUp(p, err, now)
		return
	}
	d.reportFailure(p, err, false)
	d.pending.put(p, p.nextTry(now, d.core.opts.Random()))
}

// A message processed within its visibility timeout is deleted without being posted when received again.
func (d *deleter) giveUp(p pending, err error, now time.Time) {
	if !p.isWanted() {
		return
	}
	h := p.h
	d.unconfirmed--
	d.core.counts.DeletesLost++
	if d.core.phase != running {
		d.abandoned++
	}
	d.reportFailure(p, err, true)
	if !h.lapsed && !h.isExpired {
		d.messages.done.remember(h.msg.ID, struct{}{})
	}
	d.visibility.leaveToTimeout(h, now)
}

func (d *deleter) reportFailure(p pending, err error, final bool) {
	d.core.stats.recordFailedCall("delete", err)
	notify(d.core, d.core.events.DeleteFailed, DeleteFailed{ID: p.h.msg.ID, Task: p.h.task(), Err: err, Final: final,
		DeadLetter: p.h.letter != nil})
}
