package periodic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"tendril/queue"
)

const (
	// dedupWindow is how long after its first send a FIFO queue recognises a
	// deduplication id (5 minutes), less what two clocks may differ and a call
	// may take.
	dedupWindow = 5*time.Minute - 30*time.Second
	// markTries is how often one Enqueue tries to settle what it sent.
	markTries = 3
	// manyOpen is from how many unsettled runs on old ones are dropped.
	manyOpen = 1000
)

// Claims is the [Registry] for queues that know nothing of runs: it claims,
// sends and marks.
//
//	Claim(try 1) --> Send --> Mark
//	     |             |        '- failed: mark again; nothing is sent again by us
//	     |             |- refused: send again, later, within the same claim
//	     |             '- no answer: Claim(try 2) and send again
//	     '- claimed before, never marked: Claim(try 2) and send again
//
// On a standard queue a leader makes two tries at most, then it is [ErrUncertain], and each later
// leader that finds the run unsettled one more: a run left out is worse than one with two messages.
// On a FIFO queue there may be any number of tries within the 5 minutes in which the queue
// recognises their deduplication id, and after that none: it is sent once.
type Claims struct {
	store  Store
	sender Sender
	lead   Leadership

	mu   sync.Mutex
	open map[string]*try // by the run's id
}

// try is what this process knows of a run that it has not settled yet.
type try struct {
	at      time.Time // the run's scheduled time
	claimed int       // the number of our claim; 0 before
	term    int64     // in which it was claimed
	// used tells that the claim's send was made and its outcome is unknown.
	used bool
	// first is the monotonic time before our first send; zero before.
	first time.Time
	// sent is the message that has to be marked; its ID is "" before.
	sent   queue.Sent
	resent bool
}

// NewClaims returns a registry over a store of records and a way to send. lead
// is asked once more right before each send, since the queue cannot refuse a
// term.
func NewClaims(store Store, sender Sender, lead Leadership) *Claims {
	return &Claims{store: store, sender: sender, lead: lead, open: map[string]*try{}}
}

// Since is [Store.Since].
func (c *Claims) Since(ctx context.Context, term int64, starts map[string]Start) (map[string]queue.TaskTimes, error) {
	return c.store.Since(ctx, term, starts)
}

// Skip settles the last of runs, and those that this process sent and could not
// mark. Whatever was claimed in an earlier term has a record by now, since claims
// are fenced; a term that ended meanwhile is refused by the store.
func (c *Claims) Skip(ctx context.Context, term int64, runs []ScheduledRun) (map[string]Claim, error) {
	records, err := c.store.Records(ctx, runs)
	if err != nil {
		return nil, fmt.Errorf("looking for runs before leaving them out: %w", err)
	}
	for i, f := range runs {
		c.mu.Lock()
		sent := "" // its message, which this process could not mark
		if t := c.open[f.ID]; t != nil {
			sent = t.sent.ID
		}
		c.mu.Unlock()
		if sent != "" {
			records[f.ID] = Claim{Settled: true, MessageID: sent}
		} else if i < len(runs)-1 {
			continue
		}
		if err := c.store.Mark(ctx, term, f, sent); err != nil {
			return nil, fmt.Errorf("leaving out the run %s: %w", f.ID, err)
		}
	}
	for i := range runs {
		c.forget(runs[i].ID, nil)
	}
	return records, nil
}

// Enqueue claims, sends and marks.
func (c *Claims) Enqueue(ctx context.Context, term int64, f ScheduledRun) (EnqueueResult, error) {
	t := c.tryOf(f)
	if t.sent.ID == "" {
		settled, err := c.claim(ctx, term, f, t)
		if settled.Already || err != nil {
			c.forget(f.ID, err)
			return settled, err
		}
		if err := c.send(ctx, term, f, t); err != nil {
			return EnqueueResult{}, err
		}
	}
	if err := c.mark(ctx, term, f, t); err != nil {
		return EnqueueResult{}, err
	}
	c.forget(f.ID, nil)
	return EnqueueResult{Sent: t.sent, Resent: t.resent && !FIFO(f.Queue)}, nil
}

