package broker

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"tendril/datadir"
	"tendril/queue"
)

// Broker is a set of durable queues in one data directory.
// All methods are safe for concurrent use. Errors about a request are
// [*queue.Error].
type Broker struct {
	opts   Options
	events Events
	log    *slog.Logger
	dir    string
	lock   *os.File
	clock  clock
	seal   seal
	epoch  uint32
	disk   *diskGuard
	writer *writer
	store  atomic.Pointer[store]

	limits   memoryLimits
	cache    cache
	windowed atomic.Int64 // fresh messages in memory
	closing  atomic.Bool
	group    sync.WaitGroup // background reads
	groupMu  sync.Mutex     // guards group against closing

	admin chan struct{} // holds a token during an act on queues as a whole

	// booksMu makes a move between queues one step for TotalLedger.
	countersMu    sync.Mutex
	deletedQueues *liveQueue // stands for all deleted queues; only its books count

	mu           sync.RWMutex // taken after a queue's lock, never before
	queues       map[string]*liveQueue
	deletedNames map[string]int64 // stamps of deletions
}

// Open opens the queues in dir (created with mode 0700 when missing).
// It returns an error wrapping [ErrInUse] when another process holds dir, and
// one wrapping [datadir.ErrUnsafe] when another user may write there.
func Open(dir string, opts *Options) (*Broker, error) {
	if err := datadir.Make(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	b := newBroker(dir, opts)
	b.lock = lock
	if err := b.open(); err != nil {
		return nil, errors.Join(err, unlockDir(lock))
	}
	return b, nil
}

func newBroker(dir string, opts *Options) *Broker {
	b := &Broker{
		dir: dir, clock: newClock(), queues: map[string]*liveQueue{}, deletedNames: map[string]int64{}, log: slog.Default(),
		admin: make(chan struct{}, 1),
	}
	if opts != nil {
		b.opts = *opts
	}
	o := &b.opts
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.AccountID == "" {
		o.AccountID = "000000000000"
	}
	if o.SenderID == "" {
		o.SenderID = o.AccountID
	}
	if o.Logger != nil {
		b.log = o.Logger
	}
	if o.Events != nil {
		b.events = *o.Events
	}
	b.limits = defaultLimits()
	if o.limits != nil {
		b.limits = *o.limits
	}
	b.cache.most = b.limits.cache
	b.disk = newDiskGuard(dir)
	b.deletedQueues = &liveQueue{b: b}
	return b
}

// open opens the store, reads it and starts the writer.
func (b *Broker) open() error {
	s, err := openStore(b.dir, b.opts.vfs)
	if err != nil {
		return err
	}
	b.store.Store(s)
	if err = b.begin(s); err == nil {
		err = b.load(s)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reading the queues in %s: %w", b.dir, err), s.close())
	}
	b.writer = newWriter(b)
	go b.writer.run()
	for _, q := range b.all() {
		q.begin()
	}
	return nil
}

// begin reads the secret, or makes it, and opens a new epoch.
func (b *Broker) begin(s *store) error {
	var secret []byte
	var epoch int64
	err := s.write.query(func(row []driver.Value) error {
		switch row[0] {
		case "secret":
			secret, _ = row[1].([]byte)
		case "epoch":
			epoch, _ = row[1].(int64)
		}
		return nil
	}, `SELECT name, value FROM meta`)
	if err != nil {
		return err
	}
	if secret == nil {
		secret = make([]byte, 16)
		_, _ = rand.Read(secret) // never fails
	}
	if b.seal, err = newSeal(secret); err != nil {
		return err
	}
	b.epoch = uint32(epoch + 1)
	if err := s.synchronous(true); err != nil {
		return err
	}
	_, err = s.write.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('secret', ?), ('epoch', ?)`, secret, epoch+1)
	return err
}

// begin starts a loaded queue's timers.
func (q *liveQueue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arm()
	if q.counters.live() > 0 {
		q.sweepNow() // and find out when the next is due
	}
}

// Close stops waiting receives (they return what they have, or
// queue.ErrClosed), commits what is pending and closes the files.
func (b *Broker) Close() error {
	b.groupMu.Lock()
	closed := b.closing.Swap(true)
	b.groupMu.Unlock()
	if closed {
		return queue.ErrClosed
	}
	for _, q := range b.all() {
		q.mu.Lock()
		rows, _ := q.receiptRows(forever)
		if len(rows) > 0 {
			// After a failure of the store there is nothing to write to.
			_ = b.writer.submit(&receiptStore{q: q, rows: rows, done: func(error) {}})
		}
		q.stop()
		q.mu.Unlock()
	}
	b.writer.close()
	b.group.Wait()
	return errors.Join(b.store.Load().close(), unlockDir(b.lock))
}

// background runs f in a goroutine that Close waits for; false when the
// broker is closing.
func (b *Broker) background(f func()) bool {
	b.groupMu.Lock()
	defer b.groupMu.Unlock()
	if b.closing.Load() {
		return false
	}
	b.group.Go(f)
	return true
}

// read runs f with a connection that reads.
func (b *Broker) read(f func(*conn) error) error {
	err := b.store.Load().read(f)
	if errors.Is(err, errStoreClosed) && b.closing.Load() {
		return queue.ErrClosed
	}
	if err != nil {
		return &queue.Error{Code: queue.CodeStorageFailed,
			Message: "Reading the queues' file failed; look at the log and the disk.", Err: err}
	}
	return nil
}

// failed says why nothing is accepted now; nil while all is well.
func (b *Broker) failed() error {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	return b.writer.failure
}

// ARN returns the Amazon resource name of a queue of this broker.
func (b *Broker) ARN(name string) string { return b.opts.arn(name) }

// load reads the queues. It touches only what is needed to go on, so that it
// takes the same time at any depth: the counters, the messages that were in
// flight or received before, the delays that have not ended.
func (b *Broker) load(s *store) error {
	counters, err := readCounters(s.write)
	if err != nil {
		return err
	}
	b.deletedQueues.counters = counters[0]
	b.deletedQueues.disk = counters[0]
	found, err := b.readQueues(s.write, counters)
	if err != nil {
		return err
	}
	for _, q := range found {
		if err := q.load(s.write); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		b.queues[q.name] = q
	}
	return s.write.query(func(row []driver.Value) error {
		name, _ := row[0].(string)
		b.deletedNames[name], _ = row[1].(int64)
		return nil
	}, `SELECT name, at FROM departed`)
}

// readQueues makes the queues that the store has, without their messages.
func (b *Broker) readQueues(c *conn, counters map[int64]counters) (found []*liveQueue, err error) {
	err = c.query(func(row []driver.Value) error {
		q, err := b.readQueue(row, counters)
		found = append(found, q)
		return err
	}, `SELECT number, name, attributes, tags, created, modified, purged_at FROM queues`)
	return found, err
}

// readQueue makes a queue of its row.
func (b *Broker) readQueue(row []driver.Value, counters map[int64]counters) (*liveQueue, error) {
	n := func(i int) int64 { v, _ := row[i].(int64); return v }
	text := func(i int) []byte { v, _ := row[i].(string); return []byte(v) }
	name := string(text(1))
	var attributes, tags map[string]string
	if err := json.Unmarshal(text(2), &attributes); err != nil {
		return nil, fmt.Errorf("queue %s: reading its attributes: %w", name, err)
	}
	if err := json.Unmarshal(text(3), &tags); err != nil {
		return nil, fmt.Errorf("queue %s: reading its tags: %w", name, err)
	}
	set, err := parseSettings(attributes["FifoQueue"] == "true", attributes)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", name, err)
	}
	q := newLiveQueue(b, n(0), name, set)
	q.attributes, q.tags = attributes, tags
	q.created, q.modified, q.purgedAt = n(4), n(5), n(6)
	q.counters, q.disk = counters[q.number], counters[q.number]
	return q, nil
}

// load brings the state of a queue's messages to memory.
func (q *liveQueue) load(c *conn) error {
	q.window.cursor = q.low()
	q.window.tail = max(q.low(), makeKey(q.number, q.counters.next-1))
	if q.counters.live() == 0 {
		q.window.cursor = q.window.tail
		return nil
	}
	q.window.stale = q.window.cursor < q.window.tail
	if !q.set.fifo {
		q.window.noteDue()
	}
	if err := q.loadReceipts(c); err != nil {
		return err
	}
	return q.loadDelays(c)
}

// loadDelays counts the delays that have not ended.
func (q *liveQueue) loadDelays(c *conn) error {
	q.delays.clear()
	return c.query(func(row []driver.Value) error {
		due, _ := row[0].(int64)
		n, _ := row[1].(int64)
		q.delays.add(due, int(n))
		return nil
	}, `SELECT due, count(*) FROM messages WHERE id >> 40 = ? AND due > ? AND id > ? GROUP BY due`,
		q.number, q.b.clock.floor(q.b.clock.now()), q.low())
}
