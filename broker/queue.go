package broker

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/queue"
)

// Broker is a set of durable queues in one data directory. Its methods are safe for concurrent use. Errors caused by
// a request are of type [*queue.Error].
type Broker struct {
	opts       Options
	events     Events
	log        *slog.Logger
	clock      clock
	seal       seal
	epoch      uint32 // incremented each time the store is opened
	memory     memory
	background background
	queues     catalog
	moves      moveTasks
	attempts   attemptLog
	marks      receiveMarks
	dir        string
	disk       *diskGuard
	store      atomic.Pointer[store]
	writer     *writer
	lock       *os.File
}

func (b *Broker) read(f func(*conn) error) error {
	err := b.store.Load().read(f)
	if errors.Is(err, errStoreClosed) && b.background.closing.Load() {
		return queue.ErrClosed
	}
	if err != nil {
		return storageError(b.dir, "Reading the queue database failed; check the log and the disk.", err)
	}
	return nil
}

func storageError(dir, message string, err error) error {
	if isDamage(err) {
		message = "The queue database is damaged; stop tendril and " + restoreAdvice(dir) + "."
	}
	return &queue.Error{Code: queue.CodeStorageFailed, Message: message, Err: err}
}

type background struct {
	closing atomic.Bool
	stopped chan struct{}
	mu      sync.Mutex // prevents additions to group after close
	group   sync.WaitGroup
}

func (g *background) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing.Load() {
		return false
	}
	g.group.Go(f)
	return true
}

func (g *background) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing.Swap(true) {
		return false
	}
	close(g.stopped)
	return true
}

type liveQueue struct {
	broker    *Broker
	name, arn string
	created   int64 // stamp
	current   atomic.Pointer[description]
	received  atomic.Bool
	ageFrom   atomic.Int64 // for OldestAge: all remaining messages up to this key are scheduled

	// Only the writer uses disk and removed.
	disk    counters
	removed bool

	mu        sync.Mutex // guards the fields below
	index     index
	deleted   bool
	waiters   waiters
	alarm     alarm // set to the next end of a visibility timeout or delay
	retention retention
	receives  unstoredReceives
	repeats   repeats
}

// A change replaces the whole description, so that readers see consistent settings.
type description struct {
	set        settings
	attributes map[string]string
	tags       map[string]string
	modified   int64
	purgedAt   int64
}

func newLiveQueue(b *Broker, number int64, name string, d description) *liveQueue {
	q := &liveQueue{broker: b, name: name, arn: b.opts.arn(name), index: newIndex(b, number, d.set.fifo),
		repeats: repeats{}}
	q.current.Store(&d)
	q.alarm = alarm{lock: &q.mu, ring: q.onAlarm}
	q.retention.alarm = alarm{lock: &q.mu, ring: q.sweepNow}
	q.receives.alarm = alarm{lock: &q.mu, ring: q.storeReceives}
	return q
}

func (q *liveQueue) now() int64 { return q.broker.clock.now() }

func (q *liveQueue) description() *description { return q.current.Load() }

func (q *liveQueue) settings() *settings { return &q.current.Load().set }

// Only the writer calls describe, so calls do not overlap.
func (q *liveQueue) describe(change func(d *description)) {
	changed := *q.current.Load()
	change(&changed)
	q.current.Store(&changed)
}

// The caller must hold the lock.
func (q *liveQueue) checkOpen() error {
	if q.broker.background.closing.Load() {
		return queue.ErrClosed
	}
	if q.deleted {
		return errNoQueue()
	}
	return q.broker.writer.failed()
}

func errNoQueue() error {
	return queue.Errorf(queue.CodeQueueDoesNotExist, "The specified queue does not exist.")
}

// The caller must hold the lock.
func (q *liveQueue) onAlarm() {
	q.expire()
	if !q.deleted && !q.broker.background.closing.Load() {
		q.setAlarm()
	}
}

// lockAndExpire also ends expired visibility timeouts and delays, because the alarm may ring late.
func (q *liveQueue) lockAndExpire() {
	q.mu.Lock()
	q.expire()
}

// The caller must hold the lock.
func (q *liveQueue) expire() {
	if q.index.inFlight.Len() == 0 && len(q.index.delays.order) == 0 {
		return
	}

	now := q.now()
	for m := q.index.inFlight.first(); m != nil && m.until <= now; m = q.index.inFlight.first() {
		q.index.endFlight(m)
		q.waiters.wake(1)
	}

	if n := q.index.delays.expire(q.broker.clock.floor(now)); n > 0 {
		if !q.index.fifo {
			q.index.window.dueSeen++
			q.fillIfLow()
		}
		q.waiters.wake(n)
	}
}

func (q *liveQueue) setAlarm() {
	var at int64
	if m := q.index.inFlight.first(); m != nil {
		at = m.until
	}
	if len(q.index.delays.order) > 0 {
		due := max(1, q.broker.clock.reading(q.index.delays.order[0]))
		if at == 0 || due < at {
			at = due
		}
	}
	if at != 0 {
		q.alarm.set(at, time.Duration(at-q.now()))
	}
}

// The caller must hold q.mu.
func (q *liveQueue) fillIfLow() {
	if q.deleted {
		return
	}
	f := q.index.nextFill()
	if f == nil {
		return
	}
	if started := q.broker.background.start(func() { q.fill(f) }); !started {
		q.index.window.filling = nil
	}
}

func (q *liveQueue) fill(f *fill) {
	err := q.broker.read(func(c *conn) error { return f.read(c, q.index.number) })
	q.mu.Lock()
	defer q.mu.Unlock()
	defer close(f.done)
	if q.index.window.filling == f {
		q.index.window.filling = nil
	}
	f.err = err
	if err != nil || q.deleted || f.generation != q.index.window.generation {
		return
	}
	q.waiters.wake(q.index.merge(f))
	if f.without != nil {
		q.fillIfLow() // this fill skipped noisy tenants, so it may have added no messages
	}
}

// A removal may make messages deliverable, such as the next one of a FIFO group. The caller must hold the lock.
func (q *liveQueue) wakeAfterRemoval(n int) {
	q.index.countFresh()
	if q.index.fifo {
		n = queue.MaxBatch
	}
	if q.index.order.deliverable(q.now()) || q.index.window.behind() {
		q.waiters.wake(n)
	}
}

// The caller must hold q.mu.
func (q *liveQueue) clear() {
	q.index.clear()
	q.receives.messages = nil
	clear(q.repeats)
}

func (q *liveQueue) delete() counters {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removed = true
	q.deleted = true
	last := q.index.counters
	q.clear()
	q.stop()
	return last
}

// The caller must hold q.mu.
func (q *liveQueue) stop() {
	q.alarm.stop()
	q.retention.alarm.stop()
	q.receives.alarm.stop()
	q.waiters.wake(len(q.waiters.waiting))
}

type waiters struct{ waiting []chan struct{} }

func (l *waiters) join() (woken chan struct{}) {
	woken = make(chan struct{})
	l.waiting = append(l.waiting, woken)
	return woken
}

// leave passes a wake-up, if any, to the next receive.
func (l *waiters) leave(woken chan struct{}) {
	if i := slices.Index(l.waiting, woken); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.wake(1)
}

func (l *waiters) wake(n int) {
	n = min(n, len(l.waiting))
	for _, woken := range l.waiting[:n] {
		close(woken)
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}
