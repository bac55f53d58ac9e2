package transfer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cli/target"
	"tendril/internal/migrate"
	"tendril/queue"
)

type queueEnd interface {
	migrate.Source
	migrate.Destination
	Attributes(ctx context.Context) (map[string]string, error)
	URL() string
}

// embeddedEnd is a queue of a stopped environment. Its messages are read from the store, not received.
type embeddedEnd struct {
	b     *broker.Broker
	name  string
	after string
	ended bool
	arnOf func(name string) string
}

func (e *embeddedEnd) Take(ctx context.Context, n int) (items []migrate.Item, err error) {
	for len(items) == 0 && !e.ended {
		page, next, err := e.b.Browse(ctx, e.name, broker.BrowseRequest{After: e.after, Limit: min(n, 1000)})
		if err != nil {
			return nil, err
		}
		e.after, e.ended = next, next == ""
		for i := range page {
			items = append(items, e.item(&page[i]))
		}
	}
	return items, nil
}

func (e *embeddedEnd) Rewind() { e.after, e.ended = "", false }

func (e *embeddedEnd) item(s *broker.Stored) migrate.Item {
	return migrate.Item{ID: s.ID, VisibleAt: s.Until, InFlight: s.State == broker.InFlight, Message: e.outgoing(s)}
}

func (e *embeddedEnd) outgoing(s *broker.Stored) queue.Outgoing {
	m := queue.Outgoing{Body: s.Body, Attributes: s.Attributes, GroupID: s.GroupID, TraceHeader: s.TraceHeader}
	_, reason := queue.CutReason(s.Attributes)
	if s.DeadLetterSource == "" || reason != nil {
		return m
	}
	dead := queue.DeadLetter{Message: &s.Message, Failure: e.failureOf(s)}
	const fifo = false // deduplication IDs are set later
	if withReason, fits := dead.Outgoing(fifo); fits {
		return withReason
	}
	return m
}

func (e *embeddedEnd) failureOf(s *broker.Stored) queue.Failure {
	f := queue.Failure{Reason: "dead-lettered", Receives: s.ReceiveCount, FailedAt: s.DeadAt, MessageID: s.ID,
		SentAt: s.SentAt, Source: e.arnOf(queue.NameInARN(s.DeadLetterSource))}
	if n := len(s.Attempts); n > 0 {
		last := s.Attempts[n-1]
		f.Reason = cmp.Or(last.Reason, f.Reason)
		f.Status = last.Status
		f.Answer = last.Answer
		f.Attempts = n
		f.DurationMS = last.Duration.Milliseconds()
		f.FailedAt = last.At
		f.Instance = last.Instance
	}
	return f
}

func (e *embeddedEnd) Delete(ctx context.Context, items []migrate.Item) []error {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	if _, err := e.b.DeleteMessages(ctx, e.name, ids); err != nil {
		return slices.Repeat([]error{err}, len(items))
	}
	return nil
}

func (e *embeddedEnd) Count(context.Context) (migrate.Count, error) {
	l, err := e.b.Ledger(e.name)
	return liveCounts(&l), err
}

func liveCounts(l *queue.Ledger) migrate.Count {
	return migrate.Count{Visible: int(l.Visible), Delayed: int(l.Delayed), InFlight: int(l.InFlight)}
}

func (e *embeddedEnd) Send(ctx context.Context, messages []queue.Outgoing) ([]queue.Sent, error) {
	return e.b.Queue(e.name).Send(ctx, messages)
}

func (e *embeddedEnd) Attributes(context.Context) (map[string]string, error) {
	return e.b.Attributes(e.name)
}

func (e *embeddedEnd) URL() string { return "embedded:" + e.name }

type sqsEnd struct{ *aws.Queue }

const (
	// migrateHold is much longer than sending and deleting takes. After a crash, the next run must wait that long.
	migrateHold = time.Minute
	migrateWait = time.Second
)

func (e *sqsEnd) Take(ctx context.Context, n int) ([]migrate.Item, error) {
	calls := max(1, n/queue.MaxBatch)
	if e.FIFO() {
		calls = 1
	}

	batches := make([][]queue.Message, calls)
	errs := make([]error, calls)
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			batches[i], errs[i] = e.Receive(ctx, queue.ReceiveRequest{Max: queue.MaxBatch, Wait: new(migrateWait),
				Visibility: new(migrateHold)})
		})
	}
	group.Wait()

	var items []migrate.Item
	indexes := map[string]int{}
	for _, m := range slices.Concat(batches...) {
		item := migrate.Item{ID: m.ID, Receipt: m.ReceiptHandle, Message: queue.Outgoing{Body: m.Body,
			Attributes: m.Attributes, GroupID: m.GroupID, TraceHeader: m.TraceHeader}}
		if i, again := indexes[m.ID]; again {
			items[i] = item
			continue
		}
		indexes[m.ID] = len(items)
		items = append(items, item)
	}

	if len(items) > 0 {
		return items, nil // the next Take repeats failed calls
	}
	return nil, errors.Join(errs...)
}

func (e *sqsEnd) Rewind() {}

func (e *sqsEnd) Delete(ctx context.Context, items []migrate.Item) []error {
	receipts := make([]string, len(items))
	for i := range items {
		receipts[i] = items[i].Receipt
	}
	return e.Queue.Delete(ctx, receipts)
}

func (e *sqsEnd) Count(ctx context.Context) (migrate.Count, error) {
	attributes, err := e.Attributes(ctx)
	l := target.Counts(attributes)
	return liveCounts(&l), err
}
