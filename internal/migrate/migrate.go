package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// Item is a message at the source.
type Item struct {
	ID string
	// Message has neither a delay nor a deduplication ID.
	Message   queue.Outgoing
	VisibleAt time.Time
	InFlight  bool
	Receipt   string
}

// Count is a queue's number of messages by state.
type Count struct {
	Visible  int `json:"visible"`
	Delayed  int `json:"delayed"`
	InFlight int `json:"in_flight"`
}

// Total returns the number of all messages.
func (c Count) Total() int { return c.Visible + c.Delayed + c.InFlight }

// Source is the queue to move messages from.
type Source interface {
	// Take returns up to n messages, or none at the end of the queue. It returns undeleted messages again, after Rewind
	// or some time.
	Take(ctx context.Context, n int) ([]Item, error)
	// After Rewind, Take starts with the oldest message.
	Rewind()
	// Delete returns nil if it deleted all, otherwise one error or nil per message.
	Delete(ctx context.Context, items []Item) []error
	Count(ctx context.Context) (Count, error)
}

// Destination is the queue to move messages to.
type Destination interface {
	Send(ctx context.Context, messages []queue.Outgoing) ([]queue.Sent, error)
	Count(ctx context.Context) (Count, error)
}

// Options configure [Run].
type Options struct {
	FIFO bool
	// SourceExact and DestinationExact mean that the queue's Count is exact and current.
	SourceExact, DestinationExact bool
	// CutDelays shortens delays beyond MaxDelay on a standard queue. Otherwise, such messages stay at the source.
	CutDelays bool
	// MaxDelay is the destination's limit; 0 means no limit.
	MaxDelay time.Duration
	// Wait limits how long Run waits for messages at the source that are in flight or delayed.
	Wait      time.Duration
	Uncertain Decision
	// Concurrency is the number of concurrent calls for a standard queue; 0 means 1.
	Concurrency int
	// Progress may be nil and is called concurrently. sent includes earlier runs.
	Progress func(sent, total int)
	// Waiting is called about once a second with the source's count while Run waits; may be nil.
	Waiting func(Count)
}

// Decision determines whether messages on a FIFO queue with an unknown outcome are sent again after the deduplication
// interval.
type Decision string

// With Undecided, the destination's message count decides. If it is inconclusive, Run returns [ErrUncertain].
const (
	Undecided Decision = ""
	Resend    Decision = "send" // may duplicate them
	Drop      Decision = "drop" // deletes them at the source, which may lose them
)

// ErrUncertain means that messages may have been sent, the deduplication interval has passed, and the destination's
// message count is inconclusive.
var ErrUncertain = errors.New("may have been sent before")

// dedupWindow is the deduplication interval of 5 minutes, minus a margin for clocks and calls.
const dedupWindow = 4*time.Minute + 30*time.Second

type run struct {
	options Options
	from    Source
	to      Destination
	journal *Journal
	result  *Result
	began   time.Time
	gaveUp  bool
	earlier answer

	mu      sync.Mutex
	skipped map[string]Reason
	cut     map[string]bool // messages with a shortened delay
	// blocked contains groups of a FIFO queue with a rejected message, waiting groups with a message in flight.
	blocked, waiting map[string]bool
}

// answer records whether the uncertain messages of earlier runs count as accepted.
type answer struct{ known, accepted bool }

// Run moves all messages from the source. It returns when only skipped messages are left, when it could move nothing
// for Options.Wait, after an error that persists despite retries, or when ctx ends. The result is valid even after an
// error.
func Run(ctx context.Context, from Source, to Destination, journal *Journal, o Options) (*Result, error) {
	r := &run{options: o, from: from, to: to, journal: journal, skipped: map[string]Reason{}, cut: map[string]bool{},
		blocked: map[string]bool{}, waiting: map[string]bool{}, result: &Result{FIFO: o.FIFO}, began: time.Now()}
	err := r.begin(ctx)
	if err == nil {
		err = r.moveAll(ctx)
	}
	return r.result, errors.Join(err, r.finish(context.WithoutCancel(ctx), err == nil && !r.gaveUp))
}

func (r *run) begin(ctx context.Context) error {
	if r.journal.Begun() {
		return nil
	}
	source, destination, err := r.counts(ctx)
	if err != nil {
		return err
	}
	return r.journal.Begin(source, destination)
}

