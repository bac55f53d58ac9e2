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
func (w *writer) fail(group []pendingRequest, cause error) {
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
		err := w.restore()
		if err == nil {
			w.tx = newTx(w.b.store.Load().write)
			w.mu.Lock()
			w.failure = nil
			w.mu.Unlock()
			w.b.log.Info("The queues' file is open again and verified", "dir", w.b.dir)
			w.b.resumeQueues()
			return
		}
		w.b.log.Error("The queues' file cannot be used yet; trying again", "dir", w.b.dir, "in", wait, "err", err)
		if w.pause(wait) {
			return
		}
	}
}

// pause waits, and reports whether the broker is closing.
func (w *writer) pause(wait time.Duration) bool {
	select {
	case <-time.After(wait):
	case <-w.wake: // nothing is submitted now: it is closing, or the token of before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// restore opens the store, checks that nothing that was acknowledged is missing,
// writes to it, and brings memory in line with it.
func (b *core) restore() error {
	s, err := openStore(b.dir, b.opts.vfs)
	if err != nil {
		return err
	}
	if err = s.probe(); err == nil {
		err = b.reconcile(s.write)
	}
	if err != nil {
		_ = s.close() // the first error says more
		return err
	}
	b.store.Store(s)
	return nil
}

// probe writes, and waits for the disk.
func (s *store) probe() error {
	if err := s.synchronous(true); err != nil {
		return err
	}
	_, err := s.write.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('verified', ?)`, stamp())
	return err
}

// reconcile brings memory in line with the store: of the failed transaction
// all or nothing may be there.
func (b *core) reconcile(c *conn) error {
	found, deleted, err := b.readQueues(c)
	if err != nil {
		return err
	}
	b.queues.moving.Lock()
	defer b.queues.moving.Unlock()
	b.queues.deleted.counters, b.queues.deleted.disk = deleted, deleted
	there := map[int64]*liveQueue{}
	for _, q := range found {
		there[q.number] = q
	}
	for _, q := range b.queues.all() {
		if now := there[q.number]; now == nil {
			// The failed transaction deleted it after all.
			q.delete()
			b.queues.remove(q)
		} else if err := q.reconcile(c, now); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		delete(there, q.number)
	}
	for _, q := range there {
		if err := q.load(c); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		b.queues.add(q)
	}
	return nil
}

// reconcile takes over what the store says of one queue. Messages in flight
// stay so if they are there.
func (q *liveQueue) reconcile(c *conn, now *liveQueue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.description = now.description
	k := now.counters
	if k.sent < q.counters.sent || k.done < q.counters.done || k.movedIn < q.counters.movedIn {
		q.log.Error("Acknowledged messages are missing from the queues' file", "queue", q.name,
			"sent", q.counters.sent-k.sent, "done", q.counters.done-k.done, "moved_in", q.counters.movedIn-k.movedIn)
	}
	purged := k.floor > q.counters.floor
	q.counters, q.disk, q.retention.sweptTo = k, k, 0
	if purged {
		q.clear()
	}
	for key, m := range q.held {
		found, err := c.exists(key)
		if err != nil {
			return err
		}
		if !found { // the failed transaction took it away after all
			q.index.remove(m)
		}
	}
	q.window.tail = q.last()
	q.resetWindow()
	return q.loadDelays(c)
}

// resumeQueues starts the queues, for the first time or after a recovery.
func (b *core) resumeQueues() {
	for _, q := range b.queues.all() {
		q.mu.Lock()
		q.retention.sweeping = false
		q.arm()
		q.wakeAfterRemoval(queue.MaxBatch)
		if q.counters.live() > 0 {
			q.sweepNow() // and find out when the next is due
		}
		q.mu.Unlock()
	}
}
