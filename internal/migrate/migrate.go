package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tendril/queue"
)

// Item is a message of the source.
type Item struct {
	ID string // at the source
	// Message is what is sent, without its delay and its deduplication id.
	Message queue.Outgoing
	// VisibleAt is when a message that is delayed or in flight becomes visible; zero for others.
	VisibleAt time.Time
	InFlight  bool
	Receipt   string // the source's own
}

// Count is how many messages a queue holds.
type Count struct {
	Visible  int `json:"visible"`
	Delayed  int `json:"delayed"`
	InFlight int `json:"in_flight"`
}

// Total is how many there are in any state.
func (c Count) Total() int { return c.Visible + c.Delayed + c.InFlight }

// Source is the queue that messages leave.
type Source interface {
	// Take returns about n messages, none at the end. It returns a message again after Rewind, or when it was not deleted
	// for a while.
	Take(ctx context.Context, n int) ([]Item, error)
	// Rewind has Take begin with the oldest message again.
	Rewind()
	// Delete deletes messages that were taken; one error for each, or nil.
	Delete(ctx context.Context, items []Item) []error
	Count(ctx context.Context) (Count, error)
}

// Destination is the queue that messages go to.
type Destination interface {
	Send(ctx context.Context, messages []queue.Outgoing) ([]queue.Sent, error)
	Count(ctx context.Context) (Count, error)
}

// Options say how a queue is migrated.
type Options struct {
	FIFO bool
	// SourceExact and DestinationExact say that a queue counts exactly, and at once.
	SourceExact, DestinationExact bool
	// CutDelays sends messages that are due later than MaxDelay with MaxDelay. Without it they stay.
	CutDelays bool
	// MaxDelay is the longest delay of the destination; 0 for no limit.
	MaxDelay time.Duration
	// Wait is how long a run waits for messages that are in flight or delayed at the source.
	Wait time.Duration
	// Uncertain decides about messages of a FIFO queue of which nobody knows whether they were accepted.
	Uncertain Decision
	// Concurrency is how many calls to a standard queue are made at the same time.
	Concurrency int
	// Progress is told how many messages were sent so far, over all runs, and of how many; nil for nobody.
	Progress func(sent, total int)
	// Waiting is told how many messages are waited for; nil for nobody.
	Waiting func(Count)
}

// Decision is what becomes of messages of a FIFO queue that may have been sent.
type Decision string

// The decisions. Without one the run ends with [ErrUncertain].
const (
	Undecided Decision = ""
	Resend    Decision = "send" // they may be there twice then
	Drop      Decision = "drop" // they are deleted at the source, and may be lost
)

// ErrUncertain means that a run ended between a send and the note that it was accepted, longer ago than the
// deduplication lasts.
var ErrUncertain = errors.New("may have been sent before")

// dedupWindow is how long a destination surely knows a deduplication id, with a margin for clocks and calls.
const dedupWindow = 4*time.Minute + 30*time.Second

// run is one run.
type run struct {
	options Options
	from    Source
	to      Destination
	journal *Journal
	result  *Result
	began   time.Time
	gaveUp  bool // something is left that was waited for
	// settled is whether those that are uncertain since before this run were accepted; nil before it was decided.
	settled *bool

	mu      sync.Mutex
	skipped map[string]Reason // by id, in this run
	// blocked are the groups of a FIFO queue whose rest stays, waiting those whose first message is in flight.
	blocked, waiting map[string]bool
}

// Run moves what the source holds. It ends when the source is empty but for messages that are skipped, when nothing
// came for Options.Wait, with the first error that repeating does not help against, or with ctx. The result is valid
// with an error too.
func Run(ctx context.Context, from Source, to Destination, journal *Journal, o Options) (*Result, error) {
	r := &run{options: o, from: from, to: to, journal: journal, skipped: map[string]Reason{}, blocked: map[string]bool{},
		waiting: map[string]bool{}, result: &Result{FIFO: o.FIFO}, began: time.Now()}
	err := r.begin(ctx)
	if err == nil {
		err = r.loop(ctx)
	}
	return r.result, errors.Join(err, r.finish(context.WithoutCancel(ctx), err == nil && !r.gaveUp))
}

// begin notes what both queues hold before the first run.
func (r *run) begin(ctx context.Context) error {
	if r.journal.Begun() {
		return nil
	}
	source, err := r.from.Count(ctx)
	if err != nil {
		return fmt.Errorf("counting the source: %w", err)
	}
	destination, err := r.to.Count(ctx)
	if err != nil {
		return fmt.Errorf("counting the destination: %w", err)
	}
	return r.journal.Begin(source.Total(), destination.Total())
}

const (
	// perCall is how many messages go with one call.
	perCall = queue.MaxBatch
	// poll is how long a run waits before it looks for messages again.
	poll = time.Second
)

