package worker

import (
	"time"

	"tendril/queue"
)

// maxUnsentLetters limits the messages waiting for the dead-letter queue. Others are left to the redrive policy.
const maxUnsentLetters = 1000

// deadLetters sends messages to the dead-letter queue, then deletes them. A rejected message is retried, or
// dead-lettered by the redrive policy without a reason.
type deadLetters struct {
	core       *core
	to         DeadLetterer // nil if not supported
	deletes    *deleter
	visibility *visibilityChanger
	pending    batcher
}

func (d *deadLetters) accepts(h *held, res *queue.Result) bool {
	switch {
	case d.to == nil || len(d.pending.entries) >= maxUnsentLetters:
		return false
	case res.Instruction.DeadLetters():
		return d.to.TakesDeadLetters(false)
	}
	return d.core.opts.MaxReceives > 0 && h.receivesHere >= d.core.opts.MaxReceives && d.to.TakesDeadLetters(true)
}

func (d *deadLetters) queueLetter(h *held, e *Settled, now time.Time) {
	h.stage, h.instruction = deadLettering, e.Instruction
	h.letter = &queue.DeadLetter{Message: &h.msg, Failure: queue.Failure{
		Reason: e.Reason, Status: e.Status, Answer: e.Answer, Attempts: e.Attempt, Receives: h.receives,
		DurationMS: e.Duration.Milliseconds(), FailedAt: now.UTC().Round(0), MessageID: h.msg.ID, SentAt: h.msg.SentAt,
	}}
	d.pending.put(pending{h: h}, d.core.lingerUntil(now, h.hiddenUntil))
}

func (d *deadLetters) callEnded(batch []pending, errs []error, now time.Time) {
	for i, p := range batch {
		err := entryErr(errs, i)
		if err == nil {
			d.deletes.remove(p.h, now)
		} else {
			d.core.stats.recordFailedCall("dead-lettering", err)
			d.visibility.leaveToTimeout(p.h, now)
		}
		notify(d.core, d.core.events.DeadLettered, DeadLettered{ID: p.h.msg.ID, Task: p.h.task(), Reason: p.h.letter.Failure.Reason,
			Instruction: p.h.instruction, Err: err})
	}
	d.pending.callEnded(batch, now, false, 0)
}
