package broker

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// Receive returns up to req.Max visible messages and hides them. It waits up to req.Wait for the first one.
//
// It first moves messages that were received the maximum number of times to the dead-letter queue, durably. It
// logs and skips damaged messages.
func (q *Queue) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	r, err := q.newReceive(req)
	if err != nil {
		return nil, err
	}

	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.pollWithinRoom(ctx); err != nil {
			return nil, err
		}
		if len(r.result.messages) > 0 || r.result.usedUp != nil {
			if out, err := r.deliverResult(); len(out) > 0 || err != nil {
				return out, err
			}
			if r.req.Room != nil {
				r.req.Room.Keep(0)
			}
			continue
		}
		if again, err := r.wait(ctx); !again {
			return nil, err
		}
	}
}

// Received reports whether messages were requested from the queue since the broker was opened.
func (b *Broker) Received(name string) bool {
	q, err := b.live(name)
	if err != nil {
		return false
	}
	return q.received.Load()
}

// deliverResult returns a dead-lettering error only if there are no messages to deliver; the next receive tries
// again.
func (r *receive) deliverResult() ([]queue.Message, error) {
	if r.result.usedUp != nil {
		if err := r.q.deadLetter(r.result.usedUp); err != nil && len(r.result.messages) == 0 {
			return nil, err
		}
	}
	return r.deliver(r.result.messages)
}

type receive struct {
	q          *liveQueue
	req        queue.ReceiveRequest
	visibility time.Duration
	deadline   time.Time

	result receiveResult
}

func (q *Queue) newReceive(req queue.ReceiveRequest) (*receive, error) {
	live, err := q.b.live(q.name)
	if err != nil {
		return nil, err
	}

	live.received.Store(true)
	set := live.settings()
	if req.Max < 1 || req.Max > queue.MaxBatch {
		return nil, errParameter("MaxNumberOfMessages", fmt.Sprint(req.Max), "Must be between 1 and 10, if provided.")
	}

	r := &receive{q: live, req: req, visibility: set.visibility}
	if req.Visibility != nil {
		r.visibility = *req.Visibility
	}
	wait := set.wait
	if req.Wait != nil {
		wait = *req.Wait
	}

	switch {
	case r.visibility < 0 || r.visibility > queue.MaxVisibility:
		return nil, errParameter("VisibilityTimeout", secondsText(r.visibility),
			"Must be >= 0 and <= 43200, if provided.")
	case wait < 0 || wait > maxWait:
		return nil, errParameter("WaitTimeSeconds", secondsText(wait), "Must be >= 0 and <= 20, if provided.")
	case req.AttemptID != "" && !set.fifo:
		return nil, errParameter("ReceiveRequestAttemptId", req.AttemptID, notForThisType)
	case req.AttemptID != "" && !validID(req.AttemptID):
		return nil, errParameter("ReceiveRequestAttemptId", req.AttemptID, "ReceiveRequestAttemptId"+idRule)
	}

	if wait > 0 {
		r.deadline = time.Now().Add(wait)
	}
	return r, nil
}

type receiveResult struct {
	messages []receivedMessage
	repeated bool       // the messages come from an earlier receive with the same attempt ID
	taken    int64      // bytes of attributes and bodies, excluding repeated receives
	usedUp   []*message // to be dead-lettered
	filling  *fill
	woken    chan struct{}
}

// receivedMessage is a copy, because the message may change once the lock is released.
type receivedMessage struct {
	m       *message
	receipt receipt
	count   int32
	arrived int32
	first   int64
	content *record
}

