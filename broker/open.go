package broker

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"tendril/internal/host/datadir"
	"tendril/queue"
)

// Open opens the queues in dir, and creates dir with mode 0700 if missing. The error wraps [ErrInUse] if another
// process uses dir, and [ErrUnsafe] if another user can write to it.
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
	o := *cmp.Or(opts, &Options{})
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.AccountID = cmp.Or(o.AccountID, "000000000000")
	o.SenderID = cmp.Or(o.SenderID, o.AccountID)
	b := &Broker{opts: o, events: *cmp.Or(o.Events, &Events{}), log: cmp.Or(o.Logger, slog.Default()), clock: newClock(),
		queues: newCatalog(), dir: dir, moves: moveTasks{bySource: map[int64][]*moveTask{}}}
	b.disk = newDiskGuard(dir, b.log)
	b.background.stopped = make(chan struct{})
	b.attempts.b = b
	b.attempts.alarm = alarm{lock: &b.attempts.mu, ring: b.attempts.submit}
	b.memory.limits = *cmp.Or(o.limits, limitsOf(o.Memory))
	return b
}

func (b *Broker) open() error {
	if err := b.openStore(b.start); err != nil {
		return errors.Join(err, b.marks.close())
	}

	b.background.start(func() { b.disk.watch(b.background.stopped) })
	b.writer = newWriter(b)
	go b.writer.run()
	b.resumeQueues()
	b.resumeMoves()
	return nil
}

func (b *Broker) openStore(begin func(s *store) error) error {
	s, err := openStore(b.dir, b.opts.vfs, b.memory.limits.pages)
	if err != nil {
		return err
	}
	if err := begin(s); err != nil {
		_ = s.close() // the first error is more useful
		return adviseRestore(b.dir, openFailure(filepath.Join(b.dir, databaseName), err))
	}
	b.store.Store(s)
	b.disk.identifyFiles()
	return nil
}

func (b *Broker) start(s *store) error {
	if err := b.beginEpoch(s); err != nil {
		return err
	}
	if err := recordCreation(b.dir); err != nil {
		return err
	}
	if err := b.reconcile(s.write); err != nil {
		return err
	}
	return s.write.query(func(row row) { b.queues.deletedAt[row.text(0)] = row.int(1) }, `SELECT name, at FROM departed`)
}

// beginEpoch increments the epoch and stores the receives that a killed process left in the marks.
func (b *Broker) beginEpoch(s *store) error {
	secret, epoch, err := s.write.identity()
	if err != nil {
		return err
	}
	if secret == nil {
		secret = make([]byte, 16)
		_, _ = rand.Read(secret)
	}
	if b.seal, err = newSeal(secret); err != nil {
		return err
	}

	b.epoch = uint32(epoch + 1)
	left, err := b.marks.open(b.dir, uint32(epoch))
	if err != nil {
		b.log.Warn("receives just before a crash will not count", "dir", b.dir, "err", err)
	}

	begin := &change{run: func(t *tx) {
		t.storeMarks(left, epoch)
		t.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('secret', ?), ('epoch', ?)`, secret, epoch+1)
	}}
	return newTx(s.write).commit(s, []pendingRequest{{request: begin, needs: needsFsync}})
}

func (c *conn) identity() (secret []byte, epoch int64, err error) {
	err = c.query(func(row row) {
		switch row.text(0) {
		case "secret":
			secret = row.bytes(1)
		case "epoch":
			epoch = row.int(1)
		}
	}, `SELECT name, value FROM meta`)
	return secret, epoch, err
}

// Close ends waiting receives, commits pending requests and closes the files. Waiting receives and later calls
// that need the database return [queue.ErrClosed].
func (b *Broker) Close() error {
	if !b.background.close() {
		return queue.ErrClosed
	}

	b.attempts.flush()
	for _, q := range b.queues.all() {
		q.mu.Lock()
		q.stop()
		q.mu.Unlock()
	}

	b.writer.close()
	b.background.group.Wait()
	if lost := b.disk.checkFiles(); lost != nil {
		// Closing the store would remove the log at its path, which may now belong to another broker. The data
		// directory may just have been moved, so checkpoint.
		if s := b.store.Load(); !s.closed {
			_ = s.restartLog("TRUNCATE")
		}
		return errors.Join(fmt.Errorf("closing the queues in %s: %w", b.dir, lost), b.marks.close(), unlockDir(b.lock))
	}

	_ = b.disk.checkBeforeClose()
	return errors.Join(b.marks.close(), b.store.Load().close(), unlockDir(b.lock))
}

// Lost returns an error while the data directory is removed, moved, unmounted or replaced. Sends and
// administrative changes are then refused.
func (b *Broker) Lost() error {
	if b.background.closing.Load() {
		return nil
	}
	return b.disk.checkFiles()
}

// ARN returns the Amazon Resource Name of a queue.
func (b *Broker) ARN(name string) string { return b.opts.arn(name) }

func (b *Broker) readQueues(c *conn) (found []*liveQueue, deleted counters, err error) {
	all, err := readCounters(c)
	if err != nil {
		return nil, deleted, err
	}
	var unread error
	err = c.query(func(row row) {
		q, err := b.readQueue(row)
		if err != nil {
			unread = fmt.Errorf("queue %s: %w", row.text(1), err)
			return
		}
		q.index.counters, q.disk = all[q.index.number], all[q.index.number]
		found = append(found, q)
	}, `SELECT `+queueColumns+` FROM queues`)
	return found, all[0], errors.Join(err, unread)
}

// queueColumns are the columns that readQueue reads.
const queueColumns = `number, name, attributes, tags, created, modified, purged_at`

func (b *Broker) readQueue(row row) (*liveQueue, error) {
	d := description{modified: row.int(5), purgedAt: row.int(6)}
	if err := json.Unmarshal([]byte(row.text(2)), &d.attributes); err != nil {
		return nil, fmt.Errorf("reading its attributes: %w", err)
	}
	if err := json.Unmarshal([]byte(row.text(3)), &d.tags); err != nil {
		return nil, fmt.Errorf("reading its tags: %w", err)
	}

	d.attributes = canonicalAttributes(d.attributes) // earlier versions did not store canonical forms
	b.opts.localizePolicies(d.attributes)
	var err error
	if d.set, err = parseSettings(d.attributes["FifoQueue"] == "true", d.attributes); err != nil {
		return nil, err
	}

	q := newLiveQueue(b, row.int(0), row.text(1), d)
	q.created = row.int(4)
	return q, nil
}

// load reads only received messages and pending delays, so its duration does not depend on other messages.
func (q *liveQueue) load(c *conn) error {
	w := &q.index.window
	last := q.index.last()
	if q.index.counters.live() == 0 {
		w.cursor = last
		w.tail = last
		return nil
	}
	w.start(q.index.low(), last, q.index.fifo)
	if err := q.loadReceives(c); err != nil {
		return err
	}
	return q.loadDelays(c)
}

func (q *liveQueue) loadDelays(c *conn) error {
	q.index.delays = delays{}
	return c.query(func(row row) { q.index.delays.add(row.int(0), int(row.int(1))) }, `SELECT due, count(*) FROM messages
		WHERE id >> 40 = ? AND due > ? AND id > ? AND id <= ? GROUP BY due`,
		q.index.number, q.broker.clock.nowMilli(), q.index.low(), q.index.last())
}
