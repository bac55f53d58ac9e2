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
	// dedupWindow is a FIFO queue's deduplication interval, minus a margin for clocks and the call.
	dedupWindow = 5*time.Minute - 30*time.Second
	settleTries = 3 // per Enqueue call
	// Once maxPending runs are unsettled, runs older than pendingRetention are dropped.
	maxPending       = 1000
	pendingRetention = 48 * time.Hour
)

type pendingRun struct {
	scheduledAt time.Time
	record      Record
	// maybeSent means that the last announced try may have reached the queue.
	maybeSent bool
	// firstSentAt is the monotonic time before the first send.
	firstSentAt time.Time
	// sent is the result of the send until it is recorded.
	sent   queue.Sent
	resent bool
}

func (r *Runs) send(ctx context.Context, term int64, run *Run) (EnqueueResult, error) {
	p := r.pendingOf(run)
	if p.sent.ID == "" {
		earlier, err := r.announce(ctx, term, run, p)
		if earlier != nil || errors.Is(err, ErrUncertain) {
			r.forget(run.ID)
		}
		if err != nil {
			return EnqueueResult{}, err
		}
		if earlier != nil {
			return EnqueueResult{Sent: *earlier, Already: true}, nil
		}
		if err := r.sendAnnounced(ctx, term, run, p); err != nil {
			return EnqueueResult{}, err
		}
	}

	if err := r.settleSent(ctx, run, p); err != nil {
		return EnqueueResult{}, err
	}
	r.forget(run.ID)
	return EnqueueResult{Sent: p.sent, Resent: p.resent && !queue.IsFIFO(run.Queue)}, nil
}

func (r *Runs) pendingOf(run *Run) *pendingRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[run.ID]; p != nil {
		return p
	}
	if len(r.pending) >= maxPending {
		maps.DeleteFunc(r.pending, func(_ string, p *pendingRun) bool {
			return run.ScheduledAt.Sub(p.scheduledAt) > pendingRetention
		})
	}
	p := &pendingRun{scheduledAt: run.ScheduledAt, record: r.absentRecord(run.ID)}
	r.pending[run.ID] = p
	return p
}

func (r *Runs) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// announce returns an earlier try's message if the run is already settled.
func (r *Runs) announce(ctx context.Context, term int64, run *Run, p *pendingRun) (earlier *queue.Sent, err error) {
	own := runRecordOf(p.record)
	if own.Tries > 0 && !p.maybeSent && own.Term == term {
		return nil, nil
	}

	last := p.record
	for {
		before := runRecordOf(last)
		number := before.Tries + 1
		if err := checkTries(run, p, number, before.Term == term); err != nil {
			return nil, err
		}
		next := r.triedRecord(last, term, run, number)
		stored, err := r.store.Swap(ctx, r.scope.Fence(term), Change{last, next})
		if err != nil {
			return nil, fmt.Errorf("announcing the run %s: %w", run.ID, err)
		}

		found := runRecordOf(stored[0])
		switch {
		case Same(stored[0], next):
			p.record = next
			p.maybeSent = false
			p.resent = p.resent || number > 1
			return nil, nil
		case found.Settled:
			return &queue.Sent{ID: found.MessageID}, nil
		case found.Tries < before.Tries:
			return nil, fmt.Errorf("announcing the run %s: the record has %d tries where %d are known; records may have "+
				"been removed", run.ID, found.Tries, before.Tries)
		}
		last = stored[0]
	}
}

func checkTries(run *Run, p *pendingRun, number int, sameTerm bool) error {
	switch {
	case number == 1:
		return nil
	case !queue.IsFIFO(run.Queue) && number > 2 && sameTerm:
		return fmt.Errorf("the run %s was tried twice without a response: %w", run.ID, ErrUncertain)
	case queue.IsFIFO(run.Queue) && p.age(run) > dedupWindow:
		return fmt.Errorf("the run %s was tried before, longer ago than its queue's deduplication "+
			"interval: %w", run.ID, ErrUncertain)
	}
	return nil
}

// age returns an upper bound of the time since the first send.
func (p *pendingRun) age(run *Run) time.Duration {
	if !p.firstSentAt.IsZero() && !p.resent {
		return time.Since(p.firstSentAt)
	}
	return time.Now().Round(0).Sub(run.DueAt) // another instance may have sent it, but not before it was due
}

func (r *Runs) sendAnnounced(ctx context.Context, term int64, run *Run, p *pendingRun) error {
	if !run.Manual {
		if current, ok := r.lead.Term(); !ok || current != term {
			return queue.ErrStaleTerm
		}
	}
	if p.firstSentAt.IsZero() {
		p.firstSentAt = time.Now()
	}

	sent, err := r.sender.Send(ctx, run.Queue, run.Message)
	if err == nil {
		err = sent.Err
	}
	if err != nil {
		p.maybeSent = !certainlyNotSent(err)
		return fmt.Errorf("sending the run %s: %w", run.ID, err)
	}
	p.maybeSent = true
	p.sent = sent
	return nil
}

func certainlyNotSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" || errors.Is(err, ErrNotSent) {
		return true
	}
	refusal, ok := errors.AsType[*queue.Error](err)
	return ok && refusal.Code != queue.CodeUnreachable && refusal.Code != queue.CodeClosed
}

// settleSent is not fenced, because the message was sent regardless of the current leader.
func (r *Runs) settleSent(ctx context.Context, run *Run, p *pendingRun) (err error) {
	for range settleTries {
		err = r.settle(ctx, Fence{}, run, p.record, p.sent.ID)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("recording that the run %s was sent as %s: %w", run.ID, p.sent.ID, err)
	}
	return nil
}

// settle writes the run's record before the task's, so that after a crash in between, the next leader finds the run
// settled. Without a message, the run counts as skipped.
func (r *Runs) settle(ctx context.Context, fence Fence, run *Run, record Record, message string) error {
	err := r.update(ctx, fence, []Record{record}, func(_ int, stored Record) Record {
		if known := runRecordOf(stored); known.Settled && (known.MessageID != "" || message == "") {
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

// skipRuns settles the last run as skipped, and the runs that this process sent but could not settle before, which it
// adds to found.
func (r *Runs) skipRuns(ctx context.Context, term int64, runs []Run, stored []Record, found map[string]RunRecord,
) error {
	for i := range runs {
		run := &runs[i]
		var err error
		if message := r.sentMessage(run.ID); message != "" {
			found[run.ID] = RunRecord{Settled: true, MessageID: message}
			err = r.settle(ctx, Fence{}, run, stored[i], message)
		} else if i == len(runs)-1 {
			err = r.settle(ctx, r.scope.Fence(term), run, stored[i], "")
		}
		if err != nil {
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
	if p := r.pending[id]; p != nil {
		return p.sent.ID
	}
	return ""
}
