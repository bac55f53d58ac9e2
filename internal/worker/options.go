package worker

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// The defaults match Elastic Beanstalk worker environments where possible.
const (
	defaultConcurrency       = 50
	maxConcurrency           = 1000
	defaultVisibilityTimeout = 300 * time.Second
	defaultRetention         = 345600 * time.Second
	defaultWaitTime          = 20 * time.Second
	defaultDeleteLinger      = 100 * time.Millisecond
	defaultPrefetchBytes     = 16 << 20
	maxWeight                = 1000000
)

// Options configure a [Worker]. The zero value and nil are valid; values out of range are clamped.
type Options struct {
	Name string // shown in [Status]; usually the queue's name
	// Concurrency is the maximum number of deliveries in flight, 1 to 1000; 0 means 50.
	Concurrency int
	// VisibilityTimeout is set by receives and extensions, 1 s to 12 h; 0 means 300 s, negative values 1 s.
	VisibilityTimeout time.Duration
	// ErrorVisibilityTimeout is how long a message stays invisible after a failure, 0 to 12 h; nil means the rest of
	// the receive's visibility timeout.
	ErrorVisibilityTimeout *time.Duration
	// Backoff replaces ErrorVisibilityTimeout.
	Backoff Backoff
	// RespectRetryAfter gives the app's Retry-After precedence over Backoff and ErrorVisibilityTimeout.
	RespectRetryAfter bool
	// Retention is the maximum age since the first receive; older messages are deleted when received again. 0
	// means 345600 s (4 days).
	Retention time.Duration
	// WaitTime is the wait of a long poll, 1 to 20 s; 0 means 20 s.
	WaitTime time.Duration
	// FIFO keeps message groups in order and deletes without lingering. It must match the queue.
	FIFO bool
	// HeldBytes limits the bodies and attributes of held messages, but one message may exceed it; 0 means no limit.
	HeldBytes int
	// UncountedReturns means that the queue does not count receives of messages returned unread
	// ([queue.VisibilityChange]).
	UncountedReturns bool
	// MaxReceives is the receive count at which the queue dead-letters a message; 0 if unknown or unlimited. After
	// its last receive, a failed message no longer blocks its FIFO group, and goes to the [DeadLetterer], if any.
	MaxReceives int
	// ProbeIdle is how long an app may be idle before it is probed; 0 disables probes.
	ProbeIdle time.Duration
	// DeleteLinger is how long deletes and visibility changes wait to share a call, up to 1 s; 0 means 100 ms,
	// negative values none.
	DeleteLinger time.Duration
	// PrefetchBytes limits the bodies of messages waiting for a slot or postponed; 0 means 16 MiB.
	PrefetchBytes int
	// Limiter may be nil. If workers of a pool share one, the pool decides which queue proceeds.
	Limiter Limiter
	Batch   Batch
	Events  *Events // may be nil
	// Random returns jitter in [0,1) and must be safe for concurrent use; nil means math/rand/v2.
	Random func() float64

	// Pool shares a concurrency limit with other workers; may be nil. Concurrency is then this queue's own limit; 0
	// means the pool's.
	Pool *Pool
	// Weight is this queue's relative share of the pool's slots, up to 1000000; 0 counts as 1. If no worker sets one,
	// the queues are served in strict order of the calls of [New].
	Weight int
	// MaxWait is how long a message may wait before its queue gets a turn out of order, at most every second turn; 0
	// disables such turns.
	MaxWait time.Duration
}

// Batch configures deliveries of several messages. The zero value means one message per delivery.
type Batch struct {
	// Size is the maximum number of messages per delivery, 1 to 10; 0 means 1. Larger sizes require a [BatchDeliverer].
	Size int
	// Window is how long an incomplete batch waits for more messages, 0 to 300 s and at most three eighths of the
	// visibility timeout.
	Window time.Duration
	// Bytes limits the bodies and attributes of a batch, but one message may exceed it; 0 means no limit.
	Bytes int
}

const maxBatchWindow = 300 * time.Second

const maxHidden = queue.MaxVisibility

// Backoff is a delay that doubles Doublings times from Min, then grows by a constant step up to Max. With Min 10 s,
// Max 300 s and 3 Doublings, the delays are 10, 20, 40, 80, 160, 240, 300 and 300 s.
type Backoff struct {
	Min       time.Duration // 0 disables it
	Max       time.Duration // 0 means 12 h
	Doublings int
	// Jitter is the largest fraction of the delay to subtract at random, 0 to 1.
	Jitter float64
}

// Longest returns the longest delay after the given attempt, counted from 1.
func (b Backoff) Longest(attempt int) time.Duration { return b.delay(attempt, 0) }

