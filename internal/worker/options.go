package worker

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// Defaults of [Options]; those of an Elastic Beanstalk worker where it has
// such an option.
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

// Options configure a [Worker]. The zero value, and a nil *Options, are valid. Values outside
// their range are brought to the nearest bound.
type Options struct {
	Name string // shown in [Status]; usually the queue's
	// Concurrency is the most deliveries in work at once, 1 to 1000; 0 means 50.
	Concurrency int
	// VisibilityTimeout hides each received message, and is what an extension
	// adds, 1 s to 12 h; 0 means 300 s, a negative value 1 s.
	VisibilityTimeout time.Duration
	// ErrorVisibilityTimeout is how long a failed message stays hidden, counted
	// from the failure; 0 to 12 h. Nil means the rest of its visibility timeout,
	// counted from its receive, whether it was extended or not.
	ErrorVisibilityTimeout *time.Duration
	// Backoff replaces ErrorVisibilityTimeout by a delay that grows with the
	// attempts; the zero value is off.
	Backoff Backoff
	// RespectRetryAfter lets the app's Retry-After choose the delay, before
	// Backoff and ErrorVisibilityTimeout; off by default.
	RespectRetryAfter bool
	// Retention is counted from a message's first receive: an older one that
	// was received before is deleted unposted. 0 means 345600 s (4 days).
	Retention time.Duration
	// WaitTime is the length of a long poll, 1 to 20 s; 0 means 20 s.
	WaitTime time.Duration
	// FIFO keeps the messages of one group strictly one after the other, and
	// deletes without lingering. Set it exactly when the queue is FIFO.
	FIFO bool
	// HeldBytes bounds the bodies and attributes of all messages that are held, those in work too; 0 means no bound. One
	// message is held whatever its size.
	HeldBytes int
	// UncountedReturns says that the queue does not count the receive of a message that is given
	// back unread ([queue.VisibilityChange]). Set it exactly when that is so.
	UncountedReturns bool
	// MaxReceives is how often the queue hands a message out before it goes to the
	// dead-letter queue; 0 when that is not known, and without one. It lets a FIFO group go on
	// at once behind a message that failed for the last time, and says which messages a
	// [DeadLetterer] gets: see [Worker.SetMaxReceives].
	MaxReceives int
	// ProbeIdle is after how long without an answer an app that has nothing in work
	// is probed, so that its end is noticed before the next message; 0 means never.
	ProbeIdle time.Duration
	// DeleteLinger is the longest time that a delete or a change of visibility
	// waits for others to share a call with; 0 means 100 ms, negative none.
	DeleteLinger time.Duration
	// PrefetchBytes bounds the bodies of messages that wait for a slot, those
	// that are postponed included; 0 means 16 MiB.
	PrefetchBytes int
	// Limiter protects the app; nil for none. Workers of a pool that have the same one
	// divide its room by the order of their queues.
	Limiter Limiter
	Batch   Batch   // several messages in one delivery
	Events  *Events // listeners; nil for none
	// Random returns numbers in [0,1), which spread the waits after failures. It is called by several goroutines; nil
	// means that of package math/rand/v2.
	Random func() float64

	// Pool shares one limit of concurrency with other workers; nil for a worker of its own.
	// Concurrency is then the most that this queue may have of it; 0 means all.
	Pool *Pool
	// Weight is this queue's share of the pool's free slots; 0 counts as 1. Where no worker
	// of the pool has one, the queues are in strict order, that of the calls of [New].
	Weight int
	// MaxWait gives the next turn to a message of this queue that was sent
	// longer ago, whatever the order, but at most every other turn of the pool;
	// 0 means never.
	MaxWait time.Duration
}

// Batch says how many messages travel in one delivery. The zero value is one.
type Batch struct {
	// Size is the most messages of one delivery, 1 to 10; 0 means 1. It takes
	// effect when the worker's [Deliverer] is a [BatchDeliverer] as well.
	Size int
	// Window is how long a delivery that has fewer messages waits for more,
	// counted from the first of them, 0 to 300 s and at most three eighths of
	// the visibility timeout; 0 means not at all.
	Window time.Duration
	// Bytes bounds the bodies and attributes of one delivery, as they are in
	// the queue; a single message may be larger. 0 means no bound.
	Bytes int
}

// maxBatchWindow is the longest [Batch].Window.
const maxBatchWindow = 300 * time.Second

// maxHidden is the longest a message may stay hidden, counted from its receive.
const maxHidden = queue.MaxVisibility

// Backoff is a delay that grows with the attempts of one message: it starts
// at Min, doubles Doublings times, then grows by the last step, up to Max.
// With Min 10 s, Max 300 s and 3 doublings: 10, 20, 40, 80, 160, 240, 300, 300 s.
type Backoff struct {
	Min time.Duration // after the first attempt; 0 turns the back-off off
	Max time.Duration // the longest delay; 0 means 12 h
	// Doublings is how often the delay doubles before it grows linearly; 0
	// means that it grows by Min each time.
	Doublings int
	// Jitter, 0 to 1, is the share of the delay that chance may take off; 0
	// means none, 1 anything down to no delay at all.
	Jitter float64
}

