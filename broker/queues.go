package broker

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// The waits that SQS imposes.
const (
	deletedWait = 60 * time.Second
	purgeWait   = 60 * time.Second
)

// change is the request of an administrative act. run makes it in the
// transaction; after publishes it when it is on disk.
type change struct {
	run   func(t *tx) error
	after func()
	done  chan error
}

func (c *change) durable() bool     { return true }
func (c *change) grows() bool       { return false }
func (c *change) apply(t *tx) error { return c.run(t) }
func (c *change) onCommit(err error) {
	if err == nil {
		c.after()
	}
	c.done <- err
}

func (b *Broker) change(run func(t *tx) error, after func()) error {
	c := &change{run, after, make(chan error, 1)}
	return b.writer.do(c, c.done)
}

// beginAct waits until no other act on queues as a whole is under way.
func (b *Broker) lockQueues(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case b.admin <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Broker) unlockQueues() { <-b.admin }

// CreateQueue creates a queue. attrs are SQS attribute names and values
// (nil for defaults). It succeeds without effect when the queue exists and
// every given attribute equals the current one; otherwise QueueNameExists.
func (b *Broker) CreateQueue(ctx context.Context, name string, attrs, tags map[string]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fifo, err := checkName(name, attrs)
	if err != nil {
		return err
	}
	set, err := parseSettings(fifo, attrs)
	if err != nil {
		return err
	}
	if err := b.lockQueues(ctx); err != nil {
		return err
	}
	defer b.unlockQueues()
	if old, _ := b.queue(name); old != nil {
		return old.compare(attrs)
	}
	if err := b.checkDeletedRecently(name); err != nil {
		return err
	}
	if err := b.checkRedrive(name, &set, attrs["RedrivePolicy"]); err != nil {
		return err
	}
	q := newLiveQueue(b, 0, name, set)
	q.attributes, q.tags = mergeAttributes(nil, attrs), maps.Clone(tags)
	q.created = stamp()
	q.modified = q.created
	q.disk.next = 1
	return b.change(func(t *tx) error { return b.insertQueue(t, q) }, func() { b.addQueue(q) })
}

