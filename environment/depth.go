package environment

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"tendril/aws"
	"tendril/queue"
)

// depth is what waits in one queue, as far as the queue tells.
type depth struct {
	// backlog is how many messages wait, those that the worker holds without a
	// free slot among them, those in work not.
	backlog int64
	// oldest is the age of the oldest message while any waits; known unless aged
	// is false.
	oldest time.Duration
	aged   bool
	// dead is how many lie in the dead-letter queue, deaths a count that rises with
	// each that comes; not known unless hasDead.
	dead, deaths int64
	hasDead      bool
	// inFlight and delayed are messages that nobody can receive now; only for a queue on
	// Amazon SQS.
	inFlight, delayed int64
	// maxReceives is how often it hands a message out, and deadName the queue that it
	// goes to then; also only there, zero when there is none.
	maxReceives int
	deadName    string
	// taken is when the queue told.
	taken time.Time
}

// depthOf returns what waits for a line; false when that is not known.
func (e *Environment) depthOf(l *line, now time.Time) (depth, bool) {
	if l.embedded {
		return e.embeddedDepth(l, now)
	}
	d, ok := e.counts.of(l.queue.name, now)
	if !ok {
		return d, false
	}
	st := l.worker.Status()
	d.backlog += int64(st.Prefetched + st.Waiting)
	// SQS tells no ages. What just began is about as old as what comes next; of
	// a queue from which nothing began lately nothing is known.
	d.oldest, d.aged = st.LongestWait, st.LongestWait > 0
	if d.backlog == 0 {
		d.oldest, d.aged = 0, true
	}
	return d, true
}

func (e *Environment) embeddedDepth(l *line, now time.Time) (depth, bool) {
	ledger, err := e.broker.Ledger(l.queue.name)
	if err != nil {
		return depth{}, false // deleted, or closed
	}
	st := l.worker.Status()
	d := depth{backlog: ledger.Visible + int64(st.Prefetched+st.Waiting), aged: true, taken: now}
	if d.backlog > 0 {
		d.oldest, err = e.broker.OldestAge(l.queue.name)
		d.aged = err == nil
	}
	if l.queue.dead != "" {
		dead, err := e.broker.Ledger(l.queue.dead)
		d.dead, d.deaths, d.hasDead = dead.Live, ledger.DeadLettered, err == nil
	}
	return d, true
}

// staleCounts is how old the counts of a queue on Amazon SQS may be.
const staleCounts = 3 * amazonQueuesEvery

// counts are those that queues on Amazon SQS told last. Each question is paid
// for, so that whoever wants to know looks here. The zero value knows nothing.
type counts struct {
	// asked is closed when each queue was asked once; made by watchCounts.
	asked chan struct{}

	mu      sync.Mutex
	byQueue map[string]depth
	// dead are the dead-letter queues found so far; nil for one that may not be
	// read.
	dead map[string]*aws.Queue
}

func (c *counts) of(name string, now time.Time) (depth, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.byQueue[name]
	return d, ok && now.Sub(d.taken) < staleCounts
}

func (c *counts) put(name string, d depth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byQueue == nil {
		c.byQueue = map[string]depth{}
	}
	c.byQueue[name] = d
}

// watchCounts asks the queues on Amazon SQS, each minute, until the stop.
func (e *Environment) watchCounts(context.Context) error {
	e.counts.asked = make(chan struct{})
	asked := sync.OnceFunc(func() { close(e.counts.asked) })
	if !e.s.AnyOnSQS() {
		asked()
		return nil
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(amazonQueuesEvery)
		defer tick.Stop()
		for {
			e.askCounts(run)
			asked()
			select {
			case <-run.Done():
				return
			case <-tick.C:
			}
		}
	}()
	e.steps.push("the counts of the queues", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
	return nil
}

// askCounts asks once. A queue that does not answer keeps what it told before,
// until that is too old.
func (e *Environment) askCounts(ctx context.Context) {
	for _, l := range e.lines {
		q, ok := l.queue.Queue.(*aws.Queue)
		if !ok {
			continue
		}
		d, err := askDepth(ctx, q)
		// Somebody may have changed the policy; unknown, it only helps nobody.
		l.worker.SetMaxReceives(d.maxReceives)
		if err != nil {
			continue
		}
		d.dead, d.hasDead = e.askDead(ctx, l.queue.dead)
		d.deaths = d.dead
		e.counts.put(l.queue.name, d)
	}
}

// askDead counts a dead-letter queue. It may be one that these credentials know
// nothing of: then it is not asked again.
func (e *Environment) askDead(ctx context.Context, name string) (int64, bool) {
	if name == "" {
		return 0, false
	}
	q, found := e.counts.dead[name]
	if !found {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var err error
		if q, err = e.sqs.Queue(limited, name); err != nil && !forGood(err) {
			return 0, false
		}
		e.counts.remember(name, q)
	}
	if q == nil {
		return 0, false
	}
	d, err := askDepth(ctx, q)
	if forGood(err) {
		e.counts.remember(name, nil)
	}
	return d.backlog, err == nil
}

// remember keeps a dead-letter queue. Only the one goroutine that asks does so.
func (c *counts) remember(name string, q *aws.Queue) {
	if c.dead == nil {
		c.dead = map[string]*aws.Queue{}
	}
	c.dead[name] = q
}

// forGood reports whether asking again would not help.
func forGood(err error) bool {
	return errors.Is(err, queue.ErrDenied) || errors.Is(err, queue.ErrNoQueue)
}

// askDepth asks a queue on Amazon SQS, which does not tell ages.
func askDepth(ctx context.Context, q *aws.Queue) (depth, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	attrs, err := q.Attributes(ctx)
	if err != nil {
		return depth{}, err
	}
	d := depth{taken: time.Now(), maxReceives: aws.MaxReceives(attrs), deadName: deadLetterName(attrs)}
	for name, n := range map[string]*int64{
		"ApproximateNumberOfMessages": &d.backlog, "ApproximateNumberOfMessagesNotVisible": &d.inFlight,
		"ApproximateNumberOfMessagesDelayed": &d.delayed,
	} {
		if *n, err = strconv.ParseInt(attrs[name], 10, 64); err != nil {
			return depth{}, err
		}
	}
	return d, nil
}
