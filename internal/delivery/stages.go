package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/cron/periodic"
	"tendril/internal/delivery/deliver"
	"tendril/internal/delivery/envelope"
	"tendril/internal/observe/telemetry"
	"tendril/queue"
)

// Options configure the delivery of messages from one queue. Only Target is required.
type Options struct {
	Target   Target
	FIFO     bool
	OneByOne bool
	Tracker  *Tracker // may be nil
	Known    Registry // nil trusts every message that claims to be a run
	// Account returns the account of scheduled runs. Account and its result may be nil.
	Account  func() RunAccount
	SNS      bool
	Payloads *envelope.Opener // nil if no bucket is allowed
	// Deadline returns the limit of an entire delivery, which also limits fetching payloads; nil or 0 means none.
	Deadline func() time.Duration
	// Postponed is called if the registry or a payload is temporarily not available; may be nil.
	Postponed func(m *queue.Message, retryIn time.Duration, err error)
	// Paused reports whether sending must stop, such as after a rollback of the app's version; may be nil. It is
	// called after waiting for the registry and a payload. A Target that waits must also call it.
	Paused func() bool
	// Begun is called before a message is sent, with the path of a scheduled run or ""; may be nil.
	Begun func(path string)
	// Posting is called with the receipt handle just before a message is sent; may be nil.
	Posting func(receipt string)
	Tracer  *telemetry.Tracer // may be nil
	Logger  *slog.Logger      // may be nil
}

// Target is an app or a function. It receives batches if it is a [worker.BatchDeliverer].
type Target interface {
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil if the target accepts messages.
	Probe(ctx context.Context) error
}

type batchTarget interface {
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
}

type message struct {
	// A stage may replace Message with a modified copy.
	*queue.Message
	result queue.Result
}

// withoutReason removes the reason of an earlier dead-lettering, so that the app receives the original message.
func withoutReason(m *queue.Message) *queue.Message {
	others, _ := queue.CutReason(m.Attributes)
	if len(others) == len(m.Attributes) {
		return m
	}
	plain := *m
	plain.Attributes = others
	return &plain
}

type stage func(ctx context.Context, batch []*message)

func send(opts *Options) stage {
	posting := opts.Posting
	if posting == nil {
		posting = func(string) {}
	}
	batches, ok := opts.Target.(batchTarget)
	if !ok || opts.OneByOne {
		return func(ctx context.Context, batch []*message) {
			for _, m := range batch {
				posting(m.ReceiptHandle)
				m.result = opts.Target.Deliver(ctx, m.Message)
			}
		}
	}

	return func(ctx context.Context, batch []*message) {
		for _, m := range batch {
			posting(m.ReceiptHandle)
		}
		for i, result := range batches.DeliverBatch(ctx, queueMessages(batch)) {
			batch[i].result = result
		}
	}
}

func queueMessages(batch []*message) []*queue.Message {
	msgs := make([]*queue.Message, len(batch))
	for i, m := range batch {
		msgs[i] = m.Message
	}
	return msgs
}

func trace(next stage, tracer *telemetry.Tracer) stage {
	return func(ctx context.Context, batch []*message) {
		ctx, end := tracer.Begin(ctx, queueMessages(batch))
		next(ctx, batch)
		results := make([]queue.Result, len(batch))
		for i, m := range batch {
			results[i] = m.result
		}
		end(results)
	}
}

func unlessPaused(next stage, paused func() bool) stage {
	return func(ctx context.Context, batch []*message) {
		if !paused() {
			next(ctx, batch)
			return
		}
		for _, m := range batch {
			m.result = deliver.Paused()
		}
	}
}

func announce(next stage, begun func(path string)) stage {
	return func(ctx context.Context, batch []*message) {
		for _, m := range batch {
			path := ""
			if m.Run != nil {
				path = m.Run.Path
			}
			begun(path)
		}
		next(ctx, batch)
	}
}

// RunAccount records the deliveries of scheduled runs.
type RunAccount interface {
	Begun(task string)
	Ended(outcome periodic.Outcome)
}

// recordRuns uses the same account for the start and the end of a run.
func recordRuns(next stage, account func() RunAccount) stage {
	return func(ctx context.Context, batch []*message) {
		to := account()
		if to == nil {
			next(ctx, batch)
			return
		}

		for _, m := range batch {
			if m.Run.Named() {
				to.Begun(m.Run.Task)
			}
		}
		next(ctx, batch)
		for _, m := range batch {
			if m.Run.Named() {
				to.Ended(periodic.Outcome{Task: m.Run.Task, ScheduledAt: m.Run.ScheduledAt, MessageID: m.ID,
					Attempt: m.ReceiveCount, At: time.Now(), Result: m.result})
			}
		}
	}
}

