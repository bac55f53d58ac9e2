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
	countInterval = time.Minute
	maxCountAge   = 3 * countInterval
	countTimeout  = 10 * time.Second
)

type depth struct {
	// backlog is visible plus the messages that wait in the worker for a slot; only read sets it.
	visible, backlog, inFlight, delayed int64
	// oldest is the age of the oldest waiting message, valid with hasAge.
	oldest time.Duration
	hasAge bool
	// deadLettered counts the messages dead-lettered so far; on Amazon SQS, it equals deadLetters. Both are valid with
	// hasDeadLetters.
	deadLetters, deadLettered int64
	hasDeadLetters            bool
	// The next four fields come from the redrive policy of a queue on Amazon SQS.
	maxReceives                    int
	deadLetterQueue, deadLetterURL string
	deadLetterQueueMissing         bool
	taken                          time.Time
}

type countedQueue struct {
	name, deadLetterQueue string
	remote                *aws.Queue
	// held returns the number of messages that wait in the worker for a slot, and the longest wait among deliveries
	// begun in the last minute.
	held           func() (n int, longestWait time.Duration)
	setMaxReceives func(int)
}

type depthCounter struct {
	queues map[string]countedQueue
	broker *broker.Broker
	asked  chan struct{}

	mu       sync.Mutex
	readings map[string]depth
}

func newDepthCounter(queues []countedQueue, b *broker.Broker) *depthCounter {
	c := &depthCounter{
		queues: map[string]countedQueue{}, broker: b, asked: make(chan struct{}), readings: map[string]depth{},
	}
	for _, q := range queues {
		c.queues[q.name] = q
	}
	return c
}

func (c *depthCounter) read(name string, now time.Time) (r depth, known bool) {
	q := c.queues[name]
	if q.remote != nil {
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
	case q.remote != nil:
		// A message whose delivery has just begun is about as old as the oldest waiting one.
		r.oldest, r.hasAge = longestWait, longestWait > 0
	}
	return r, true
}

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

func (c *depthCounter) onSQS(name string, now time.Time) (depth, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.readings[name]
	return r, ok && now.Sub(r.taken) < maxCountAge
}

func (c *depthCounter) redrivePolicy(name string, now time.Time) redrivePolicy {
	c.mu.Lock()
	r, read := c.readings[name]
	c.mu.Unlock()
	switch {
	case !read:
		return redrivePolicy{deadLetterQueue: c.queues[name].deadLetterQueue}
	case now.Sub(r.taken) >= maxCountAge:
		return redrivePolicy{}
	}
	return redrivePolicy{deadLetterQueue: r.deadLetterQueue, maxReceives: r.maxReceives, known: true}
}

// askedOnce returns a channel that is closed once every queue on Amazon SQS has been queried.
func (c *depthCounter) askedOnce() <-chan struct{} { return c.asked }

func (c *depthCounter) run(ctx context.Context) {
	asked := sync.OnceFunc(func() { close(c.asked) })
	ticker := time.Tick(countInterval)
	for {
		for _, q := range c.queues {
			if q.remote != nil {
				c.updateFromSQS(ctx, q)
			}
		}
		asked()
		select {
		case <-ctx.Done():
			return
		case <-ticker:
		}
	}
}

func (c *depthCounter) updateFromSQS(ctx context.Context, q countedQueue) {
	r, err := askDepth(ctx, q.remote)
	q.setMaxReceives(r.maxReceives) // 0 after an error: the policy may have changed
	if err != nil {
		return
	}
	if r.deadLetterQueue != "" {
		dead := q.remote.Sibling(r.deadLetterQueue)
		letters, err := askDepth(ctx, dead)
		r.deadLetters = letters.visible
		r.deadLettered = letters.visible
		r.hasDeadLetters = err == nil
		r.deadLetterURL, r.deadLetterQueueMissing = dead.URL(), errors.Is(err, queue.ErrNoQueue)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[q.name] = r
}

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
