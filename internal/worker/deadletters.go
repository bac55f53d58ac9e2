package worker

import (
	"time"

	"tendril/queue"
)

// maxUnsentLetters limits the messages waiting to be sent to the dead-letter queue. The redrive policy moves the
// others.
const maxUnsentLetters = 1000

// deadLetters sends messages without further attempts to the dead-letter queue, in tens, and deletes them once
// accepted. These are messages that failed at their last receive or were dead-lettered by an instruction. Each is
// tried once; after a failure it is received again or moved by the redrive policy, without a reason.
type deadLetters struct {
	core       *core
	to         DeadLetterer // nil if the queue cannot dead-letter a message itself
	deletes    *deleter
	visibility *visibilityChanger
	pending    batcher
}

// takes reports whether a message would be dead-lettered if it failed now: by an instruction, or because the redrive
// policy is known and allows no further receive.
func (d *deadLetters) takes(h *held, res *queue.Result) bool {
	switch {
	case d.to == nil || len(d.pending.entries) >= maxUnsentLetters:
		return false
	case res.Instruction.DeadLetters():
		return d.to.TakesDeadLetters(false)
	}
	return d.core.opts.MaxReceives > 0 && h.receivesHere >= d.core.opts.MaxReceives && d.to.TakesDeadLetters(true)
}

// send queues a message with its failure for the dead-letter queue. The message stays hidden until the answer, and
// its FIFO group waits.
func (d *deadLetters) send(h *held, e *Settled, now time.Time) {
	h.stage, h.instruction = deadLettering, e.Instruction
	h.letter = &queue.DeadLetter{Message: &h.msg, Failure: queue.Failure{
		Reason: e.Reason, Status: e.Status, Answer: e.Answer, Attempts: e.Attempt, Receives: h.receives,
		DurationMS: e.Duration.Milliseconds(), FailedAt: now.UTC().Round(0), MessageID: h.msg.ID, SentAt: h.msg.SentAt,
	}}
	d.pending.put(pending{h: h}, d.core.lingerUntil(now, h.hiddenUntil))
}

// answered processes the results of one call.
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
