package broker

import (
	"errors"
	"sync/atomic"
)

// window says which part of a queue memory covers: all messages up to cursor
// are in the arrangement, or were given out, or are on the list of delays.
// Between cursor and tail they are only in the store.
type window struct {
	cursor, tail int64 // keys
	// The messages whose delay ended are read in the order of its end; the
	// last one read had this due, in Unix milliseconds, and key.
	dueAt, dueKey int64
	dueSeen       int // how often delays ended
	dueRead       int // up to which of these all were read
	generation    int // grows with each reset; a fill of an older one is void
	filling       *fill
	stale         bool // reset, and not filled since
	size          int  // fresh messages, as last told to the broker
}

// due notes that delays ended.
func (w *window) noteDue() { w.dueSeen++ }

// behind reports whether the store has visible messages that memory does not.
func (w *window) behind() bool { return w.cursor < w.tail || w.dueRead < w.dueSeen }

// limits bound what memory holds over all queues, and of each.
type memoryLimits struct {
	// total is the most fresh messages over all queues; a queue may always
	// have least.
	total, least int
	// standard and fifo are the most fresh messages of a queue. On a FIFO
	// queue it is how far a receive looks behind locked groups.
	standard, fifo int
	// fill is the most that one fill reads.
	fill int
	// cache is the most bytes of message contents over all queues.
	cache int64
	// inFlight is how many messages of a queue may be in flight.
	inFlight int
}

func defaultLimits() memoryLimits {
	return memoryLimits{total: 100_000, least: 256, standard: 8_192, fifo: 20_000, fill: 1_024, cache: 24 << 20,
		inFlight: 120_000}
}

// cache counts the bytes of message contents in memory.
type cache struct {
	used atomic.Int64
	most int64
}

// take reserves n bytes; false when there is no room.
func (c *cache) reserve(n int64) bool {
	if c.used.Add(n) > c.most {
		c.used.Add(-n)
		return false
	}
	return true
}

func (c *cache) release(n int64) { c.used.Add(-n) }

// room is how many more fresh messages the queue may hold. The lock is held.
func (q *liveQueue) capacity() int {
	l := &q.b.limits
	most := l.standard
	if q.set.fifo {
		most = l.fifo
	}
	size := q.order.size()
	if left := l.total - int(q.b.windowed.Load()) + size; left < most {
		most = max(l.least, left)
	}
	return max(0, most-size)
}

// arrive takes in a message that was just committed. The lock is held.
func (q *liveQueue) arrive(r *record, content bool) {
	covered := q.window.cursor == q.window.tail
	q.window.tail = r.key
	delayed := r.due != 0 && r.due > q.b.clock.floor(q.b.clock.now())
	if delayed {
		q.delays.add(r.due, 1)
	}
	if r.due != 0 && !q.set.fifo {
		if covered {
			q.window.cursor = r.key
		}
		if !delayed {
			// The commit took longer than the delay.
			q.window.noteDue()
		}
		if r.due <= q.window.dueAt {
			q.resetWindow()
		}
		return
	}
	if covered && q.capacity() > 0 {
		q.window.cursor = r.key
		q.order.add(q.newMessage(r, content))
		q.account()
	}
}

// account tells the broker how many fresh messages the queue holds. The lock
// is held.
func (q *liveQueue) account() {
	n := q.order.size()
	q.b.windowed.Add(int64(n - q.window.size))
	q.window.size = n
}

// resetWindow forgets the fresh messages, to be read again from the store. The
// lock is held.
func (q *liveQueue) resetWindow() {
	q.order.reset(q.drop)
	q.account()
	q.window.generation++
	q.window.cursor, q.window.dueAt, q.window.dueKey = q.low(), 0, 0
	q.window.tail = max(q.window.tail, q.low())
	q.window.filling = nil
	q.window.stale = q.window.cursor < q.window.tail
	if !q.set.fifo {
		q.window.noteDue()
	}
}

// complete reports whether the arrangement may be asked: after a reset the
// received messages are there before the fresh ones. The lock is held.
func (w *window) complete() bool { return !w.stale }

