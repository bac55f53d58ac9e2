package worker

import (
	"context"
	"time"

	"tendril/queue"
)

// maxUnsentLetters is how many messages may wait for the dead-letter queue. Others are left to the redrive policy.
const maxUnsentLetters = 1000

// deadLetters sends messages that get no further attempt to the dead-letter queue, in tens, and has those deleted that
// were accepted: those that failed at their last receive, and those that an instruction sends there. It tries each
// once: what was not accepted comes again, or is dead-lettered by the redrive policy, without a reason. Its methods may
// be called on nil, which takes nothing.
type deadLetters struct {
	*core
	to      DeadLetterer
	deletes *deleter
	sends   batcher
}

// newDeadLetters returns nil unless the queue is a [DeadLetterer].
func newDeadLetters(c *core, q Queue, deletes *deleter) *deadLetters {
	to, ok := q.(DeadLetterer)
	if !ok {
		return nil
	}
	return &deadLetters{core: c, to: to, deletes: deletes, sends: batcher{serial: c.opts.FIFO}}
}

// takes reports whether a message goes to the dead-letter queue now if it failed: an instruction says so, or the
// redrive policy is known and grants it no further receive.
func (d *deadLetters) takes(h *held, res *queue.Result) bool {
	switch {
	case d == nil || len(d.sends.entries) >= maxUnsentLetters:
		return false
	case res.Instruction.DeadLetters():
		return d.to.TakesDeadLetters(false)
	}
	return d.opts.MaxReceives > 0 && h.receivesHere >= d.opts.MaxReceives && d.to.TakesDeadLetters(true)
}

// send begins to send a message whose last attempt ended as e says. It stays hidden until the answer, and those
// behind it in its FIFO group wait.
func (d *deadLetters) send(h *held, e *Settled, now time.Time) {
	h.stage, h.instruction = deadLettering, e.Instruction
	h.letter = &queue.DeadLetter{Message: &h.msg, Failure: queue.Failure{
		Reason: e.Reason, Status: e.Status, Answer: e.Answer, Attempts: e.Attempt, Receives: h.receives,
		DurationMS: e.Duration.Milliseconds(), FailedAt: now.UTC().Round(0), MessageID: h.msg.ID, SentAt: h.msg.SentAt,
	}}
	d.sends.put(pending{h: h, purpose: sendDeadLetter}, d.lingerUntil(now, h.hiddenUntil))
}

// flush makes the calls that are due.
func (d *deadLetters) flush(now time.Time) {
	if d == nil {
		return
	}
	for batch := d.sends.cut(now); batch != nil; batch = d.sends.cut(now) {
		letters := make([]queue.DeadLetter, len(batch))
		for i, p := range batch {
			letters[i] = *p.h.letter
		}
		d.sends.calls++
		d.call(func(ctx context.Context) []error { return d.to.DeadLetter(ctx, letters) },
			func(errs []error, _, now time.Time) { d.answered(batch, errs, now) })
	}
	d.wakeAt(d.sends.next())
}

// answered takes the results of one call.
func (d *deadLetters) answered(batch []pending, errs []error, now time.Time) {
	for i, p := range batch {
		err := entryErr(errs, i)
		if err == nil {
			d.deletes.remove(p.h, now)
		} else {
			d.stats.failed("dead-lettering", err, now)
			d.deletes.visibility.release(p.h, now)
		}
		notify(d.core, d.events.DeadLettered, DeadLettered{ID: p.h.msg.ID, Reason: p.h.letter.Failure.Reason,
			Instruction: p.h.instruction, Err: err})
	}
	d.sends.returned(batch, now, false, 0)
}

// next returns when flush has to be called again, zero for not before something else happens.
func (d *deadLetters) next() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.sends.next()
}

// idle reports whether nothing is to be sent, or under way.
func (d *deadLetters) idle() bool { return d == nil || d.sends.idle() }
