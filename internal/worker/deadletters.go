package worker

import (
	"time"

	"tendril/queue"
)

// maxUnsentLetters is how many messages may wait for the dead-letter queue. Others are left to the redrive policy.
const maxUnsentLetters = 1000

// deadLetters sends messages that get no further attempt to the dead-letter queue, in tens, and deletes those that were
// accepted: messages that failed at their last receive, and messages that an instruction sends there. It tries each
// once: others come again, or are dead-lettered by the redrive policy, without a reason.
type deadLetters struct {
	core       *core
	to         DeadLetterer // nil if the queue cannot dead-letter a message itself
	deletes    *deleter
	visibility *visibilityChanger
	pending    batcher
}

// takes reports whether a message goes to the dead-letter queue now if it failed: an instruction says so, or the
// redrive policy is known and grants it no further receive.
func (d *deadLetters) takes(h *held, res *queue.Result) bool {
	switch {
	case d.to == nil || len(d.pending.entries) >= maxUnsentLetters:
		return false
	case res.Instruction.DeadLetters():
		return d.to.TakesDeadLetters(false)
	}
	return d.core.opts.MaxReceives > 0 && h.receivesHere >= d.core.opts.MaxReceives && d.to.TakesDeadLetters(true)
}

// send begins to send a message whose last attempt ended as e says. It stays hidden until the answer, and those
// behind it in its FIFO group wait.
func (d *deadLetters) send(h *held, e *Settled, now time.Time) {
	h.stage, h.instruction = deadLettering, e.Instruction
	h.letter = &queue.DeadLetter{Message: &h.msg, Failure: queue.Failure{
		Reason: e.Reason, Status: e.Status, Answer: e.Answer, Attempts: e.Attempt, Receives: h.receives,
		DurationMS: e.Duration.Milliseconds(), FailedAt: now.UTC().Round(0), MessageID: h.msg.ID, SentAt: h.msg.SentAt,
	}}
	d.pending.put(pending{h: h}, d.core.lingerUntil(now, h.hiddenUntil))
}

// answered takes the results of one call.
func (d *deadLetters) answered(batch []pending, errs []error, now time.Time) {
	for i, p := range batch {
		err := entryErr(errs, i)
		if err == nil {
			d.deletes.remove(p.h, now)
		} else {
			d.core.stats.failed("dead-lettering", err, now)
			d.visibility.release(p.h, now)
		}
		notify(d.core, d.core.events.DeadLettered, DeadLettered{ID: p.h.msg.ID, Reason: p.h.letter.Failure.Reason,
			Instruction: p.h.instruction, Err: err})
	}
	d.pending.returned(batch, now, false, 0)
}