// fill is one read from the store into the window.
type fill struct {
	done       chan struct{} // closed when it has ended
	err        error         // why it failed; read after done
	generation int
	floor      int64 // the key up to which all is purged
	low, high  int64
	limit      int
	delayed    bool // FIFO: those with a delay too

	due           bool
	dueAt, dueKey int64
	dueSeen       int
	now           int64 // Unix milliseconds on the broker's clock

	main, late []*scanned

	// departed are the messages that left the queue meanwhile: the read may
	// still have seen them. The queue's lock guards it.
	removed map[int64]bool
}

// fillIfLow starts a fill when the window runs low. The lock is held.
func (q *liveQueue) fillIfLow() {
	w := &q.window
	capacity := q.capacity()
	if w.filling != nil || !w.behind() || capacity < q.order.size()/4 || capacity == 0 || q.deleted {
		return
	}
	f := &fill{
		done: make(chan struct{}), generation: w.generation, limit: min(capacity, q.b.limits.fill),
		floor: q.low(), low: w.cursor, high: w.tail, delayed: q.set.fifo,
		due: w.dueRead < w.dueSeen, dueAt: w.dueAt, dueKey: w.dueKey, dueSeen: w.dueSeen,
		now: q.b.clock.floor(q.b.clock.now()),
	}
	w.filling = f
	if !q.b.background(func() { q.fill(f) }) {
		w.filling = nil
	}
}

// fill reads and merges.
func (q *liveQueue) fill(f *fill) {
	err := q.b.read(func(c *conn) error { return errors.Join(f.readMain(c), f.readDue(c, q.number)) })
	q.mu.Lock()
	defer q.mu.Unlock()
	defer close(f.done)
	if q.window.filling == f {
		q.window.filling = nil
	}
	f.err = err
	if err != nil || f.generation != q.window.generation || q.deleted {
		return
	}
	q.merge(f)
}

// missed tells a fill under way that a message has left the queue, if it may
// be among those that it reads. The lock is held.
func (w *window) noteRemoved(key int64) {
	f := w.filling
	if f == nil || key <= f.low && !f.due {
		return
	}
	if f.removed == nil {
		f.removed = map[int64]bool{}
	}
	f.removed[key] = true
}

// readMain reads the next messages that were sent without a delay; on a FIFO
// queue also the others.
func (f *fill) readMain(c *conn) (err error) {
	if f.low >= f.high {
		return nil
	}
	plain := false
	if !f.delayed {
		f.main, plain, err = c.scanPlain(f.low, f.high, f.limit)
	}
	if err == nil && !plain {
		f.main, err = c.scan(f.low, f.high, f.delayed, f.limit)
	}
	return err
}

// readDue reads the next messages whose delay has ended.
func (f *fill) readDue(c *conn, number int64) (err error) {
	if f.due {
		f.late, err = c.scanDue(number, f.floor, f.high, f.dueAt, f.dueKey, f.now, f.limit)
	}
	return err
}

// merge takes what a fill read into the window. The lock is held.
func (q *liveQueue) merge(f *fill) {
	q.window.stale = false
	added := q.admitAll(f, f.main) + q.admitAll(f, f.late)
	if f.low < f.high {
		q.window.cursor = f.high
		if len(f.main) == f.limit {
			q.window.cursor = f.main[len(f.main)-1].key
		}
	}
	if n := len(f.late); n > 0 {
		q.window.dueAt, q.window.dueKey = f.late[n-1].due, f.late[n-1].key
	}
	if f.due && len(f.late) < f.limit {
		q.window.dueRead = f.dueSeen
	}
	q.waiters.wake(added)
}

// admitAll puts the rows into the window that memory does not hold already.
func (q *liveQueue) admitAll(f *fill, rows []*scanned) (added int) {
	for _, r := range rows {
		if q.held[r.key] != nil || f.removed[r.key] || r.sent < q.cutoff || r.key <= q.low() {
			continue
		}
		q.order.add(q.newMessage(&r.record, r.content))
		added++
	}
	q.account()
	return added
}
