package worker

import "time"

type deleter struct {
	core       *core
	messages   *inventory
	gate       *gate
	visibility *visibilityChanger
	pace       *pace
	pending    batcher
	abandoned  int // given up during shutdown
}

func (d *deleter) remove(h *held, now time.Time) {
	h.stage = deleting
	d.messages.unconfirmed++
	if g := h.group; g != nil { // the next message will need a slot soon
		g.deleting++
		d.messages.turnIfLast(g)
	}
	d.put(h, now)
}

func (d *deleter) put(h *held, now time.Time) {
	p := pending{h: h, receipt: h.receipt, until: h.hiddenUntil.Add(-d.core.margin)}
	if h.lapsed {
		p.until = now.Add(callTimeout) // the queue decides whether the receipt handle is valid
	}
	d.pending.put(p, d.core.lingerUntil(now, h.hiddenUntil))
}

func (d *deleter) failing() bool { return d.pending.fails > 0 }

func (d *deleter) answered(batch []pending, errs []error, start, now time.Time) {
	d.core.stats.counts.DeleteCalls++
	var deleted, conclusive int
	var refusal error
	for i := range batch {
		p, err := &batch[i], entryErr(errs, i)
		switch class := classify(err); class {
		case applied:
			deleted++
			conclusive++
			if p.isWanted() {
				d.confirmed(p.h, start, now)
			}
		case invalidReceipt:
			conclusive++
			d.lost(*p, err, now)
		default:
			if class == refused {
				refusal = err
			}
			d.tryAgain(*p, err, class, now)
		}
	}

	d.pending.returned(batch, now, conclusive == 0, d.core.opts.Random())
	switch {
	case conclusive > 0:
		d.pace.called(now.Sub(start), now)
		d.gate.lift(DeleteRefused)
	case refusal != nil:
		d.pending.hold = now.Add(retryWait(d.pending.fails, refusedFirst, refusedLimit, d.core.opts.Random()))
		d.gate.close(DeleteRefused,
			"the queue rejects deletes, so messages would run again and again: "+refusal.Error(), now)
	}

	d.core.stats.counts.Deleted += int64(deleted)
	if deleted > 0 {
		notify(d.core, d.core.events.Deleted, Deleted{Messages: deleted, Duration: now.Sub(start)})
	}
}

// A standard queue confirms deletes with outdated receipt handles without deleting anything, so confirmed remembers
// messages deleted after their visibility timeout as done.
func (d *deleter) confirmed(h *held, sent, now time.Time) {
	m := d.messages
	m.unconfirmed--
	m.forget(h)
	delete(m.unposted.values, life(h.msg.ID, h.receives, h.receivesHere))
	switch {
	case d.core.opts.FIFO || sent.Before(h.hiddenUntil):
		delete(m.done.values, h.msg.ID)
	case !h.lapsed && !h.isExpired:
		m.done.put(h.msg.ID, struct{}{})
	}
	if g := h.group; g != nil {
		g.deleting--
		m.leaveGroup(h, now)
	}
}

func (d *deleter) tryAgain(p pending, err error, class errorClass, now time.Time) {
	p.tries++
	if (class == refused && d.core.phase != running) || d.core.callCtx.Err() != nil {
		d.lost(p, err, now)
		return
	}
	d.failed(p, err, false)
	d.pending.put(p, p.nextTry(now, d.core.opts.Random()))
}

// lost gives up a delete. A message received again is deleted unposted, unless its visibility timeout had expired
// before the success.
func (d *deleter) lost(p pending, err error, now time.Time) {
	if !p.isWanted() {
		return
	}
	h := p.h
	d.messages.unconfirmed--
	d.core.stats.counts.DeletesLost++
	if d.core.phase != running {
		d.abandoned++
	}
	d.failed(p, err, true)
	if !h.lapsed && !h.isExpired {
		d.messages.done.put(h.msg.ID, struct{}{})
	}
	d.visibility.release(h, now)
}

func (d *deleter) failed(p pending, err error, final bool) {
	d.core.stats.failed("delete", err)
	notify(d.core, d.core.events.DeleteFailed, DeleteFailed{ID: p.h.msg.ID, Task: p.h.task(), Err: err, Final: final,
		DeadLetter: p.h.letter != nil})
}
