package worker

import (
	"context"
	"time"

	"tendril/queue"
)

const callTimeout = 20 * time.Second

func (w *Worker) flush(now time.Time) {
	letters := &w.letters.pending
	deletes := &w.deletes.pending
	changes := &w.visibility.pending
	for batch := range letters.batches(now) {
		w.startCall(letters, sendDeadLetter, batch)
	}

	for batch := range deletes.batches(now) {
		done, expired := w.deletes.selectSendable(batch, now)
		w.startCall(deletes, deleteMessage, done)
		w.startCall(deletes, expireMessage, expired)
	}

	// If receiving stops, returns wait for the open receives, which could receive the messages again.
	if len(w.poller.open) == 0 || w.gate.open() && w.core.workCtx.Err() == nil {
		w.visibility.queueReturns(now)
	}
	for batch := range changes.batches(now) {
		w.startCall(changes, changeVisibility, w.visibility.selectSendable(batch, now))
	}

	for _, b := range w.batchers() {
		w.core.wakeAt(b.next())
	}
}

// selectSendable gives up late retries, drops unwanted deletes and separates deletes of expired messages. While deletes
// are refused, it selects all, because only an accepted delete reopens the gate.
func (d *deleter) selectSendable(batch []pending, now time.Time) (done, expired []pending) {
	selectAll := d.gate.has(DeleteRefused) && d.core.phase == running
	done = batch[:0]
	for _, p := range batch {
		isLate := p.tries > 0 && now.After(p.until)
		switch {
		case !selectAll && (isLate || !p.isWanted()):
			d.giveUp(p, errDeleteLate, now)
		case p.h.isExpired:
			expired = append(expired, p)
		default:
			done = append(done, p)
		}
	}
	return done, expired
}

// selectSendable ends changes that have no effect any more, and sets the timeouts of the others.
func (v *visibilityChanger) selectSendable(batch []pending, now time.Time) []pending {
	sendable := batch[:0]
	for _, p := range batch {
		switch isExtension := p.purpose == extendVisibility; {
		case isExtension && !p.mayExtend():
			v.changeEnded(p.h, now)
			continue
		case !now.Before(p.until):
			v.reportFailure(p, errChangeLate)
			v.changeEnded(p.h, now)
			continue
		case isExtension:
			p.h.extended = true
		default:
			p.visibility = max(p.at.Sub(now), 0)
		}
		sendable = append(sendable, p)
	}
	return sendable
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
	start := time.Now()
	errs := w.callQueue(action, batch)

	now := time.Now()
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.checkClock(now)
	switch action {
	case deleteMessage, expireMessage:
		w.deletes.callEnded(batch, errs, start, now)
	case sendDeadLetter:
		w.letters.callEnded(batch, errs, now)
	case changeVisibility:
		w.visibility.callEnded(batch, errs, start, now)
	}
	w.proceed(now)
}

func (w *Worker) callQueue(action callAction, batch []pending) []error {
	ctx, cancel := context.WithTimeout(w.core.callCtx, callTimeout)
	defer cancel()
	switch action {
	case deleteMessage:
		return w.queue.Delete(ctx, receiptsOf(batch))
	case expireMessage:
		return w.queue.Expire(ctx, receiptsOf(batch))
	case sendDeadLetter:
		return w.letters.to.DeadLetter(ctx, lettersOf(batch))
	default:
		return w.queue.ChangeVisibility(ctx, changesOf(batch))
	}
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