func (b Backoff) delay(attempt int, random float64) time.Duration {
	n := float64(max(attempt, 1) - 1)
	doubled := min(n, float64(max(b.Doublings, 0)))
	d := min(float64(b.Min)*math.Pow(2, doubled)*(1+n-doubled), float64(cmp.Or(b.Max, maxHidden)))
	return time.Duration(d * (1 - clamp(b.Jitter, 0, 1)*random))
}

func visibilityOf(d time.Duration) time.Duration {
	return clamp(cmp.Or(d, defaultVisibilityTimeout), time.Second, maxHidden)
}

func (o *Options) withDefaults() Options {
	var s Options
	if o != nil {
		s = *o
	}
	if s.Pool == nil {
		s.Concurrency = clamp(cmp.Or(s.Concurrency, defaultConcurrency), 1, maxConcurrency)
	} else {
		s.Concurrency = clamp(cmp.Or(s.Concurrency, s.Pool.concurrency), 1, s.Pool.concurrency)
	}
	s.VisibilityTimeout = visibilityOf(s.VisibilityTimeout)

	s.Batch.Size = clamp(s.Batch.Size, 1, queue.MaxBatch)
	s.Batch.Window = clamp(s.Batch.Window, 0, maxBatchWindow)
	if s.Batch.Size == 1 {
		s.Batch.Window = 0
	}

	s.Weight = clamp(s.Weight, 0, maxWeight)
	s.Retention = cmp.Or(s.Retention, defaultRetention)
	s.WaitTime = clamp(cmp.Or(s.WaitTime, defaultWaitTime), time.Second, defaultWaitTime)
	s.DeleteLinger = clamp(cmp.Or(s.DeleteLinger, defaultDeleteLinger), 0, time.Second)
	s.PrefetchBytes = cmp.Or(s.PrefetchBytes, defaultPrefetchBytes)

	if s.FIFO {
		s.DeleteLinger = 0
	}
	if s.Events == nil {
		s.Events = &Events{}
	}
	if s.Random == nil {
		s.Random = rand.Float64
	}
	return s
}

func clamp[T int | float64 | time.Duration](v, low, high T) T {
	return min(max(v, low), high)
}

// Queue is a worker's queue. Its methods must be safe for concurrent use and return soon after ctx is done.
type Queue interface {
	// Receive waits up to req.Wait for the first message. It must not retry, because each receive counts.
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete deletes messages by up to [queue.MaxBatch] receipt handles. It returns nil if all were deleted,
	// otherwise one error per handle.
	Delete(ctx context.Context, receipts []string) []error
	// Expire deletes messages past their retention, which do not count as processed.
	Expire(ctx context.Context, receipts []string) []error
	// ChangeVisibility applies up to [queue.MaxBatch] changes in order, with errors as from Delete.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
}

// DeadLetterer is a [Queue] that can dead-letter messages before its redrive policy does.
type DeadLetterer interface {
	// TakesDeadLetters reports whether DeadLetter may be called for messages on their last receive or, if last is
	// false, for messages that the app wants dead-lettered. It must be quick, because the worker holds a lock.
	TakesDeadLetters(last bool) bool
	// DeadLetter moves or copies up to [queue.MaxBatch] messages, with errors as from Delete. The worker then deletes
	// the accepted ones.
	DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error
}

// Deliverer delivers messages to the app. Its methods must be safe for concurrent use and return soon after ctx is
// done.
type Deliverer interface {
	// Deliver delivers a message at most once, with its own timeouts, and must not keep or modify m. After
	// [queue.Postponed], which means no attempt, it is called again.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil if the app accepts connections.
	Probe(ctx context.Context) error
}

// BatchDeliverer is a [Deliverer] that can deliver several messages at once.
type BatchDeliverer interface {
	// DeliverBatch delivers up to [Batch].Size messages, like Deliver, and returns their results in order. Missing
	// results count as failed.
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
	Probe(ctx context.Context) error
}

// Limiter decides when the app may receive another message. It must be comparable, safe for concurrent use, and quick,
// because the worker holds a lock.
type Limiter interface {
	// Acquire requests a permit for n messages. Permit 0 is a refusal: wait is then the time until the next request,
	// or 0 to wait for the next release; reason is one word ("rate", "concurrency", "breaker").
	Acquire(now time.Time, n int) (permit uint64, wait time.Duration, reason string)
	// Release is called once per permit, with the delivery's results.
	Release(permit uint64, now time.Time, results ...queue.Result)
	// Room estimates how many messages can start within d. If n is 0, the worker stops receiving; reason is as for
	// Acquire.
	Room(now time.Time, d time.Duration) (n int, reason string)
}
