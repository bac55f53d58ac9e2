package depth

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/queue"
)

const (
	// interval is the time between two calls for a queue on Amazon SQS, and maxAge how
	// old the result may become.
	interval = time.Minute
	maxAge   = 3 * interval
	// callTimeout limits one call.
	callTimeout = 10 * time.Second
)

// Reading is what one queue contains, as far as the queue reports it.
type Reading struct {
	// Visible is the number of messages that can be received, and Backlog that number
	// with those that the worker holds without a free slot. InFlight and Delayed are the
	// messages that nobody can receive now.
	Visible, Backlog, InFlight, Delayed int64
	// Oldest is the age of the oldest waiting message, 0 when none waits; it is known
	// only if HasAge is true.
	Oldest time.Duration
	HasAge bool
	// DeadLetters is the number of messages in the dead-letter queue, and DeadLettered a
	// counter that rises with each that is added. Both are known only if HasDeadLetters is
	// true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
	// MaxReceives is how often the queue delivers a message before it moves it to
	// DeadLetterQueue; 0 and "" without a redrive policy. Both are known only for a queue on
	// Amazon SQS.
	MaxReceives     int
	DeadLetterQueue string
	// Taken is when the queue reported this.
	Taken time.Time
}

// Queue is one queue to count, and the worker that receives from it.
type Queue struct {
	// Name is the queue's name, and DeadLetterQueue that of its dead-letter queue; "" for
	// none.
	Name, DeadLetterQueue string
	// OnSQS is the queue on Amazon SQS; nil for an embedded queue.
	OnSQS *aws.Queue
	// Held returns how many messages wait in the worker for a free slot, and how long the
	// messages waited that began in the last minute; 0 when none began.
	Held func() (n int, longestWait time.Duration)
	// SetMaxReceives is called with each redrive policy that was read. It is required
	// for a queue on Amazon SQS.
	SetMaxReceives func(int)
}

// Counter counts queues. All methods but Run are safe for concurrent use.
type Counter struct {
	queues map[string]Queue
	broker *broker.Broker
	find   func(ctx context.Context, name string) (*aws.Queue, error)
	asked  chan struct{}

	mu       sync.Mutex
	readings map[string]Reading // of the queues on Amazon SQS

	// deadLetterQueues are those found so far, nil for one that may not be read. Only Run
	// uses them.
	deadLetterQueues map[string]*aws.Queue
}

// New returns a counter. b holds the embedded queues and may be nil without any; find
// returns a queue on Amazon SQS by its name.
func New(queues []Queue, b *broker.Broker, find func(context.Context, string) (*aws.Queue, error)) *Counter {
	c := &Counter{
		queues: map[string]Queue{}, broker: b, find: find, asked: make(chan struct{}),
		readings: map[string]Reading{}, deadLetterQueues: map[string]*aws.Queue{},
	}
	for _, q := range queues {
		c.queues[q.Name] = q
	}
	return c
}

// Read returns what waits in a queue; false when that is not known.
func (c *Counter) Read(name string, now time.Time) (r Reading, known bool) {
	q := c.queues[name]
	if q.OnSQS != nil {
		r, known = c.OnSQS(name, now)
	} else {
		r, known = c.Embedded(name)
	}
	if !known {
		return Reading{}, false
	}
	held, longestWait := q.Held()
	r.Backlog = r.Visible + int64(held)
	switch {
	case r.Backlog == 0:
		r.Oldest, r.HasAge = 0, true
	case q.OnSQS != nil:
		// What has just begun is about as old as what comes next.
		r.Oldest, r.HasAge = longestWait, longestWait > 0
	}
	return r, true
}

// Embedded returns what an embedded queue reports now; false when it does not exist, or is
// closed.
func (c *Counter) Embedded(name string) (Reading, bool) {
	ledger, err := c.broker.Ledger(name)
	if err != nil {
		return Reading{}, false
	}
	r := Reading{Visible: ledger.Visible, InFlight: ledger.InFlight, Delayed: ledger.Delayed, Taken: time.Now()}
	r.Oldest, err = c.broker.OldestAge(name)
	r.HasAge = err == nil
	if dead := c.queues[name].DeadLetterQueue; dead != "" {
		deadLedger, err := c.broker.Ledger(dead)
		r.DeadLetters, r.DeadLettered, r.HasDeadLetters = deadLedger.Live, ledger.DeadLettered, err == nil
	}
	return r, true
}

// OnSQS returns what a queue on Amazon SQS reported last; false when that is not known, or
// too old.
func (c *Counter) OnSQS(name string, now time.Time) (Reading, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.readings[name]
	return r, ok && now.Sub(r.Taken) < maxAge
}

// DeadLetterQueue returns the name of the dead-letter queue that a queue on Amazon SQS reported last; "" when it has
// none, and when that is not known.
func (c *Counter) DeadLetterQueue(name string, now time.Time) string {
	r, known := c.OnSQS(name, now)
	if !known {
		return ""
	}
	return r.DeadLetterQueue
}

// Asked is closed when each queue on Amazon SQS was asked once.
func (c *Counter) Asked() <-chan struct{} { return c.asked }

// Run asks the queues on Amazon SQS each minute until ctx ends. It must be called once.
func (c *Counter) Run(ctx context.Context) {
	asked := sync.OnceFunc(func() { close(c.asked) })
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		for _, q := range c.queues {
			if q.OnSQS != nil {
				c.ask(ctx, q)
			}
		}
		asked()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// ask asks one queue. If it does not answer, its last reading is kept.
func (c *Counter) ask(ctx context.Context, q Queue) {
	r, err := read(ctx, q.OnSQS)
	q.SetMaxReceives(r.MaxReceives) // 0 after an error: the policy may have changed
	if err != nil {
		return
	}
	r.DeadLetters, r.HasDeadLetters = c.deadLetters(ctx, q.DeadLetterQueue)
	r.DeadLettered = r.DeadLetters
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[q.Name] = r
}

// deadLetters counts a dead-letter queue; false when it may not be read.
func (c *Counter) deadLetters(ctx context.Context, name string) (int64, bool) {
	if name == "" {
		return 0, false
	}
	q, found := c.deadLetterQueues[name]
	if !found {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		var err error
		if q, err = c.find(limited, name); err != nil && !isFinal(err) {
			return 0, false
		}
		c.deadLetterQueues[name] = q
	}
	if q == nil {
		return 0, false
	}
	r, err := read(ctx, q)
	if isFinal(err) {
		c.deadLetterQueues[name] = nil
	}
	return r.Visible, err == nil
}

// isFinal reports whether asking again would not help.
func isFinal(err error) bool {
	return errors.Is(err, queue.ErrDenied) || errors.Is(err, queue.ErrNoQueue)
}

// read asks a queue on Amazon SQS.
func read(ctx context.Context, q *aws.Queue) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	attrs, err := q.Attributes(ctx)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Taken: time.Now()}
	r.DeadLetterQueue, r.MaxReceives = queue.ParseRedrivePolicy(attrs["RedrivePolicy"])
	for name, n := range map[string]*int64{
		"ApproximateNumberOfMessages": &r.Visible, "ApproximateNumberOfMessagesNotVisible": &r.InFlight,
		"ApproximateNumberOfMessagesDelayed": &r.Delayed,
	} {
		if *n, err = strconv.ParseInt(attrs[name], 10, 64); err != nil {
			return Reading{}, err
		}
	}
	return r, nil
}
