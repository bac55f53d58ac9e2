package broker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/queue"
)

// SQS requires these waits.
const (
	deletedWait = 60 * time.Second
	purgeWait   = 60 * time.Second
)

type catalog struct {
	admin chan struct{} // held by the running administrative call

	// moving makes moves and deletions of queues atomic for TotalLedger.
	moving  sync.Mutex
	deleted *liveQueue // only its counters are used

	mu        sync.RWMutex // taken after a queue's lock, never before
	byName    map[string]*liveQueue
	deletedAt map[string]int64 // stamps
}

func newCatalog() catalog {
	return catalog{admin: make(chan struct{}, 1), deleted: &liveQueue{}, byName: map[string]*liveQueue{},
		deletedAt: map[string]int64{}}
}

func (b *Broker) live(name string) (*liveQueue, error) {
	b.queues.mu.RLock()
	defer b.queues.mu.RUnlock()
	if q := b.queues.byName[name]; q != nil {
		return q, nil
	}
	return nil, errNoQueue()
}

func (c *catalog) all() []*liveQueue {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.byName))
}

func (c *catalog) add(q *liveQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[q.name] = q
	delete(c.deletedAt, q.name)
}

func (c *catalog) remove(q *liveQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, q.name)
}

func (c *catalog) recordDeleted(name string, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletedAt[name] = at
}

func (c *catalog) deletedRecently(name string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	at, deleted := c.deletedAt[name]
	return deleted && stamp()-at < deletedWait.Milliseconds()
}

// beginAdmin waits for other administrative calls. The caller must call endAdmin.
func (b *Broker) beginAdmin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if lost := b.disk.checkFiles(); lost != nil {
		return errDataDirLost(lost)
	}
	select {
	case b.queues.admin <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *catalog) endAdmin() { <-c.admin }

func (b *Broker) administer(ctx context.Context, name string, f func(q *liveQueue) error) error {
	if err := b.beginAdmin(ctx); err != nil {
		return err
	}
	defer b.queues.endAdmin()
	q, err := b.live(name)
	if err != nil {
		return err
	}
	return f(q)
}

func (b *Broker) byARN(arn string) *liveQueue {
	name, ok := strings.CutPrefix(arn, b.opts.arn(""))
	if !ok {
		return nil
	}
	q, _ := b.live(name)
	return q
}

// Queue returns the named queue, which need not exist.
func (b *Broker) Queue(name string) *Queue { return &Queue{b, name} }

