package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tendril/queue"
)

// Receive returns up to req.Max visible messages and hides them. It waits up
// to req.Wait for a first one and wakes as soon as one is sent or becomes
// visible. A done ctx ends the wait without taking messages.
//
// Messages that have used up the receives of the queue's redrive policy are
// moved to the dead-letter queue here, on disk before Receive returns. A
// message whose stored content is damaged is logged and left alone, never
// given out.
func (b *Broker) Receive(ctx context.Context, name string, req queue.ReceiveRequest) ([]queue.Message, error) {
	q, err := b.queue(name)
	if err != nil {
		return nil, err
	}
	r, err := q.newReceive(req)
	if err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// receive is one call of Receive.
type receive struct {
	q          *liveQueue
	limit      int
	visibility time.Duration
	deadline   time.Time // end of the long poll
	attempt    string
	timer      *time.Timer
}

// newReceive checks a request and fills in the queue's own values.
func (q *liveQueue) newReceive(req queue.ReceiveRequest) (*receive, error) {
	q.mu.Lock()
	set, err := q.set, q.usable()
	q.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if req.Max < 1 || req.Max > queue.MaxBatch {
		return nil, errParameter("MaxNumberOfMessages", fmt.Sprint(req.Max), "Must be between 1 and 10, if provided.")
	}
	r := &receive{q: q, limit: req.Max, visibility: set.visibility, attempt: req.AttemptID}
	if req.Visibility != nil {
		r.visibility = *req.Visibility
	}
	if r.visibility < 0 || r.visibility > queue.MaxVisibility {
		return nil, errParameter("VisibilityTimeout", inSeconds(r.visibility), "Must be >= 0 and <= 43200, if provided.")
	}
	wait := set.wait
	if req.Wait != nil {
		wait = *req.Wait
	}
	if wait < 0 || wait > maxWait {
		return nil, errParameter("WaitTimeSeconds", inSeconds(wait), "Must be >= 0 and <= 20, if provided.")
	}
	if r.attempt != "" && !set.fifo {
		return nil, errParameter("ReceiveRequestAttemptId", r.attempt, notForThisType)
	}
	if r.attempt != "" && !validID(r.attempt) {
		return nil, errParameter("ReceiveRequestAttemptId", r.attempt, idRule("ReceiveRequestAttemptId"))
	}
	if wait > 0 {
		r.deadline = time.Now().Add(wait)
	}
	return r, nil
}

// run takes messages, waiting for the first.
func (r *receive) run(ctx context.Context) ([]queue.Message, error) {
	defer func() {
		if r.timer != nil {
			r.timer.Stop()
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := r.q.receive(r)
		if err != nil {
			return nil, err
		}
		if c.usedUp != nil {
			if err := r.q.deadLetter(c.usedUp); err != nil && len(c.messages) == 0 {
				return nil, err
			}
		}
		if len(c.messages) > 0 {
			out, err := r.q.deliver(c.messages)
			if len(out) > 0 || err != nil {
				return out, err
			}
			continue
		}
		if c.usedUp != nil {
			continue
		}
		if more, err := r.wait(ctx, c); !more {
			return nil, err
		}
	}
}

// catch is what one look at the queue brought: messages, or what to wait for.
type receiveResult struct {
	messages []receivedMessage
	usedUp   []*message
	filling  *fill
	waiter   *waiter
}

// given is a message as one receive takes it along: the fields of message may
// change as soon as the lock is open.
type receivedMessage struct {
	m       *message
	receipt receipt
	count   int32 // receive count
	arrived int32 // what it was on arrival in this queue
	first   int64
	content *record
}

// wait waits until another look is worth it; more is false when the receive
// is to end empty-handed.
func (r *receive) wait(ctx context.Context, c receiveResult) (more bool, err error) {
	if c.filling != nil {
		select {
		case <-c.filling.done:
			return c.filling.err == nil, c.filling.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	if c.waiter == nil {
		return false, nil
	}
	if r.timer == nil {
		r.timer = time.NewTimer(time.Until(r.deadline))
	}
	select {
	case <-c.waiter.woken:
		return true, nil
	case <-r.timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.q.mu.Lock()
	r.q.waiters.leave(c.waiter)
	r.q.mu.Unlock()
	return false, err
}

// catch takes messages, or says what to wait for.
func (q *liveQueue) receive(r *receive) (receiveResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(); err != nil {
		return receiveResult{}, err
	}
	if again := q.repeat(r); again != nil {
		return receiveResult{messages: again}, nil
	}
	var c receiveResult
	if q.window.complete() {
		var err error
		if c, err = q.take(r); err != nil {
			return c, err
		}
	}
	q.fillIfLow()
	if len(c.messages) > 0 {
		q.noteAttempt(r, c.messages)
		q.arm()
		return c, nil
	}
	if c.usedUp != nil {
		return c, nil
	}
	c.filling = q.window.filling
	if c.filling == nil && !r.deadline.IsZero() {
		c.waiter = q.waiters.join()
	}
	return c, nil
}

// ready says why nothing can be received now. The lock is held.
func (q *liveQueue) ready() error {
	if q.b.closing.Load() {
		return queue.ErrClosed
	}
	if err := q.usable(); err != nil {
		return err
	}
	return q.b.failed()
}

// take takes messages from the arrangement and starts their flight. The lock
// is held.
func (q *liveQueue) take(r *receive) (c receiveResult, err error) {
	most := q.b.limits.inFlight
	limit := min(r.limit, most-q.inFlight.len())
	if limit <= 0 {
		if q.set.fifo {
			return c, nil
		}
		return c, queue.Errorf(queue.CodeOverLimit,
			"Too many messages in flight: %d. Delete some, or wait until their visibility timeout ends.", most)
	}
	now, wall := q.b.clock.now(), stamp()
	taken := q.order.take(takeRequest{
		limit: limit, now: now, oldOnly: len(q.held) >= most,
		judge: func(m *message) decision {
			v := q.judge(m, wall)
			if v == deadLetterIt {
				m.leaving = true
				q.held[m.key] = m
				c.usedUp = append(c.usedUp, m)
			}
			return v
		},
	})
	if len(taken) > 0 {
		c.messages = make([]receivedMessage, 0, len(taken))
	}
	for _, m := range taken {
		c.messages = append(c.messages, q.start(m, r.visibility, now, wall))
	}
	q.account()
	return c, nil
}

// judge decides what becomes of a visible message. The lock is held.
func (q *liveQueue) judge(m *message, wall int64) decision {
	if m.sent < q.cutoff || m.sent+q.set.retention.Milliseconds() <= wall {
		q.drop(m)
		q.sweepNow()
		return skipIt
	}
	if p := q.set.redrive; p != nil && m.received()-m.arrived >= p.max && q.b.exists(p.target) {
		q.drop(m)
		return deadLetterIt
	}
	return deliverIt
}

// start begins the flight of a message. The lock is held.
func (q *liveQueue) start(m *message, visibility time.Duration, now, wall int64) receivedMessage {
	m.count++
	m.uncounted = false
	m.epoch = q.b.epoch
	if m.first == 0 {
		m.first = wall
	}
	m.receivedAt, m.until = now, now+int64(visibility)
	q.held[m.key] = m
	g := receivedMessage{m: m, receipt: receipt{m.key, uint32(m.count), m.epoch}, count: m.received(), arrived: m.arrived,
		first: m.first, content: m.content}
	q.drop(m)
	if visibility > 0 {
		m.inFlight = true
		q.inFlight.push(m)
	} else {
		q.order.requeue(m)
		q.waiters.wake(1)
	}
	q.store(m)
	return g
}

// line is the line of receives that wait for a message, first come first
// woken. The queue's lock guards it.
type waiters struct{ waiting []*waiter }

// waiter is one waiting receive.
type waiter struct{ woken chan struct{} }

// join puts a receive at the end of the line.
func (l *waiters) join() *waiter {
	w := &waiter{woken: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w
}

// leave takes a receive out that no longer waits. One that was woken but goes
// without looking passes it on to the next.
func (l *waiters) leave(w *waiter) {
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.wake(1)
}

// wake wakes up to n receives: one for each message is enough.
func (l *waiters) wake(n int) {
	n = min(n, len(l.waiting))
	for _, w := range l.waiting[:n] {
		close(w.woken)
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

func (l *waiters) wakeAll() { l.wake(len(l.waiting)) }