func (r *receive) wait(ctx context.Context) (again bool, err error) {
	if f := r.result.filling; f != nil {
		select {
		case <-f.done:
			return f.err == nil, f.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}

	woken := r.result.woken
	if woken == nil {
		return false, nil
	}
	timer := time.NewTimer(time.Until(r.deadline))
	defer timer.Stop()
	select {
	case <-woken:
		return true, nil
	case <-timer.C:
	case <-r.req.Stop:
	case <-ctx.Done():
		err = ctx.Err()
	}

	r.q.mu.Lock()
	r.q.waiters.leave(woken)
	r.q.mu.Unlock()
	return false, err
}

// Contents are read after messages are taken, so pollWithinRoom reserves memory first.
func (r *receive) pollWithinRoom(ctx context.Context) error {
	if r.req.Room == nil {
		return r.poll()
	}
	if err := r.req.Room.Acquire(ctx); err != nil {
		return err
	}
	err := r.poll()
	bytes := int64(0)
	for _, g := range r.result.messages {
		bytes += int64(g.m.size)
	}
	r.req.Room.Keep(bytes)
	return err
}

func (r *receive) poll() error {
	q := r.q
	q.lockAndExpire()
	defer q.mu.Unlock()
	if err := q.checkOpen(); err != nil {
		return err
	}
	r.result = receiveResult{messages: r.repeat()}
	if r.result.messages != nil {
		r.result.repeated = true
		return nil
	}

	if !q.index.window.stale {
		if err := r.take(); err != nil {
			return err
		}
	}

	q.fillIfLow()
	switch {
	case len(r.result.messages) > 0:
		q.repeats.remember(r.req.AttemptID, r.result.messages, q.now())
		q.setAlarm()
	case r.result.usedUp == nil:
		r.result.filling = q.index.window.filling
		if r.result.filling == nil && !r.deadline.IsZero() {
			r.result.woken = q.waiters.join()
		}
	}
	return nil
}

// The caller must hold the lock.
func (r *receive) take() error {
	q := r.q
	most := q.broker.memory.limits.inFlight
	limit := min(r.req.Max, most-q.index.inFlight.Len())
	if limit <= 0 {
		if q.index.fifo {
			return nil
		}
		return queue.Errorf(queue.CodeOverLimit,
			"Too many messages in flight: %d. Delete some, or wait until their visibility timeout expires.", most)
	}

	now := q.now()
	wall := stamp()
	request := takeRequest{
		limit: limit, now: now, preferReceived: len(q.index.held) >= most, complete: !q.index.window.behind(),
		decide: func(m *message) decision { return r.decide(m, wall) },
	}
	if r.req.Room != nil {
		request.full = func() bool { return r.result.taken >= queue.ReceiveBytes }
	}

	taken := q.index.order.take(request)
	if len(taken) > 0 {
		r.result.messages = make([]receivedMessage, 0, len(taken))
	}

	for _, m := range taken {
		r.result.messages = append(r.result.messages, r.markReceived(m, now, wall))
	}
	q.index.countFresh()
	return nil
}

func (r *receive) decide(m *message, wall int64) decision {
	q := r.q
	set := q.settings()
	if m.sent < q.index.cutoff || m.sent+set.retention.Milliseconds() <= wall {
		q.index.dropContent(m)
		q.sweepNow()
		return skipIt
	}

	p := set.redrive
	isUsedUp := p != nil && m.received()-m.arrived >= p.max
	if isUsedUp && q.broker.byARN(p.target) != nil {
		q.index.dropContent(m)
		m.leaving = true
		q.index.held[m.key] = m
		r.result.usedUp = append(r.result.usedUp, m)
		return deadLetterIt
	}

	r.result.taken += int64(m.size)
	return deliverIt
}

// The caller must hold the lock.
func (r *receive) markReceived(m *message, now, wall int64) receivedMessage {
	q := r.q
	m.count++
	m.uncounted = false
	m.epoch = q.broker.epoch
	if m.first == 0 {
		m.first = wall
	}

	m.receivedAt = now
	m.until = now + int64(r.visibility)
	q.index.held[m.key] = m
	m.unposted = r.req.CountAtPost
	if !m.unposted {
		q.broker.marks.put(m)
	}

	g := receivedMessage{m: m, receipt: receipt{m.key, uint32(m.count), m.epoch}, count: m.received(),
		arrived: m.arrived, first: m.first, content: m.content}
	q.index.dropContent(m)
	if r.visibility > 0 {
		q.index.startFlight(m, false)
	} else {
		q.index.order.requeue(m)
		q.waiters.wake(1)
	}

	q.storeReceive(m)
	return g
}