// Registry reports whether a run with this ID was scheduled for this path. The error is [periodic.ErrUndecided] while
// that is unknown.
type Registry func(ctx context.Context, id, path string) (bool, error)

const undecidedPause = time.Second

func recognizeRuns(next stage, opts *Options) stage {
	return func(ctx context.Context, batch []*message) {
		for _, m := range batch {
			if run := queue.ParseRun(m.Message); run != nil {
				parsed := *m.Message
				parsed.Run = run
				m.Message = &parsed
			}
		}
		if opts.Known != nil {
			batch = keepReady(batch, opts.FIFO, func(m *message) bool { return convertUnknownRun(ctx, m, opts) })
		}
		if len(batch) > 0 {
			next(ctx, batch)
		}
	}
}

// convertUnknownRun turns a run into an ordinary message if it is unregistered or a copy with a different path. It
// returns false if the lookup fails.
func convertUnknownRun(ctx context.Context, m *message, opts *Options) bool {
	if m.Attribute(queue.AttributePath) == "" {
		return true
	}
	id := periodic.IDOf(m.Run)
	if id == "" {
		m.Message = withoutRun(m.Message)
		return true
	}

	start := time.Now()
	known, err := opts.Known(ctx, id, m.Run.Path)
	if err != nil {
		m.result = failedLookup(ctx, m, opts, err, time.Since(start))
		return false
	}
	if !known {
		m.Message = withoutRun(m.Message)
	}
	return true
}

func withoutRun(m *queue.Message) *queue.Message {
	ordinary := *m
	ordinary.Run = nil
	ordinary.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool {
		return strings.HasPrefix(strings.ToLower(a.Name), queue.RunPrefix)
	})
	return &ordinary
}

// failedLookup postpones the message, so that an outage of the registry uses up no attempt. If access is denied, the
// delivery fails.
func failedLookup(ctx context.Context, m *message, opts *Options, err error, took time.Duration) queue.Result {
	switch {
	case errors.Is(err, periodic.ErrUndecided):
		return queue.Result{Outcome: queue.Postponed, Reason: err.Error(), RetryAfter: undecidedPause}
	case errors.Is(err, queue.ErrDenied):
		return queue.Result{Reason: "reading the registry of periodic tasks failed", Err: err, Unsent: true}
	}

	retryIn := max(undecidedPause, 2*took)
	if ctx.Err() == nil && opts.Postponed != nil {
		opts.Postponed(m.Message, retryIn, err)
	}
	return queue.Result{Outcome: queue.Postponed, Reason: "the registry of periodic tasks did not respond", Err: err,
		RetryAfter: retryIn}
}

// keepReady returns the ready messages. On a FIFO queue, a message that is not ready holds back later ones of its
// group.
func keepReady(batch []*message, fifo bool, ready func(*message) bool) []*message {
	kept := make([]*message, 0, len(batch))
	heldBack := map[string]queue.Result{}
	for _, m := range batch {
		if result, found := heldBack[m.GroupID]; found {
			m.result = result
			continue
		}
		if ready(m) {
			kept = append(kept, m)
			continue
		}
		if fifo && m.GroupID != "" {
			heldBack[m.GroupID] = queue.Result{Outcome: m.result.Outcome, RetryAfter: m.result.RetryAfter,
				Reason: "an earlier message of its group is not done", Unsent: true}
		}
	}
	return kept
}

// Tracker tracks deliveries in flight. The zero value is empty.
type Tracker struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

func (t *Tracker) begin(now time.Time) (id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since = map[uint64]time.Time{}
	}
	t.last++
	t.since[t.last] = now
	return t.last
}

func (t *Tracker) end(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, id)
}

// Work returns the number of deliveries in flight (a batch counts as one) and the age of the oldest.
func (t *Tracker) Work() autoscale.Work {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := autoscale.Work{InWork: len(t.since)}
	for _, since := range t.since {
		w.Longest = max(w.Longest, now.Sub(since))
	}
	return w
}

func (t *Tracker) track(next stage) stage {
	return func(ctx context.Context, batch []*message) {
		defer t.end(t.begin(time.Now()))
		next(ctx, batch)
	}
}