func (r *run) counts(ctx context.Context) (source, destination int, err error) {
	left, err := r.countSource(ctx)
	if err != nil {
		return 0, 0, err
	}
	destination, err = r.countDestination(ctx)
	return left.Total(), destination, err
}

func (r *run) countSource(ctx context.Context) (Count, error) {
	count, err := r.from.Count(ctx)
	if err != nil {
		err = fmt.Errorf("counting the messages at the source: %w", err)
	}
	return count, err
}

func (r *run) countDestination(ctx context.Context) (int, error) {
	count, err := r.to.Count(ctx)
	if err != nil {
		err = fmt.Errorf("counting the messages at the destination: %w", err)
	}
	return count.Total(), err
}

const (
	pollInterval = time.Second
	// After emptyTakes in a row, a source without an exact count is empty.
	emptyTakes = 3
)

// Messages may stay in flight, so moveAll gives up after Options.Wait without progress.
func (r *run) moveAll(ctx context.Context) error {
	n := queue.MaxBatch * max(1, r.options.Concurrency)
	idleSince := time.Now()
	empty := 0
	for {
		items, err := r.from.Take(ctx, n)
		if err != nil {
			return fmt.Errorf("reading the source: %w", err)
		}

		tried, err := r.move(ctx, items)
		if err != nil {
			return err
		}
		if tried {
			idleSince = time.Now()
			empty = 0
		}
		if len(items) > 0 {
			continue
		}

		left, err := r.countSource(ctx)
		if err != nil {
			return err
		}
		empty++
		hasMore := left.Total() > len(r.skipped)
		if !hasMore && (empty >= emptyTakes || r.options.SourceExact) {
			return nil
		}

		r.gaveUp = time.Since(idleSince) > r.options.Wait
		if r.gaveUp {
			return nil
		}
		if hasMore && r.options.Waiting != nil {
			r.options.Waiting(left)
		}

		if err := pause(ctx, pollInterval); err != nil {
			return err
		}
		clear(r.waiting)
		r.from.Rewind()
	}
}

// tried is false if all items were held back.
func (r *run) move(ctx context.Context, items []Item) (tried bool, err error) {
	var accepted, fresh []Item
	for _, it := range items {
		switch {
		case r.journal.Accepted(it.ID):
			accepted = append(accepted, it)
		case !r.holdBack(&it):
			fresh = append(fresh, it)
		}
	}

	if err := r.deleteAtSource(ctx, accepted); err != nil {
		return false, err
	}

	send := r.sendAtOnce
	if r.options.FIFO {
		send = r.sendInOrder
	}
	if err := send(ctx, fresh); err != nil {
		return false, err
	}
	return len(accepted)+len(fresh) > 0, nil
}

// holdBack records messages that stay permanently in skipped, and groups that stay until the next Rewind in waiting.
func (r *run) holdBack(it *Item) bool {
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

func (r *run) sendAtOnce(ctx context.Context, items []Item) error {
	var group sync.WaitGroup
	var errs []error
	var mu sync.Mutex
	for len(items) > 0 {
		n := batchLength(items)
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

func (r *run) sendInOrder(ctx context.Context, items []Item) error {
	for len(items) > 0 {
		var round, rest []Item
		groups := map[string]bool{}
		for _, it := range items {
			fits := batchLength(append(round, it)) > len(round)
			switch group := it.Message.GroupID; {
			case r.blocked[group]:
				r.skip(&it, Behind)
			case groups[group] || !fits:
				groups[group] = true
				rest = append(rest, it)
			default:
				groups[group] = true // later messages of the group must wait
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

func batchLength(items []Item) int {
	n, bytes := 0, 0
	for n < len(items) && n < queue.MaxBatch {
		bytes += items[n].Message.Size()
		if bytes > queue.MaxMessageSize && n > 0 {
			break
		}
		n++
	}
	return n
}

// If a delete fails temporarily, the message is taken again and then found in the journal.
func (r *run) deleteAtSource(ctx context.Context, items []Item) error {
	for batch := range slices.Chunk(items, queue.MaxBatch) {
		errs := r.from.Delete(ctx, batch)
		failed := 0
		var cause error
		for _, err := range errs {
			if err != nil {
				failed++
				cause = err
			}
		}

		if err := r.journal.recordDeleted(len(batch) - failed); err != nil {
			return err
		}
		if failed > 0 && ctx.Err() == nil && !isTemporary(cause) {
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
