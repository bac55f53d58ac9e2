package broker

import (
	"fmt"

	"tendril/queue"
)

func (b *Broker) restore() error {
	if err := b.disk.checkBeforeClose(); err != nil {
		return err // opening would create an empty store
	}
	return b.openStore(b.resume)
}

func (b *Broker) resume(s *store) error {
	// A damaged file may accept the probe and reject the next write.
	if isCorrupt(b.writer.failed()) {
		if err := s.write.check("quick_check"); err != nil {
			return err
		}
	}
	if err := s.probe(); err != nil {
		return err
	}
	return b.reconcile(s.write)
}

func (s *store) probe() error {
	if err := s.synchronous(true); err != nil {
		return err
	}
	_, err := s.write.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('verified', ?)`, stamp())
	return err
}

func (b *Broker) reconcile(c *conn) error {
	found, deleted, err := b.readQueues(c)
	if err != nil {
		return err
	}

	b.queues.moving.Lock()
	defer b.queues.moving.Unlock()
	b.queues.deleted.index.counters = deleted
	b.queues.deleted.disk = deleted
	stored := map[int64]*liveQueue{}
	for _, q := range found {
		stored[q.index.number] = q
	}

	for _, q := range b.queues.all() {
		if s := stored[q.index.number]; s == nil {
			q.delete()
			b.queues.remove(q)
		} else if err := q.reconcile(c, s); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		delete(stored, q.index.number)
	}

	for _, q := range stored {
		if err := q.load(c); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		b.queues.add(q)
	}
	return b.loadMoves(c)
}

// reconcile updates the queue's memory from stored, its state in the database, because the failed transaction may
// have been committed.
func (q *liveQueue) reconcile(c *conn, stored *liveQueue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current.Store(stored.description())
	before := q.index.counters
	now := stored.index.counters
	if now.Sent < before.Sent || now.Done < before.Done || now.MovedIn < before.MovedIn {
		q.broker.log.Error("acknowledged messages missing from the queue database", "queue", q.name,
			"sent", before.Sent-now.Sent, "done", before.Done-now.Done, "moved_in", before.MovedIn-now.MovedIn)
	}

	q.index.counters = now
	q.disk = now
	q.retention.sweptTo = 0
	if now.floor > before.floor {
		q.clear()
	}

	for key, m := range q.index.held {
		found, err := c.exists(key)
		if err != nil {
			return err
		}
		if !found {
			q.index.remove(m)
		}
	}

	q.index.window.tail = q.index.last()
	q.index.resetWindow()
	return q.loadDelays(c)
}

func (b *Broker) resumeQueues() {
	for _, q := range b.queues.all() {
		q.mu.Lock()
		q.retention.sweeping = false
		q.setAlarm()
		q.wakeAfterRemoval(queue.MaxBatch)
		if q.index.counters.live() > 0 {
			q.sweepNow()
		}
		q.mu.Unlock()
	}
}