func (c *Claims) tryOf(f ScheduledRun) *try {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.open[f.ID]
	if t == nil {
		if len(c.open) >= manyOpen {
			maps.DeleteFunc(c.open, func(_ string, t *try) bool { return f.ScheduledAt.Sub(t.at) > 2*maxGrace })
		}
		t = &try{at: f.ScheduledAt}
		c.open[f.ID] = t
	}
	return t
}

// forget drops what is known of a run that will not be tried again.
func (c *Claims) forget(id string, err error) {
	if err != nil && !errors.Is(err, ErrUncertain) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
}

// claim leaves t with a claim of this term whose send was not made yet. settled
// is Already when there is nothing to send any more.
func (c *Claims) claim(ctx context.Context, term int64, f ScheduledRun, t *try) (settled EnqueueResult, err error) {
	if t.claimed > 0 && !t.used && t.term == term {
		return settled, nil
	}
	for number, last := t.claimed+1, t.term; ; {
		if err := allowed(f, t, number, last == term); err != nil {
			return settled, err
		}
		record, err := c.store.Claim(ctx, term, f, number)
		switch {
		case err != nil:
			return settled, fmt.Errorf("claiming the run %s: %w", f.ID, err)
		case record.Settled:
			return EnqueueResult{Sent: queue.Sent{ID: record.MessageID}, Already: true}, nil
		case record.Tries == number && record.Term == term:
			t.claimed, t.term, t.used, t.resent = number, term, false, t.resent || number > 1
			return settled, nil
		case record.Tries < number:
			return settled, fmt.Errorf("claiming the run %s: the record has %d tries where %d are known; records may have been "+
				"removed", f.ID, record.Tries, number)
		}
		number, last = record.Tries+1, record.Term
	}
}

// allowed reports whether try number may be made; again tells that the one
// before it was made in the same term.
func allowed(f ScheduledRun, t *try, number int, again bool) error {
	switch {
	case number == 1:
		return nil
	case !FIFO(f.Queue) && number > 2 && again:
		return fmt.Errorf("the run %s was tried twice without an answer: %w", f.ID, ErrUncertain)
	case FIFO(f.Queue) && t.age(f) > dedupWindow:
		return fmt.Errorf("the run %s was tried before, longer ago than its queue's deduplication "+
			"interval: %w", f.ID, ErrUncertain)
	}
	return nil
}

// age is how long ago the run's first send was made, at most.
func (t *try) age(f ScheduledRun) time.Duration {
	if !t.first.IsZero() && !t.resent {
		return time.Since(t.first)
	}
	return time.Now().Round(0).Sub(f.DueAt) // another instance's: not before it was due
}

// send sends within the claim of t.
func (c *Claims) send(ctx context.Context, term int64, f ScheduledRun, t *try) error {
	if !f.Manual {
		if current, ok := c.lead.Term(); !ok || current != term {
			return queue.ErrStaleTerm
		}
	}
	if t.first.IsZero() {
		t.first = time.Now()
	}
	sent, err := c.sender.Send(ctx, f.Queue, f.Message)
	if err == nil {
		err = sent.Err
	}
	if err != nil {
		t.used = !certainlyNot(err)
		return fmt.Errorf("sending the run %s: %w", f.ID, err)
	}
	t.used, t.sent = true, sent
	return nil
}

// certainlyNot reports whether an error of a send says that nothing was
// accepted.
func certainlyNot(err error) bool {
	var op *net.OpError
	if errors.Is(err, ErrNotSent) || errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var refusal *queue.Error
	return errors.As(err, &refusal) && refusal.Code != queue.CodeUnreachable && refusal.Code != queue.CodeClosed
}

// mark settles what was sent, at once or at the next Enqueue. A stale term ends
// it: the next leader sees an unsettled claim.
func (c *Claims) mark(ctx context.Context, term int64, f ScheduledRun, t *try) (err error) {
	for range markTries {
		if err = c.store.Mark(ctx, term, f, t.sent.ID); err == nil || errors.Is(err, queue.ErrStaleTerm) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("noting that the run %s was sent as %s: %w", f.ID, t.sent.ID, err)
	}
	return nil
}
