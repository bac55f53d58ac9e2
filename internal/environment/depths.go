package environment

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
	// countInterval is the time between two calls for a queue on Amazon SQS, and maxCountAge how
	// old the result may become.
	countInterval = time.Minute
	maxCountAge   = 3 * countInterval
	// countTimeout limits one call.
	countTimeout = 10 * time.Second
)

// depth is what one queue contains, as far as the queue reports it.
type depth struct {
	// visible is the number of messages that can be received, and backlog that number
	// with those that the worker holds without a free slot. inFlight and delayed are the
	// messages that nobody can receive now.
	visible, backlog, inFlight, delayed int64
	// oldest is the age of the oldest waiting message, 0 when none waits; it is known
	// only if hasAge is true.
	oldest time.Duration
	hasAge bool
	// deadLetters is the number of messages in the dead-letter queue, and deadLettered a
	// counter that rises with each that is added. Both are known only if hasDeadLetters is
	// true.
	deadLetters, deadLettered int64
	hasDeadLetters            bool
	// maxReceives is how often the queue delivers a message before it moves it to
	// deadLetterQueue; 0 and "" without a redrive policy. Both are known only for a queue on
	// Amazon SQS.
	maxReceives     int
	deadLetterQueue string
	// taken is when the queue reported this.
	taken time.Time
}

// countedQueue is one queue to count, and the worker that receives from it.
type countedQueue struct {
	// name is the queue's name, and deadLetterQueue that of its dead-letter queue; "" for
	// none.
	name, deadLetterQueue string
	// onSQS is the queue on Amazon SQS; nil for an embedded queue.
	onSQS *aws.Queue
	// held returns how many messages wait in the worker for a free slot, and how long the
	// messages waited that began in the last minute; 0 when none began.
	held func() (n int, longestWait time.Duration)
	// setMaxReceives is called with each redrive policy that was read. It is required
	// for a queue on Amazon SQS.
	setMaxReceives func(int)
}

// depthCounter counts queues. All methods but run are safe for concurrent use.
type depthCounter struct {
	queues map[string]countedQueue
	broker *broker.Broker
	find   func(ctx context.Context, name string) (*aws.Queue, error)
	asked  chan struct{}

	mu       sync.Mutex
	readings map[string]depth // of the queues on Amazon SQS

	// deadLetterQueues are those found so far, nil for one that may not be read. Only run
	// uses them.
	deadLetterQueues map[string]*aws.Queue
}

// newDepthCounter returns a counter. b holds the embedded queues and may be nil without any; find
// returns a queue on Amazon SQS by its name.
func newDepthCounter(queues []countedQueue, b *broker.Broker, find func(context.Context, string) (*aws.Queue, error)) *depthCounter {
	c := &depthCounter{
		queues: map[string]countedQueue{}, broker: b, find: find, asked: make(chan struct{}),
		readings: map[string]depth{}, deadLetterQueues: map[string]*aws.Queue{},
	}
	for _, q := range queues {
		c.queues[q.name] = q
	}
	return c
}

// read returns what waits in a queue; false when that is not known.
func (c *depthCounter) read(name string, now time.Time) (r depth, known bool) {
	q := c.queues[name]
	if q.onSQS != nil {
		r, known = c.onSQS(name, now)
	} else {
		r, known = c.embedded(name)
	}
	if !known {
		return depth{}, false
	}

	held, longestWait := q.held()
	r.backlog = r.visible + int64(held)
	switch {
	case r.backlog == 0:
		r.oldest, r.hasAge = 0, true
	case q.onSQS != nil:
		// What has just begun is about as old as what comes next.
		r.oldest, r.hasAge = longestWait, longestWait > 0
	}
	return r, true
}

// embedded returns what an embedded queue reports now; false when it does not exist, or is
// closed.
func (c *depthCounter) embedded(name string) (depth, bool) {
	ledger, err := c.broker.Ledger(name)
	if err != nil {
		return depth{}, false
	}
	r := depth{visible: ledger.Visible, inFlight: ledger.InFlight, delayed: ledger.Delayed, taken: time.Now()}
	r.oldest, err = c.broker.OldestAge(name)
	r.hasAge = err == nil
	if dead := c.queues[name].deadLetterQueue; dead != "" {
		deadLedger, err := c.broker.Ledger(dead)
		r.deadLetters = deadLedger.Live
		r.deadLettered = ledger.DeadLettered
		r.hasDeadLetters = err == nil
	}
	return r, true
}

// onSQS returns what a queue on Amazon SQS reported last; false when that is not known, or
// too old.
func (c *depthCounter) onSQS(name string, now time.Time) (depth, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.readings[name]
	return r, ok && now.Sub(r.taken) < maxCountAge
}

// deadLetterQueue returns the name of the dead-letter queue that a queue on Amazon SQS reported last; "" when it has
// none, and when that is not known.
func (c *depthCounter) deadLetterQueue(name string, now time.Time) string {
	r, known := c.onSQS(name, now)
	if !known {
		return ""
	}
	return r.deadLetterQueue
}

// askedOnce is closed when each queue on Amazon SQS was asked once.
func (c *depthCounter) askedOnce() <-chan struct{} { return c.asked }

// run asks the queues on Amazon SQS each minute until ctx ends. It must be called once.
func (c *depthCounter) run(ctx context.Context) {
	asked := sync.OnceFunc(func() { close(c.asked) })
	ticker := time.NewTicker(countInterval)
	defer ticker.Stop()
	for {
		for _, q := range c.queues {
			if q.onSQS != nil {
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
func (c *depthCounter) ask(ctx context.Context, q countedQueue) {
	r, err := askDepth(ctx, q.onSQS)
	q.setMaxReceives(r.maxReceives) // 0 after an error: the policy may have changed
	if err != nil {
		return
	}
	r.deadLetters, r.hasDeadLetters = c.deadLetters(ctx, q.deadLetterQueue)
	r.deadLettered = r.deadLetters
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[q.name] = r
}

// deadLetters counts a dead-letter queue; false when it may not be read.
func (c *depthCounter) deadLetters(ctx context.Context, name string) (int64, bool) {
	if name == "" {
		return 0, false
	}
	q, found := c.deadLetterQueues[name]
	if !found {
		limited, cancel := context.WithTimeout(ctx, countTimeout)
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

	r, err := askDepth(ctx, q)
	if isFinal(err) {
		c.deadLetterQueues[name] = nil
	}
	return r.visible, err == nil
}

// isFinal reports whether asking again would not help.
func isFinal(err error) bool {
	return errors.Is(err, queue.ErrDenied) || errors.Is(err, queue.ErrNoQueue)
}

// askDepth asks a queue on Amazon SQS.
func askDepth(ctx context.Context, q *aws.Queue) (depth, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	attrs, err := q.Attributes(ctx)
	if err != nil {
		return depth{}, err
	}
	r := depth{taken: time.Now()}
	r.deadLetterQueue, r.maxReceives = queue.ParseRedrivePolicy(attrs["RedrivePolicy"])
	for name, n := range map[string]*int64{
		"ApproximateNumberOfMessages": &r.visible, "ApproximateNumberOfMessagesNotVisible": &r.inFlight,
		"ApproximateNumberOfMessagesDelayed": &r.delayed,
	} {
		if *n, err = strconv.ParseInt(attrs[name], 10, 64); err != nil {
			return depth{}, err
		}
	}
	return r, nil
}