func (r *run) loop(ctx context.Context) error {
	n := perCall * max(1, r.options.Concurrency)
	idleSince, empty := time.Now(), 0
	for {
		items, err := r.from.Take(ctx, n)
		if err != nil {
			return fmt.Errorf("reading the source: %w", err)
		}

		moved, err := r.move(ctx, items)
		if err != nil {
			return err
		}
		if moved {
			idleSince, empty = time.Now(), 0
		}
		if len(items) > 0 {
			continue
		}

		left, err := r.from.Count(ctx)
		if err != nil {
			return fmt.Errorf("counting the source: %w", err)
		}
		// A count that is approximate may lag behind: it must be so several times.
		empty++
		if left.Total() <= len(r.skipped) && (empty > 2 || r.options.SourceExact) {
			return nil
		}

		if r.gaveUp = time.Since(idleSince) > r.options.Wait; r.gaveUp {
			return nil
		}
		if r.options.Waiting != nil && left.Total() > len(r.skipped) {
			r.options.Waiting(left)
		}

		if err := pause(ctx, poll); err != nil {
			return err
		}
		clear(r.waiting)
		r.from.Rewind()
	}
}

// move sends messages and deletes them; false when none of them left the source.
func (r *run) move(ctx context.Context, items []Item) (moved bool, err error) {
	var fresh, gone []Item
	for _, it := range items {
		switch {
		case r.journal.Accepted(it.ID):
			gone = append(gone, it)
		case r.stays(&it):
		default:
			fresh = append(fresh, it)
		}
	}
	if err := r.remove(ctx, gone); err != nil {
		return false, err
	}
	if r.options.FIFO {
		err = r.sendInOrder(ctx, fresh)
	} else {
		err = r.sendAtOnce(ctx, fresh)
	}
	return len(gone)+len(fresh) > 0, err
}

// stays reports whether a message stays at the source: for good in this run, or until the next look at it.
func (r *run) stays(it *Item) bool {
	if _, found := r.skipped[it.ID]; found {
		return true
	}
	wait := time.Until(it.VisibleAt)
	switch {
	case r.options.FIFO && r.blocked[it.Message.GroupID]:
		r.skip(it, Behind)
		return true
	case r.options.FIFO && (it.InFlight && wait > 0 || r.waiting[it.Message.GroupID]):
		r.waiting[it.Message.GroupID] = true
		return true
	case !r.options.FIFO && r.options.MaxDelay > 0 && wait > r.options.MaxDelay && !r.options.CutDelays:
		r.skip(it, DueLater)
		return true
	}
	return false
}

func (r *run) skip(it *Item, why Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped[it.ID] = why
}

// sendAtOnce sends messages in calls at the same time.
func (r *run) sendAtOnce(ctx context.Context, items []Item) error {
	var group sync.WaitGroup
	var errs []error
	var mu sync.Mutex
	for len(items) > 0 {
		n := fitting(items)
		batch := items[:n]
		items = items[n:]
		group.Go(func() {
			if err := r.sendBatch(ctx, batch); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// sendInOrder sends messages in rounds with one message of each group.
func (r *run) sendInOrder(ctx context.Context, items []Item) error {
	for len(items) > 0 {
		var round, rest []Item
		groups := map[string]bool{}
		for _, it := range items {
			switch group := it.Message.GroupID; {
			case r.blocked[group]:
				r.skip(&it, Behind)
			case groups[group] || len(round) == perCall || size(round)+it.Message.Size() > maxBytes && len(round) > 0:
				groups[group] = true // those behind it wait for it
				rest = append(rest, it)
			default:
				groups[group] = true
				round = append(round, it)
			}
		}
		if len(round) > 0 {
			if err := r.sendBatch(ctx, round); err != nil {
				return err
			}
		}
		items = rest
	}
	return nil
}

// maxBytes is the most that the messages of one call may have together.
const maxBytes = 1 << 20

func size(items []Item) (n int) {
	for i := range items {
		n += items[i].Message.Size()
	}
	return n
}

// fitting is how many of the first messages fit into one call, at least one.
func fitting(items []Item) int {
	n, bytes := 0, 0
	for n < len(items) && n < perCall {
		if bytes += items[n].Message.Size(); bytes > maxBytes && n > 0 {
			break
		}
		n++
	}
	return n
}

// remove deletes messages that were accepted. What could not be deleted comes again, and is found in the journal.
func (r *run) remove(ctx context.Context, items []Item) error {
	for len(items) > 0 {
		batch := items[:min(perCall, len(items))]
		items = items[len(batch):]
		errs := r.from.Delete(ctx, batch)
		failed, cause := 0, error(nil)
		for _, err := range errs {
			if err != nil {
				failed, cause = failed+1, err
			}
		}
		if err := r.journal.deletedAnother(len(batch) - failed); err != nil {
			return err
		}
		if failed > 0 && ctx.Err() == nil && !passing(cause) {
			return fmt.Errorf("deleting %d messages at the source: %w", failed, cause)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
