package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"tendril/queue"
)

const (
	// dedupWindow is FIFO queues' deduplication interval, minus a margin for clocks and the call.
	dedupWindow = 5*time.Minute - 30*time.Second
	settleTries = 3 // per Enqueue call
	// If there are maxOpen unsettled runs, those older than openRetention are dropped.
	maxOpen       = 1000
	openRetention = 48 * time.Hour
)

// try is this process's state of an unsettled run.
type try struct {
	at     time.Time
	record Record
	// used means that the run was sent with an unknown outcome.
	used bool
	// first is the monotonic time before the first send.
	first time.Time
	// sent has not been recorded yet.
	sent   queue.Sent
	resent bool
}

func (r *Runs) send(ctx context.Context, term int64, run *Run) (EnqueueResult, error) {
	t := r.tryOf(run)
	if t.sent.ID == "" {
		settled, err := r.announce(ctx, term, run, t)
		if settled.Already || err != nil {
			if err == nil || errors.Is(err, ErrUncertain) {
				r.forget(run.ID)
			}
			return settled, err
		}
		if err := r.sendNow(ctx, term, run, t); err != nil {
			return EnqueueResult{}, err
		}
	}

	if err := r.settleSent(ctx, run, t); err != nil {
		return EnqueueResult{}, err
	}
	r.forget(run.ID)
	return EnqueueResult{Sent: t.sent, Resent: t.resent && !run.fifo()}, nil
}

func (r *Runs) tryOf(run *Run) *try {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.open[run.ID]
	if t == nil {
		if len(r.open) >= maxOpen {
			maps.DeleteFunc(r.open, func(_ string, t *try) bool { return run.ScheduledAt.Sub(t.at) > openRetention })
		}
		t = &try{at: run.ScheduledAt, record: r.absent(run.ID)}
		r.open[run.ID] = t
	}
	return t
}

func (r *Runs) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
}

// announce announces a try before it is sent. If settled.Already is set, there is nothing to send.
func (r *Runs) announce(ctx context.Context, term int64, run *Run, t *try) (settled EnqueueResult, err error) {
	own := recordOf(t.record)
	if own.Tries > 0 && !t.used && own.Term == term {
		return settled, nil
	}

	for last := t.record; ; {
		before := recordOf(last)
		number := before.Tries + 1
		if err := mayTry(run, t, number, before.Term == term); err != nil {
			return settled, err
		}
		next := r.tried(last, term, run, number)
		stored, err := r.store.Swap(ctx, r.scope.Fence(term), Change{last, next})
		if err != nil {
			return settled, fmt.Errorf("announcing the run %s: %w", run.ID, err)
		}

		found := recordOf(stored[0])
		switch {
		case Same(stored[0], next):
			t.record, t.used = next, false
			t.resent = t.resent || number > 1
			return settled, nil
		case found.Settled:
			return EnqueueResult{Sent: queue.Sent{ID: found.MessageID}, Already: true}, nil
		case found.Tries < before.Tries:
			return settled, fmt.Errorf("announcing the run %s: the record has %d tries where %d are known; records may have "+
				"been removed", run.ID, found.Tries, before.Tries)
		}
		last = stored[0]
	}
}

// mayTry returns ErrUncertain if no more tries are allowed. again means that the previous try was in the same term.
func mayTry(run *Run, t *try, number int, again bool) error {
	switch {
	case number == 1:
		return nil
	case !run.fifo() && number > 2 && again:
		return fmt.Errorf("the run %s was tried twice without an answer: %w", run.ID, ErrUncertain)
	case run.fifo() && t.age(run) > dedupWindow:
		return fmt.Errorf("the run %s was tried before, longer ago than its queue's deduplication "+
			"interval: %w", run.ID, ErrUncertain)
	}
	return nil
}

// age is an upper bound of the time since the run was first sent.
func (t *try) age(run *Run) time.Duration {
	if !t.first.IsZero() && !t.resent {
		return time.Since(t.first)
	}
	return time.Now().Round(0).Sub(run.DueAt) // another instance may have sent it, but not before it was due
}

func (r *Runs) sendNow(ctx context.Context, term int64, run *Run, t *try) error {
	if !run.Manual {
		if current, ok := r.lead.Term(); !ok || current != term {
			return queue.ErrStaleTerm
		}
	}
	if t.first.IsZero() {
		t.first = time.Now()
	}

	sent, err := r.sender.Send(ctx, run.Queue, run.Message)
	if err == nil {
		err = sent.Err
	}
	if err != nil {
		t.used = !certainlyNotSent(err)
		return fmt.Errorf("sending the run %s: %w", run.ID, err)
	}
	t.used = true
	t.sent = sent
	return nil
}

func certainlyNotSent(err error) bool {
	var op *net.OpError
	if errors.Is(err, ErrNotSent) || errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var refusal *queue.Error
	return errors.As(err, &refusal) && refusal.Code != queue.CodeUnreachable && refusal.Code != queue.CodeClosed
}

// settleSent is not fenced: the message was sent, whoever leads now.
func (r *Runs) settleSent(ctx context.Context, run *Run, t *try) (err error) {
	for range settleTries {
		err = r.settle(ctx, Fence{}, run, t.record, t.sent.ID)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("recording that the run %s was sent as %s: %w", run.ID, t.sent.ID, err)
	}
	return nil
}

// settle records a run as sent or, without a message, as skipped. It writes the run's record before the task's, so that
// after a crash in between, the next leader finds the run settled.
func (r *Runs) settle(ctx context.Context, fence Fence, run *Run, record Record, message string) error {
	err := r.update(ctx, fence, []Record{record}, func(_ int, stored Record) Record {
		if recordOf(stored).Settled {
			return stored
		}
		stored.Expires = time.Now().Add(runRetention)
		return stored.With(Fields{"settled": true, "message": message})
	})
	if err != nil || run.Manual {
		return err
	}
	return r.account(ctx, Fence{}, run)
}

// skipRuns settles the last run, and those that this process sent but could not settle.
func (r *Runs) skipRuns(ctx context.Context, term int64, runs []Run, stored []Record, found map[string]RunRecord) error {
	for i := range runs {
		run := &runs[i]
		message := r.sentMessage(run.ID)
		fence := Fence{}
		if message == "" {
			if i < len(runs)-1 {
				continue
			}
			fence = r.scope.Fence(term)
		} else {
			found[run.ID] = RunRecord{Settled: true, MessageID: message}
		}

		if err := r.settle(ctx, fence, run, stored[i], message); err != nil {
			return fmt.Errorf("skipping the run %s: %w", run.ID, err)
		}
	}

	for i := range runs {
		r.forget(runs[i].ID)
	}
	return nil
}

func (r *Runs) sentMessage(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.open[id]; t != nil {
		return t.sent.ID
	}
	return ""
}
