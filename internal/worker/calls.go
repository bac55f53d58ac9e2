package worker

import (
	"context"
	"time"

	"tendril/queue"
)

const callTimeout = 20 * time.Second

func (w *Worker) flush(now time.Time) {
	letters := &w.letters.pending
	for batch := letters.cut(now); batch != nil; batch = letters.cut(now) {
		w.startCall(letters, sendDeadLetter, batch)
	}

	deletes := &w.deletes.pending
	for batch := deletes.cut(now); batch != nil; batch = deletes.cut(now) {
		done, expired := w.deletes.sendable(batch, now)
		w.startCall(deletes, deleteMessage, done)
		w.startCall(deletes, expireMessage, expired)
	}

	// While the gate is closed or deliveries are aborted, returns wait for all receives to end, because an open one
	// could receive the messages again.
	if len(w.poller.open) == 0 || w.gate.open() && w.core.workCtx.Err() == nil {
		w.visibility.queueReturns(now)
	}
	changes := &w.visibility.pending
	for batch := changes.cut(now); batch != nil; batch = changes.cut(now) {
		w.startCall(changes, changeVisibility, w.visibility.sendable(batch, now))
	}

	w.core.wakeAt(letters.next())
	w.core.wakeAt(deletes.next())
	w.core.wakeAt(changes.next())
}

// While the queue rejects deletes, sendable keeps outdated ones, because the gate opens once one is accepted.
func (d *deleter) sendable(batch []pending, now time.Time) (done, expired []pending) {
	isRefused := d.gate.has(DeleteRefused) && d.core.phase == running
	done = batch[:0]
	for _, p := range batch {
		switch {
		case !isRefused && !p.isWanted():
		case !isRefused && p.tries > 0 && now.After(p.until):
			d.lost(p, errVisibilityOver, now)
		case p.h.isExpired:
			expired = append(expired, p)
		default:
			done = append(done, p)
		}
	}
	return done, expired
}

func (v *visibilityChanger) sendable(batch []pending, now time.Time) []pending {
	kept := batch[:0]
	for _, p := range batch {
		isExtension := p.purpose == extendVisibility
		switch {
		case isExtension && (p.h.stage == gone || p.h.stage == deleting || p.h.lapsed || p.receipt != p.h.receipt):
			v.ended(p.h, now)
		case !now.Before(p.until):
			v.failed(p, errVisibilityOver)
			v.ended(p.h, now)
		case isExtension:
			p.h.extended = true
			kept = append(kept, p)
		default:
			p.visibility = max(p.at.Sub(now), 0)
			kept = append(kept, p)
		}
	}

	return kept
}

func (w *Worker) startCall(from *batcher, action callAction, batch []pending) {
	if len(batch) > 0 {
		from.calls++
		w.core.tasks.Go(func() { w.call(action, batch) })
	}
}

type callAction uint8

const (
	deleteMessage callAction = iota
	expireMessage
	sendDeadLetter
	changeVisibility
)

func (w *Worker) call(action callAction, batch []pending) {
	ctx, cancel := context.WithTimeout(w.core.callCtx, callTimeout)
	start := time.Now()
	var errs []error
	switch action {
	case deleteMessage:
		errs = w.queue.Delete(ctx, receiptsOf(batch))
	case expireMessage:
		errs = w.queue.Expire(ctx, receiptsOf(batch))
	case sendDeadLetter:
		errs = w.letters.to.DeadLetter(ctx, lettersOf(batch))
	case changeVisibility:
		errs = w.queue.ChangeVisibility(ctx, changesOf(batch))
	}
	cancel()

	now := time.Now()
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.observe(now)
	switch action {
	case deleteMessage, expireMessage:
		w.deletes.answered(batch, errs, start, now)
	case sendDeadLetter:
		w.letters.answered(batch, errs, now)
	case changeVisibility:
		w.visibility.answered(batch, errs, start, now)
	}
	w.proceed(now)
}

func receiptsOf(batch []pending) []string {
	receipts := make([]string, len(batch))
	for i := range batch {
		receipts[i] = batch[i].receipt
	}
	return receipts
}

func lettersOf(batch []pending) []queue.DeadLetter {
	letters := make([]queue.DeadLetter, len(batch))
	for i := range batch {
		letters[i] = *batch[i].h.letter
	}
	return letters
}

func changesOf(batch []pending) []queue.VisibilityChange {
	changes := make([]queue.VisibilityChange, len(batch))
	for i, p := range batch {
		changes[i] = queue.VisibilityChange{ReceiptHandle: p.receipt, Visibility: p.visibility,
			Unread: p.purpose == returnMessage}
	}
	return changes
}