// Queue is a queue of a broker.
type Queue struct {
	b    *Broker
	name string
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// n is the number of entries to check; 0 skips the check.
func (q *Queue) live(ctx context.Context, n int) (*liveQueue, error) {
	live, err := q.b.live(q.name)
	if err == nil && n > 0 {
		err = queue.CheckEntries(n, "entry")
	}
	if err == nil {
		err = ctx.Err()
	}
	return live, err
}

// CreateQueue creates a queue. attrs are SQS attribute names and values. If the queue exists with other values,
// the error is QueueNameExists; within 60 seconds after its deletion, QueueDeletedRecently; if there are 10,000
// queues, OverLimit.
func (b *Broker) CreateQueue(ctx context.Context, name string, attrs, tags map[string]string) error {
	return b.createQueue(ctx, name, attrs, tags, !b.opts.NoWaits)
}

// EnsureQueue creates a queue unless one with this name exists, whatever its attributes. It can reuse a deleted
// queue's name at once.
func (b *Broker) EnsureQueue(ctx context.Context, name string, attrs map[string]string) error {
	err := b.createQueue(ctx, name, attrs, nil, false)
	if errors.Is(err, &queue.Error{Code: queue.CodeQueueNameExists}) {
		return nil
	}
	return err
}

func (b *Broker) createQueue(ctx context.Context, name string, attrs, tags map[string]string, waits bool) error {
	attrs = canonicalAttributes(attrs)
	fifo, err := checkName(name, attrs)
	if err != nil {
		return err
	}
	set, err := parseSettings(fifo, attrs)
	if err != nil {
		return err
	}
	if err := checkTags(name, tags, tags); err != nil {
		return err
	}
	if err := b.beginAdmin(ctx); err != nil {
		return err
	}
	defer b.queues.endAdmin()
	if old, _ := b.live(name); old != nil {
		return old.checkSameAttributes(attrs)
	}

	if waits && b.queues.deletedRecently(name) {
		return queue.Errorf(queue.CodeQueueDeletedRecently,
			"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	if err := b.checkRedrive(name, &set, attrs["RedrivePolicy"]); err != nil {
		return err
	}
	if len(b.queues.all()) >= b.memory.limits.queues {
		return queue.Errorf(queue.CodeOverLimit, "The limit of %d queues is reached: delete one first.",
			b.memory.limits.queues)
	}
	return b.addQueue(name, description{set: set, attributes: mergeAttributes(nil, attrs), tags: maps.Clone(tags),
		modified: stamp()})
}

func (b *Broker) addQueue(name string, d description) error {
	q := newLiveQueue(b, 0, name, d)
	q.created = d.modified
	q.disk.next = 1
	return b.writer.change(func(t *tx) { t.insertQueue(q) }, func() {
		q.index.counters = q.disk
		q.index.window.cursor = q.index.low()
		q.index.window.tail = q.index.low()
		b.queues.add(q)
	})
}

func (t *tx) insertQueue(q *liveQueue) {
	q.index.number = t.integer(`SELECT value FROM meta WHERE name = 'queues'`) + 1
	t.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('queues', ?)`, q.index.number)
	t.exec(`DELETE FROM departed WHERE name = ?`, q.name)
	d := q.description()
	t.exec(`INSERT INTO queues (number, name, attributes, tags, created, modified, purged_at)
		VALUES (?,?,?,?,?,?,0)`, q.index.number, q.name, toJSON(d.attributes), toJSON(d.tags), q.created, d.modified)
	t.counters(q)
}

func toJSON(m map[string]string) string {
	if m == nil {
		return "{}"
	}
	text, _ := json.Marshal(m)
	return string(text)
}

func checkName(name string, attrs map[string]string) (fifo bool, err error) {
	base, hasSuffix := strings.CutSuffix(name, ".fifo")
	wanted := attrs["FifoQueue"] == "true"
	valid := base != "" && len(name) <= 80 && !strings.ContainsFunc(base, notInName)
	switch {
	case wanted && (!valid || !hasSuffix):
		return false, errInvalid(
			"The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with " +
				".fifo suffix and be 1 to 80 in length.")
	case !wanted && (!valid || hasSuffix):
		return false, errInvalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return wanted, nil
}

func (q *liveQueue) checkSameAttributes(wanted map[string]string) error {
	d := q.description()
	if name := firstDifference(effectiveAttributes(d.set.fifo, d.attributes), wanted); name != "" {
		return queue.Errorf(queue.CodeQueueNameExists,
			"A queue already exists with the same name and a different value for attribute %s", name)
	}
	return nil
}

// DeleteQueue deletes a queue and all its messages, which count as purged.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error {
	err := b.administer(ctx, name, func(q *liveQueue) error {
		now := stamp()
		return b.writer.change(func(t *tx) { t.deleteQueue(q, b.queues.deleted, now) }, func() {
			b.queues.moving.Lock()
			defer b.queues.moving.Unlock()
			last := q.delete()
			last.Purged += last.live()
			b.queues.deleted.index.counters.add(&last.Ledger)
			b.queues.remove(q)
			b.queues.recordDeleted(name, now)
			b.moves.forget(q.index.number)
		})
	})
	if err == nil {
		b.report(ctx, []Removal{{Queue: name, Cause: CauseDeleted}})
	}
	return err
}

// deleteQueue keeps the messages, which are removed later in small steps.
func (t *tx) deleteQueue(q, deleted *liveQueue, now int64) {
	t.flushRows()
	k := *t.counters(q)
	k.Purged += k.live()
	t.counters(deleted).add(&k.Ledger)
	t.dropped[q] = true
	t.exec(toGarbage, makeKey(q.index.number, 0), q.index.high())
	t.exec(`DELETE FROM queues WHERE number = ?`, q.index.number)
	t.exec(`DELETE FROM counters WHERE queue = ?`, q.index.number)
	t.exec(`DELETE FROM moves WHERE source = ?`, q.index.number)
	t.exec(`DELETE FROM reasons WHERE queue = ?`, q.index.number)
	t.exec(`INSERT OR REPLACE INTO departed (name, at) VALUES (?, ?)`, q.name, now)
}

// toGarbage marks the keys low < key <= high as garbage.
const toGarbage = `INSERT OR REPLACE INTO garbage (low, high) VALUES (?, ?)`

// PurgeQueue deletes all messages of a queue, including delayed and in-flight ones, and returns their number.
// Within 60 seconds after another purge, the error is PurgeQueueInProgress.
func (b *Broker) PurgeQueue(ctx context.Context, name string) (n int, err error) {
	err = b.administer(ctx, name, func(q *liveQueue) error {
		now := stamp()
		last := q.description().purgedAt
		if !b.opts.NoWaits && now-last < purgeWait.Milliseconds() {
			return queue.Errorf(queue.CodePurgeQueueInProgress,
				"Only one PurgeQueue operation on %s is allowed every 60 seconds.", name)
		}
		return b.writer.change(func(t *tx) { t.purge(q, now) }, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			live := q.index.counters.live()
			q.index.counters.Purged += live
			q.index.counters.floor = q.index.counters.next - 1
			q.describe(func(d *description) { d.purgedAt = now })
			n = int(live)
			q.clear()
		})
	})
	if err == nil {
		b.report(ctx, []Removal{{Queue: name, Cause: CauseDeleted}})
	}
	return n, err
}

// SentTo returns the queue that a message was sent to, or "" if that queue was deleted. known is false if this
// broker did not issue the ID.
func (b *Broker) SentTo(id string) (name string, known bool) {
	origin, known := b.seal.origin(id)
	if !known {
		return "", false
	}
	for _, q := range b.queues.all() {
		if q.index.number == origin>>seqBits {
			return q.name, true
		}
	}
	return "", true
}

func (t *tx) purge(q *liveQueue, now int64) {
	t.flushRows() // so that earlier deletes do not count as purged
	k := t.counters(q)
	low := makeKey(q.index.number, k.floor)
	k.Purged += k.live()
	k.floor = k.next - 1
	t.exec(`UPDATE queues SET purged_at = ? WHERE number = ?`, now, q.index.number)
	t.exec(`DELETE FROM reasons WHERE queue = ?`, q.index.number)
	t.exec(toGarbage, low, makeKey(q.index.number, k.floor))
}

// Newest returns the position of the newest message sent or moved to a queue, or 0. Positions increase by one.
func (b *Broker) Newest(name string) (int64, error) {
	q, err := b.live(name)
	if err != nil {
		return 0, err
	}
	return keySeq(q.keys().last), nil
}

// PurgeThrough deletes the messages up to a position from [Broker.Newest], or all if through is 0, and returns their
// number. If these are all messages, it is the same as [Broker.PurgeQueue].
func (b *Broker) PurgeThrough(ctx context.Context, name string, through int64) (n int, err error) {
	q, err := b.live(name)
	if err != nil {
		return 0, err
	}

	keys := q.keys()
	at := keys.low
	high := lastMatch(through, q.index.number, keys.last)
	if high == keys.last {
		return b.PurgeQueue(ctx, name)
	}

	for ctx.Err() == nil {
		var page []int64
		err := q.broker.read(func(c *conn) error {
			return c.query(func(r row) { page = append(page, r.int(0)) },
				`SELECT id FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`, at, high, int64(bulkRows))
		})
		if err != nil || len(page) == 0 {
			return n, err
		}
		at = page[len(page)-1]
		reserved, err := q.reserveKeys(page)
		if err != nil {
			return n, err
		}
		removed, err := q.removeReserved(ctx, reserved)
		if err != nil {
			return n, err
		}
		n += removed
	}
	return n, ctx.Err()
}

// ListQueues returns the sorted names that start with prefix.
func (b *Broker) ListQueues(prefix string) []string {
	names := []string{}
	for _, q := range b.queues.all() {
		if strings.HasPrefix(q.name, prefix) {
			names = append(names, q.name)
		}
	}
	slices.Sort(names)
	return names
}

// DeadLetterSources returns the sorted names of the queues whose redrive policy targets the named queue.
func (b *Broker) DeadLetterSources(name string) ([]string, error) {
	if _, err := b.live(name); err != nil {
		return nil, err
	}
	target, names := b.opts.arn(name), []string{}
	for _, q := range b.queues.all() {
		if policy := q.settings().redrive; policy != nil && policy.target == target {
			names = append(names, q.name)
		}
	}
	slices.Sort(names)
	return names, nil
}
