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

// Options describe the deliveries from one queue. Only Target is required.
type Options struct {
	Target Target // takes the messages
	FIFO   bool   // the order within a message group counts
	// OneByOne hands each message over alone, also to a target that takes several at once.
	OneByOne bool
	Tracker  *Tracker // counts the deliveries in flight; may be nil
	Known    Registry // nil trusts every message that says it is a run
	// Account returns the account of scheduled runs; it and its result may be nil.
	Account  func() RunAccount
	SNS      bool             // messages are taken out of the envelopes of SNS
	Payloads *envelope.Opener // fetches what messages point to in S3; nil where no bucket is allowed
	// Deadline returns the limit of a whole delivery, 0 for none; may be nil.
	Deadline func() time.Duration
	// Postponed reports that the payload of a message, or the registry that would judge it, is not available; may be nil.
	Postponed func(id string, retryIn time.Duration, err error)
	// Begun is called when a message is about to be handed over; path is that of a
	// scheduled run, else "". May be nil.
	Begun func(path string)
	// Posting is called with the receipt of each message right before it is handed over; may be nil.
	Posting func(receipt string)
	Tracer  *telemetry.Tracer // makes the spans of deliveries; may be nil
	Logger  *slog.Logger      // may be nil
}

// Target takes messages: an app or a function. One that has a method
// DeliverBatch, as [deliver.Lambda] has, gets all messages of a delivery at once, unless OneByOne is set.
type Target interface {
	// Deliver hands over one message.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the target accepts messages.
	Probe(ctx context.Context) error
}

// batchTarget is a [Target] that takes several messages at once.
type batchTarget interface {
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
}

// message is a message on its way to the target.
type message struct {
	// Message is handed over. A stage may replace it by a changed copy.
	*queue.Message
	result queue.Result // how the delivery ended
}

// withoutReason returns a message as its sender sent it: one that came back from a dead-letter queue may still say
// why it was there, which is not for the app.
func withoutReason(m *queue.Message) *queue.Message {
	others, _ := queue.CutReason(m.Attributes)
	if len(others) == len(m.Attributes) {
		return m
	}
	plain := *m
	plain.Attributes = others
	return &plain
}

// stage hands over the messages of one delivery and sets the result of each.
type stage func(ctx context.Context, batch []*message)

// send hands messages to the target.
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

// trace makes the spans of a delivery.
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

// announce reports each message that is about to be handed over.
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

// RunAccount keeps account of the scheduled runs that are delivered.
type RunAccount interface {
	// Begun notes that a run of a task is delivered now.
	Begun(task string)
	// Ended notes how the delivery of a run ended.
	Ended(outcome periodic.Outcome)
}

// bookkeep notes the start and the end of scheduled runs, both in the same account.
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

// Registry reports whether a scheduled run of this id was made for this path, or returns
// [periodic.ErrUndecided].
type Registry func(ctx context.Context, id, path string) (bool, error)

// undecidedPause is how soon, at the earliest, a message is tried again that only the registry can judge.
const undecidedPause = time.Second

// recognizeRuns parses each message as a scheduled run.
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

// judge asks whether a message is the run that it claims to be. One that is not known
// becomes an ordinary message, also a copy of a run that goes to another path. It
// returns false when there is no answer.
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
		case err != nil: // an outage of the registry must not use up the receives of the runs
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

// prepare calls ready for each message, which sets the result of one that cannot be
// handed over, and returns the others. Behind such a message the later ones of its
// group are held back where the order counts.
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

// Tracker knows the deliveries in flight, and since when. The zero value is empty.
type Tracker struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

// begin notes the start of a delivery; the caller calls end with the result.
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

// Work returns how many deliveries run, and for how long the oldest.
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
