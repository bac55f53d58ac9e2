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
	"tendril/internal/delivery/envelope"
	"tendril/internal/observe/telemetry"
	"tendril/queue"
)

// Options configure the deliveries from one queue. Only Target is required.
type Options struct {
	Target Target
	FIFO   bool // preserve the order of message groups
	// OneByOne delivers messages singly, even to a target that accepts several at once.
	OneByOne bool
	Tracker  *Tracker // may be nil
	Known    Registry // if nil, every message that claims to be a run is trusted
	// Account returns the account of scheduled runs; it and its result may be nil.
	Account  func() RunAccount
	SNS      bool             // unwrap SNS envelopes
	Payloads *envelope.Opener // fetches payloads from S3; nil if no bucket is allowed
	// Deadline returns the deadline of a whole delivery, 0 for no deadline; may be nil.
	Deadline func() time.Duration
	// Postponed is called if the payload of a message, or the registry needed to judge it, is unavailable; may be
	// nil.
	Postponed func(id string, retryIn time.Duration, err error)
	// Begun is called when a message is about to be delivered; path is a scheduled run's, otherwise "". May be nil.
	Begun func(path string)
	// Posting is called with the receipt handle of each message just before it is sent; may be nil.
	Posting func(receipt string)
	Tracer  *telemetry.Tracer // may be nil
	Logger  *slog.Logger      // may be nil
}

// Target is an app or a function. If it also has a method DeliverBatch, like [deliver.Lambda], it receives all
// messages of a delivery at once, unless OneByOne is set.
type Target interface {
	// Deliver delivers one message.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil if the target accepts messages.
	Probe(ctx context.Context) error
}

// batchTarget is a [Target] that accepts several messages at once.
type batchTarget interface {
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
}

// message is a message passing through the stages.
type message struct {
	// Message is the message to send. A stage may replace it by a modified copy.
	*queue.Message
	result queue.Result
}

// withoutReason removes the failure reason from a message redriven from a dead-letter queue: the app receives the
// message as it was sent.
func withoutReason(m *queue.Message) *queue.Message {
	others, _ := queue.CutReason(m.Attributes)
	if len(others) == len(m.Attributes) {
		return m
	}
	plain := *m
	plain.Attributes = others
	return &plain
}

// stage delivers the messages of one delivery and sets their results.
type stage func(ctx context.Context, batch []*message)

// send sends messages to the target.
func send(opts *Options) stage {
	posting := opts.Posting
	if posting == nil {
		posting = func(string) {}
	}
	several, ok := opts.Target.(batchTarget)
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
		for i, result := range several.DeliverBatch(ctx, queueMessages(batch)) {
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

// trace creates the spans of a delivery.
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

// announce reports each message about to be delivered.
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

// RunAccount records deliveries of scheduled runs.
type RunAccount interface {
	// Begun records that the delivery of a task's run has started.
	Begun(task string)
	// Ended records the result of a run's delivery.
	Ended(outcome periodic.Outcome)
}

// bookkeep records the start and result of scheduled runs in the same account.
func bookkeep(next stage, account func() RunAccount) stage {
	return func(ctx context.Context, batch []*message) {
		to := account()
		for _, m := range batch {
			if to != nil && m.Run.Named() {
				to.Begun(m.Run.Task)
			}
		}
		next(ctx, batch)
		for _, m := range batch {
			if to != nil && m.Run.Named() {
				to.Ended(periodic.Outcome{Task: m.Run.Task, ScheduledAt: m.Run.ScheduledAt, MessageID: m.ID,
					Attempt: m.ReceiveCount, At: time.Now(), Result: m.result})
			}
		}
	}
}

// Registry reports whether a scheduled run with this ID was created for this path, or returns
// [periodic.ErrUndecided].
type Registry func(ctx context.Context, id, path string) (bool, error)

// undecidedPause is the minimum wait before retrying a message if the registry is undecided or unavailable.
const undecidedPause = time.Second

// recognizeRuns parses scheduled runs.
func recognizeRuns(next stage, opts *Options) stage {
	return func(ctx context.Context, batch []*message) {
		for _, m := range batch {
			if run := queue.ParseRun(m.Message); run != nil {
				parsed := *m.Message
				parsed.Run, m.Message = run, &parsed
			}
		}
		if opts.Known != nil {
			batch = prepare(batch, opts.FIFO, func(m *message) bool { return judge(ctx, m, opts) })
		}
		if len(batch) > 0 {
			next(ctx, batch)
		}
	}
}

// judge checks whether a message is the run that it claims to be. Unknown runs, and copies with another path, become
// ordinary messages. It returns false without an answer.
func judge(ctx context.Context, m *message, opts *Options) bool {
	if m.Attribute(queue.AttributePath) == "" {
		return true
	}
	if id := periodic.IDOf(m.Run); id != "" {
		begin := time.Now()
		ok, err := opts.Known(ctx, id, m.Run.Path)
		switch {
		case errors.Is(err, periodic.ErrUndecided):
			m.result = queue.Result{Outcome: queue.Postponed, Reason: err.Error(), RetryAfter: undecidedPause}
			return false
		case errors.Is(err, queue.ErrDenied):
			m.result = queue.Result{Reason: "the registry of periodic tasks cannot be read", Err: err, Unsent: true}
			return false
		case err != nil: // an outage of the registry must not use up receives of the runs
			retryIn := max(undecidedPause, 2*time.Since(begin))
			if ctx.Err() == nil && opts.Postponed != nil {
				opts.Postponed(m.ID, retryIn, err)
			}
			m.result = queue.Result{Outcome: queue.Postponed, Reason: "the registry of periodic tasks did not answer", Err: err,
				RetryAfter: retryIn}
			return false
		case ok:
			return true
		}
	}

	ordinary := *m.Message
	ordinary.Run = nil
	ordinary.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool {
		return strings.HasPrefix(strings.ToLower(a.Name), queue.RunPrefix)
	})
	m.Message = &ordinary
	return true
}

// prepare returns the messages for which ready returns true. ready sets the results of the others, and on a FIFO
// queue later messages of their groups are held back too.
func prepare(batch []*message, fifo bool, ready func(*message) bool) []*message {
	stuck := map[string]queue.Result{} // by group
	return slices.DeleteFunc(slices.Clone(batch), func(m *message) bool {
		if behind, ok := stuck[m.GroupID]; ok {
			m.result = behind
			return true
		}
		if ready(m) {
			return false
		}
		if fifo && m.GroupID != "" {
			stuck[m.GroupID] = queue.Result{Outcome: m.result.Outcome, RetryAfter: m.result.RetryAfter,
				Reason: "an earlier message of its group is not done", Unsent: true}
		}
		return true
	})
}

// Tracker tracks the deliveries in flight. The zero value is empty.
type Tracker struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

// begin records the start of a delivery; pass the returned ID to end.
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

// Work returns the number of running deliveries and the age of the oldest.
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

// track counts the deliveries of next.
func (t *Tracker) track(next stage) stage {
	return func(ctx context.Context, batch []*message) {
		defer t.end(t.begin(time.Now()))
		next(ctx, batch)
	}
}
