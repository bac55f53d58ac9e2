package broker

import "tendril/queue"

// deadLetter moves messages that have used up their receives to the queue's
// dead-letter queue. On an error they stay, visible.
func (q *liveQueue) deadLetter(list []*message) error {
	to := q.deadLetterQueue()
	t := &transfer{b: q.b, from: q, dead: true, done: make(chan error, 1)}
	for _, m := range list {
		t.items = append(t.items, &transferItem{m: m, to: to})
	}
	if to == nil {
		t.settle(queue.ErrNoQueue)
		<-t.done
		return nil
	}
	if err := q.b.writer.do(t, t.done); err != nil {
		return err
	}
	var ids []string
	for _, it := range t.items {
		if it.moved {
			ids = append(ids, q.b.seal.messageID(it.record.origin))
		}
	}
	if f := q.b.events.DeadLettered; f != nil && len(ids) > 0 {
		f(q.name, to.name, ids)
	}
	return nil
}

// deadLetterQueue returns where dead letters go; nil when the queue has no
// policy or its target is gone.
func (q *liveQueue) deadLetterQueue() *liveQueue {
	q.mu.Lock()
	policy := q.set.redrive
	q.mu.Unlock()
	if policy == nil {
		return nil
	}
	return q.b.byARN(policy.target)
}

// checkRedrive refuses a redrive policy whose target does not exist, is of the
// other type, or does not permit this queue.
func (b *Broker) checkRedrive(name string, set *settings, value string) error {
	if set.redrive == nil {
		return nil
	}
	to := b.byARN(set.redrive.target)
	if to == nil {
		return errPolicy("RedrivePolicy", value, "Dead letter target does not exist.")
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.set.fifo != set.fifo {
		return errPolicy("RedrivePolicy", value, "Dead-letter queue must be same type of queue as the source..")
	}
	if !to.set.allow.permits(b.opts.arn(name)) {
		return errPolicy("RedrivePolicy", value, "The dead-letter queue's redrive allow policy does not permit this queue.")
	}
	return nil
}

// byARN returns a queue by its ARN; nil when there is none.
func (b *Broker) byARN(arn string) *liveQueue {
	name, ok := b.opts.nameOf(arn)
	if !ok {
		return nil
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.queues[name]
}

// exists reports whether a queue of that ARN exists.
func (b *Broker) exists(arn string) bool { return b.byARN(arn) != nil }