// insertQueue writes a new queue under the next free number.
func (b *Broker) insertQueue(t *tx, q *liveQueue) error {
	last, err := t.c.integer(`SELECT value FROM meta WHERE name = 'queues'`)
	if err != nil {
		return err
	}
	q.number = last + 1
	if _, err := t.c.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('queues', ?)`, q.number); err != nil {
		return err
	}
	if _, err := t.c.exec(`DELETE FROM departed WHERE name = ?`, q.name); err != nil {
		return err
	}
	_, err = t.c.exec(`INSERT INTO queues (number, name, attributes, tags, created, modified, purged_at) VALUES (?,?,?,?,?,?,0)`,
		q.number, q.name, toJSON(q.attributes), toJSON(q.tags), q.created, q.modified)
	t.counters(q)
	return err
}

func (b *Broker) addQueue(q *liveQueue) {
	q.counters = q.disk
	q.window.cursor, q.window.tail = q.low(), q.low()
	b.mu.Lock()
	b.queues[q.name] = q
	delete(b.deletedNames, q.name)
	b.mu.Unlock()
}

func toJSON(m map[string]string) string {
	if m == nil {
		return "{}"
	}
	text, _ := json.Marshal(m) // a map of strings always encodes
	return string(text)
}

// checkName refuses a queue name and says whether it is a FIFO queue's.
func checkName(name string, attrs map[string]string) (fifo bool, err error) {
	base, hasSuffix := strings.CutSuffix(name, ".fifo")
	wanted := attrs["FifoQueue"] == "true"
	valid := base != "" && len(name) <= 80
	for i := range len(base) {
		valid = valid && nameByte(base[i])
	}
	switch {
	case wanted && (!valid || !hasSuffix):
		return false, queue.Errorf(queue.CodeInvalidParameterValue,
			"The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo "+
				"suffix and be 1 to 80 in length.")
	case !wanted && (!valid || hasSuffix):
		return false, queue.Errorf(queue.CodeInvalidParameterValue,
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return wanted, nil
}

// compare answers a CreateQueue for a queue that exists.
func (q *liveQueue) compare(wanted map[string]string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if name := differing(effectiveAttributes(q.set.fifo, q.attributes), wanted); name != "" {
		return queue.Errorf(queue.CodeQueueNameExists,
			"A queue already exists with the same name and a different value for attribute %s", name)
	}
	return nil
}

func (b *Broker) checkDeletedRecently(name string) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	at, ok := b.deletedNames[name]
	if ok && !b.opts.NoWaits && stamp()-at < deletedWait.Milliseconds() {
		return queue.Errorf(queue.CodeQueueDeletedRecently,
			"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	return nil
}

// DeleteQueue deletes a queue and all its messages; these count as purged.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error {
	if err := b.lockQueues(ctx); err != nil {
		return err
	}
	defer b.unlockQueues()
	q, err := b.queue(name)
	if err != nil {
		return err
	}
	now := stamp()
	return b.change(func(t *tx) error { return b.dropQueue(t, q, now) }, func() { b.removeQueue(q, now) })
}

// dropQueue removes a queue from the store; its rows go later, bit by bit.
func (b *Broker) dropQueue(t *tx, q *liveQueue, now int64) error {
	k := *t.counters(q)
	k.purged += k.live()
	t.counters(b.deletedQueues).add(&k)
	t.dropped[q] = true
	if err := t.leaveToGarbage(makeKey(q.number, 0), q.high()); err != nil {
		return err
	}
	for _, text := range []string{`DELETE FROM queues WHERE number = ?`, `DELETE FROM counters WHERE queue = ?`} {
		if _, err := t.c.exec(text, q.number); err != nil {
			return err
		}
	}
	_, err := t.c.exec(`INSERT OR REPLACE INTO departed (name, at) VALUES (?, ?)`, q.name, now)
	return err
}

// discard leaves the messages with low < key <= high to be removed later.
func (t *tx) leaveToGarbage(low, high int64) error {
	_, err := t.c.exec(`INSERT OR REPLACE INTO garbage (low, high) VALUES (?, ?)`, low, high)
	return err
}

func (b *Broker) removeQueue(q *liveQueue, now int64) {
	b.countersMu.Lock()
	defer b.countersMu.Unlock()
	q.mu.Lock()
	q.removed, q.deleted = true, true
	q.counters.purged += q.counters.live()
	k := q.counters
	q.clear()
	q.stop()
	q.mu.Unlock()
	b.mu.Lock()
	delete(b.queues, q.name)
	b.deletedNames[q.name] = now
	b.deletedQueues.counters.add(&k)
	b.mu.Unlock()
}

// PurgeQueue removes all messages of a queue, also delayed ones and those in
// flight, and returns how many there were. It takes the same time for any
// number of them.
func (b *Broker) PurgeQueue(ctx context.Context, name string) (int, error) {
	if err := b.lockQueues(ctx); err != nil {
		return 0, err
	}
	defer b.unlockQueues()
	q, err := b.queue(name)
	if err != nil {
		return 0, err
	}
	now := stamp()
	q.mu.Lock()
	last := q.purgedAt
	q.mu.Unlock()
	if !b.opts.NoWaits && now-last < purgeWait.Milliseconds() {
		return 0, queue.Errorf(queue.CodePurgeQueueInProgress,
			"Only one PurgeQueue operation on %s is allowed every 60 seconds.", name)
	}
	n := 0
	err = b.change(
		func(t *tx) error { return q.purge(t, now) },
		func() { n = q.purged(now) },
	)
	return n, err
}

// purge raises the floor of the queue over all its messages.
func (q *liveQueue) purge(t *tx, now int64) error {
	k := t.counters(q)
	low := makeKey(q.number, k.floor)
	k.purged += k.live()
	k.floor = k.next - 1
	if _, err := t.c.exec(`UPDATE queues SET purged_at = ? WHERE number = ?`, now, q.number); err != nil {
		return err
	}
	return t.leaveToGarbage(low, makeKey(q.number, k.floor))
}

func (q *liveQueue) purged(now int64) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = int(q.counters.live())
	q.counters.purged += int64(n)
	q.counters.floor = q.counters.next - 1
	q.purgedAt = now
	q.clear()
	return n
}

// clear forgets all messages. The lock is held.
func (q *liveQueue) clear() {
	for _, m := range q.held {
		m.gone, m.inFlight, m.holds, m.queued, m.index = true, false, false, false, -1
	}
	clear(q.held)
	q.inFlight = deadlines{}
	q.delays.clear()
	q.unstored, q.attempts = nil, nil
	q.order.clear(q.drop)
	q.account()
	w := &q.window
	w.generation++
	w.filling = nil
	w.cursor, w.dueAt, w.dueKey, w.dueRead = q.low(), 0, 0, w.dueSeen
	w.tail = w.cursor
	w.stale = false
}

// ListQueues returns the names that begin with prefix, sorted.
func (b *Broker) ListQueues(prefix string) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := []string{}
	for name := range b.queues {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// DeadLetterSources returns the names of the queues whose redrive policy
// points at name, sorted.
func (b *Broker) DeadLetterSources(name string) ([]string, error) {
	if _, err := b.queue(name); err != nil {
		return nil, err
	}
	target, names := b.opts.arn(name), []string{}
	for _, q := range b.all() {
		q.mu.Lock()
		if q.set.redrive != nil && q.set.redrive.target == target {
			names = append(names, q.name)
		}
		q.mu.Unlock()
	}
	slices.Sort(names)
	return names, nil
}

// all returns the queues.
func (b *Broker) all() []*liveQueue {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Collect(maps.Values(b.queues))
}

// queue returns a queue by name.
func (b *Broker) queue(name string) (*liveQueue, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if q := b.queues[name]; q != nil {
		return q, nil
	}
	return nil, errNoQueue()
}