// Longest returns the longest wait after the given attempt, 1 for the first.
func (b Backoff) Longest(attempt int) time.Duration { return b.delay(attempt, 0) }

// delay returns the wait after the given attempt (1 is the first), for a
// random number in [0,1).
func (b Backoff) delay(attempt int, random float64) time.Duration {
	n := float64(max(attempt, 1) - 1)
	doubled := min(n, float64(max(b.Doublings, 0)))
	d := min(float64(b.Min)*math.Pow(2, doubled)*(1+n-doubled), float64(cmp.Or(b.Max, maxHidden)))
	return time.Duration(d * (1 - clamp(b.Jitter, 0, 1)*random))
}

// settled returns a copy with every default filled in and every value within
// its range.
func (o *Options) settled() Options {
	var s Options
	if o != nil {
		s = *o
	}
	most, usual := maxConcurrency, defaultConcurrency
	if s.Pool != nil {
		most, usual = s.Pool.concurrency, s.Pool.concurrency
	}
	s.Concurrency = clamp(cmp.Or(s.Concurrency, usual), 1, most)
	s.VisibilityTimeout = clamp(cmp.Or(s.VisibilityTimeout, defaultVisibilityTimeout), time.Second, maxHidden)

	s.Batch.Size = clamp(s.Batch.Size, 1, queue.MaxBatch)
	s.Batch.Window = clamp(s.Batch.Window, 0, min(maxBatchWindow, s.VisibilityTimeout*3/8))
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

// clamp brings v into low..high.
func clamp[T int | float64 | time.Duration](v, low, high T) T {
	return min(max(v, low), high)
}

// Queue is the worker's view of a queue. All methods must be safe for
// concurrent use and return soon after their context is done.
type Queue interface {
	// Receive returns up to req.Max messages, after waiting up to req.Wait for
	// a first one. It must not repeat a receive whose answer was lost: each
	// receive counts against its messages.
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete deletes the messages of up to [queue.MaxBatch] receipts. It
	// returns nil when all were, or one error for each (nil for those deleted).
	Delete(ctx context.Context, receipts []string) []error
	// Expire is Delete of messages past their retention. A queue that keeps an
	// account does not count them as done.
	Expire(ctx context.Context, receipts []string) []error
	// ChangeVisibility applies up to [queue.MaxBatch] changes, in order; its
	// result is that of Delete.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
}

// DeadLetterer is a [Queue] that can dead-letter messages before its redrive policy does it.
type DeadLetterer interface {
	// TakesDeadLetters reports whether DeadLetter may be called now: for messages that failed at their last receive, or
	// for those that an instruction sends there. It must be quick: it is called under a lock.
	TakesDeadLetters(last bool) bool
	// DeadLetter moves up to [queue.MaxBatch] messages that failed to the dead-letter queue, or sends copies of them
	// there, with why they failed. Its result is that of Delete. The worker deletes those that were accepted, so they may
	// stay in their own queue.
	DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error
}

// Deliverer delivers messages to the app. Both methods must be safe for
// concurrent use and return soon after their context is done.
type Deliverer interface {
	// Deliver delivers one message, at most once, and says how that ended. It
	// enforces its own time limits; the message stays hidden until it returns.
	// m must not be kept or changed. With [queue.Postponed] it vouches that it
	// tried nothing: then it is called again for the same receive.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// BatchDeliverer is a [Deliverer] that can also deliver several messages at
// once. It is used so when [Batch] asks for more than one message.
type BatchDeliverer interface {
	// DeliverBatch delivers up to [Batch].Size messages in one delivery, at
	// most once, and says how that ended for each, in their order. A message
	// without a result is failed. What is said of Deliver holds here too.
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// Limiter decides whether the app may be given one more message. Its methods
// must be safe for concurrent use and quick: they are called under a lock. Workers
// of a pool may have the same one; it must be comparable, as a pointer is.
type Limiter interface {
	// Acquire takes the right to begin one delivery of n messages at now. The permit is 0
	// for a refusal, which took nothing; wait says when to ask again (0: after the next
	// release) and reason why in a word ("rate", "concurrency", "breaker").
	Acquire(now time.Time, n int) (permit uint64, wait time.Duration, reason string)
	// Release gives a permit back, once, when its delivery has ended with these results.
	Release(permit uint64, now time.Time, results ...queue.Result)
	// Room returns how many deliveries may begin within the next d, as far as
	// it knows: receiving asks for no more. 0 stops receiving; reason is then why,
	// as in Acquire.
	Room(now time.Time, d time.Duration) (n int, reason string)
}
