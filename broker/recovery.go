package broker

import (
	"fmt"
	"time"

	"tendril/queue"
)

// fail handles a failed commit. What the disk did with it is unknown, and a
// second fsync of the same file may report success for lost data: so nothing
// is accepted until the file was closed, opened again, and found to hold all
// that was ever acknowledged.
func (w *writer) fail(group []request, cause error) {
	err := &queue.Error{
		Code: queue.CodeStorageFailed,
		Message: "The disk refused a write; the queues accept nothing until their file was opened again and verified. " +
			"Look at the log and the disk.",
		Err: cause,
	}
	w.b.log.Error("Writing the queues' file failed; opening it again", "dir", w.b.dir, "err", cause)
	w.mu.Lock()
	w.failure = err
	group = append(group, w.pending...)
	w.pending = nil
	w.mu.Unlock()
	finishAll(group, err)
	w.reopen()
}

// reopen tries until the store is open and verified, or the broker closes.
func (w *writer) reopen() {
	_ = w.b.store.Load().close() // it has failed already
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := w.b.reopen()
		if err == nil {
			w.tx = newTx(w.b.store.Load().write)
			w.mu.Lock()
			w.failure = nil
			w.mu.Unlock()
			w.b.log.Info("The queues' file is open again and verified", "dir", w.b.dir)
			w.b.resume()
			return
		}
		w.b.log.Error("The queues' file cannot be used yet; trying again", "dir", w.b.dir, "in", wait, "err", err)
		if w.pause(wait) {
			return
		}
	}
}

// pause waits, and reports whether the broker closes meanwhile.
func (w *writer) pause(wait time.Duration) (closed bool) {
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return false
		case <-w.wake:
			w.mu.Lock()
			closed := w.closed
			w.mu.Unlock()
			if closed {
				return true
			}
		}
	}
}

// reopen opens the store, checks that nothing that was acknowledged is missing,
// writes to it, and brings memory in line with it.
func (b *Broker) reopen() error {
	s, err := openStore(b.dir, b.opts.vfs)
	if err != nil {
		return err
	}
	if err = b.probe(s); err == nil {
		err = b.reconcile(s)
	}
	if err != nil {
		_ = s.close() // the first error says more
		return err
	}
	b.store.Store(s)
	return nil
}

// probe writes, and waits for the disk.
func (b *Broker) probe(s *store) error {
	if err := s.synchronous(true); err != nil {
		return err
	}
	_, err := s.write.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('verified', ?)`, stamp())
	return err
}

// reconcile brings memory in line with the store: of the failed transaction
// all or nothing may be there.
func (b *Broker) reconcile(s *store) error {
	counters, err := readCounters(s.write)
	if err != nil {
		return err
	}
	found, err := b.readQueues(s.write, counters)
	if err != nil {
		return err
	}
	b.countersMu.Lock()
	defer b.countersMu.Unlock()
	b.deletedQueues.counters, b.deletedQueues.disk = counters[0], counters[0]
	there := map[int64]*liveQueue{}
	for _, q := range found {
		there[q.number] = q
	}
	for _, q := range b.all() {
		if now := there[q.number]; now == nil {
			b.dropMissing(q)
		} else if err := q.reconcile(s.write, now); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		delete(there, q.number)
	}
	for _, q := range there {
		if err := q.load(s.write); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		b.mu.Lock()
		b.queues[q.name] = q
		b.mu.Unlock()
	}
	return nil
}

// lose forgets a queue that the store does not have: the failed transaction
// deleted it after all.
func (b *Broker) dropMissing(q *liveQueue) {
	q.mu.Lock()
	q.deleted, q.removed = true, true
	q.clear()
	q.stop()
	q.mu.Unlock()
	b.mu.Lock()
	delete(b.queues, q.name)
	b.mu.Unlock()
}

// reconcile takes over what the store says of one queue. Messages in flight
// stay so if they are there.
func (q *liveQueue) reconcile(c *conn, now *liveQueue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set, q.attributes, q.tags, q.modified, q.purgedAt = now.set, now.attributes, now.tags, now.modified, now.purgedAt
	k := now.counters
	if k.sent < q.counters.sent || k.done < q.counters.done || k.movedIn < q.counters.movedIn {
		q.b.log.Error("Acknowledged messages are missing from the queues' file", "queue", q.name,
			"sent", q.counters.sent-k.sent, "done", q.counters.done-k.done, "moved_in", q.counters.movedIn-k.movedIn)
	}
	purged := k.floor > q.counters.floor
	q.counters, q.disk, q.sweptTo = k, k, 0
	if purged {
		q.clear()
	}
	if err := q.forgetLost(c); err != nil {
		return err
	}
	q.window.tail = max(q.low(), makeKey(q.number, k.next-1))
	q.resetWindow()
	return q.loadDelays(c)
}

// forgetLost drops the messages from memory that the store does not have: the
// failed transaction took them away after all.
func (q *liveQueue) forgetLost(c *conn) error {
	for key, m := range q.held {
		n, err := c.integer(`SELECT count(*) FROM messages WHERE id = ?`, key)
		if err != nil {
			return err
		}
		if n == 0 {
			q.remove(m)
		}
	}
	return nil
}

// resume starts the queues again after a recovery.
func (b *Broker) resume() {
	for _, q := range b.all() {
		q.mu.Lock()
		q.sweeping = false
		q.arm()
		q.wakeAfterRemoval(queue.MaxBatch)
		q.sweepNow()
		q.mu.Unlock()
	}
}
