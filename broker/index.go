package broker

import (
	"container/heap"
	"sync/atomic"
)

// index is what memory holds of a queue's messages: the counters, the next
// visible messages (the window), and all that were received and are still there.
// The queue's lock guards it, and is held when a method is called.
type index struct {
	broker   *Broker
	number   int64
	fifo     bool               // never changes
	counters counters           // as committed
	cutoff   int64              // stamp: fresh messages sent before belong to the sweep
	held     map[int64]*message // received before and still here, those leaving, and damaged ones
	damaged  int                // how many of them are
	order    deliveryOrder
	inFlight indexed[*message] // by the end of the flight
	delays   delays
	window   window
}

// low and high bound the keys of the queue's messages: low < key <= high.
func (x *index) low() int64  { return makeKey(x.number, x.counters.floor) }
func (x *index) high() int64 { return makeKey(x.number, maxSeq) }

// last is the key of the newest message, or where the queue begins.
func (x *index) last() int64 { return max(x.low(), makeKey(x.number, x.counters.next-1)) }

// published reports whether a row counts: it was not purged, and its request was told of the commit. A reader sees a
// row a little earlier than that.
func (x *index) published(key int64) bool { return key > x.low() && key <= x.last() }

func newIndex(b *Broker, number int64, fifo bool) index {
	x := index{broker: b, number: number, fifo: fifo, held: map[int64]*message{}, inFlight: newDeadlines()}
	x.newOrder()
	return x
}

func (x *index) newOrder() {
	if x.order = newStandard(); x.fifo {
		x.order = newFIFO()
	}
}

// newMessage returns the entry in memory for a row, with its group or tenant and, while the cache has room, its content.
// Its due time is a reading of the clock; 0 means no delay.
func (x *index) newMessage(r *record) *message {
	m := &message{key: r.key, origin: r.originKey(), sent: r.sent, size: int32(r.size),
		arrived: int32(r.received), count: int32(r.received), first: r.first}
	if r.due != 0 {
		m.due = max(1, x.broker.clock.reading(r.due))
	}

	x.assignGroup(m, r)
	x.cacheContent(m, r)
	return m
}

// assignGroup sets the message's group on a FIFO queue, or its tenant on a standard one. Once there are many tenants,
// it first forgets those without messages.
func (x *index) assignGroup(m *message, r *record) {
	switch order := x.order.(type) {
	case *fifoOrder:
		m.group = order.group(r.group)
	case *standardOrder:
		if len(order.byID) >= order.sweepAt {
			order.sweep(x.held)
		}
		m.tenant = order.tenantOf(r)
	}
}

// cacheContent keeps a row's content with its message if it is small and the cache of all queues has room, and counts
// it there. [index.drop] takes it back.
func (x *index) cacheContent(m *message, r *record) {
	if !r.whole || r.size > keepContent {
		return
	}
	memory := &x.broker.memory
	if memory.content.Add(r.footprint()) > memory.limits.cache {
		memory.content.Add(-r.footprint())
		return
	}
	m.content = r
}

// drop forgets the cached content of a message.
func (x *index) drop(m *message) {
	if m.content != nil {
		x.broker.memory.content.Add(-m.content.footprint())
		m.content = nil
	}
}

// endFlight makes a message visible again.
func (x *index) endFlight(m *message) {
	x.stopFlight(m)
	if !m.leaving && !m.gone {
		x.order.requeue(m)
	}
}

// startFlight hides a message until its deadline. resumed says that it was in flight before the store was opened.
func (x *index) startFlight(m *message, resumed bool) {
	m.inFlight = true
	heap.Push(&x.inFlight, m)
	if s, ok := x.order.(*standardOrder); ok && m.tenant != nil {
		s.began(m.tenant, x.inFlight.Len(), resumed)
	}
}

func (x *index) stopFlight(m *message) {
	if !m.inFlight {
		return
	}
	m.inFlight = false
	heap.Remove(&x.inFlight, m.index)
	if s, ok := x.order.(*standardOrder); ok {
		now := x.broker.clock.now()
		s.ended(m, now-m.receivedAt, now)
	}
}

// remove forgets a message that left the queue.
func (x *index) remove(m *message) {
	m.gone, m.leaving = true, false
	x.stopFlight(m)
	if m.damaged {
		m.damaged = false
		x.damaged--
	}
	delete(x.held, m.key)
	delete(x.window.early, m.key)
	x.window.noteRemoved(m.key)
	x.drop(m)
	x.broker.marks.drop(m)
	x.order.forget(m)
}

// keep takes back that a message was about to leave.
func (x *index) keep(m *message) {
	switch m.leaving = false; {
	case m.claimed:
		if x.held[m.key] == m {
			delete(x.held, m.key)
		}
		x.resetWindow()
	case !m.inFlight:
		x.order.requeue(m)
	}
}

// claim keeps a message that memory does not hold from being given out, until
// keep: an entry without content stands for it.
func (x *index) claim(key int64) *message {
	m := &message{key: key, origin: key, leaving: true, claimed: true}
	x.held[key] = m
	x.resetWindow()
	return m
}

// resume puts a message back in flight that was in flight before the store was opened.
func (x *index) resume(m *message) {
	m.until = min(m.until, x.broker.clock.now()+int64(maxFlight))
	x.startFlight(m, true)
	x.order.resume(m)
}

// clear forgets all messages.
func (x *index) clear() {
	for _, m := range x.held {
		m.gone = true
		m.inFlight = false
		m.holds = false
		m.queued = false
		x.broker.marks.drop(m)
	}
	clear(x.held)
	x.damaged = 0
	x.inFlight.items, x.delays = nil, delays{}
	x.resetWindow()
	x.newOrder()
	w := &x.window
	w.cursor = x.low()
	w.tail = x.low()
	w.ahead = x.low()
	w.stale = false
	w.dueRead = w.dueSeen
}

// memory counts what the queues of a broker hold in memory.
type memory struct {
	limits  memoryLimits
	fresh   atomic.Int64 // fresh messages
	content atomic.Int64 // bytes of message contents
}

// memoryLimits bound what memory holds over all queues, and of each.
type memoryLimits struct {
	// total is the most fresh messages over all queues; a queue may always
	// have least.
	total, least int
	// standard and fifo are the most fresh messages of a queue. On a FIFO
	// queue it is how far a receive looks behind locked groups.
	standard, fifo int
	// fill is the most that one fill reads.
	fill int
	// cache is the most bytes of message contents over all queues. pages is what SQLite's connection for writing keeps
	// of the file, in bytes; those for reading keep a quarter of that each.
	cache, pages int64
	// inFlight is how many messages of a queue may be in flight.
	inFlight int
	// queues is how many queues the broker may hold.
	queues int
}

func defaultLimits() *memoryLimits {
	return &memoryLimits{total: 100_000, least: 256, standard: 8_192, fifo: 20_000, fill: 1_024, cache: 24 << 20,
		pages: 8 << 20, inFlight: 120_000, queues: 10_000}
}

// limitsOf are the limits in a process that may use so many bytes of memory; 0 means plenty.
func limitsOf(memory int64) *memoryLimits {
	limits := defaultLimits()
	if memory > 0 {
		limits.cache = min(limits.cache, memory/16)
		limits.pages = min(limits.pages, memory/32)
	}
	return limits
}

// window says which part of a queue memory covers: all messages up to cursor
// are in the delivery order, or were given out, or are on the list of delays.
// Between cursor and tail they are only in the store, but for those of tenants
// that are not noisy: these are in memory up to ahead.
type window struct {
	cursor, tail int64 // keys
	ahead        int64 // key; below cursor when nothing was read ahead
	// early holds the keys of messages that were read ahead and are still here.
	early map[int64]bool
	// The messages whose delay ended are read in the order of its end; the
	// last one read had this due, in Unix milliseconds, and key.
	dueAt, dueKey int64
	dueSeen       int // how often delays ended
	dueRead       int // up to which of these all were read
	generation    int // grows with each reset; a fill of an older one is void
	filling       *fill
	stale         bool // reset, and not filled since: fresh messages must wait for received ones
	size          int  // fresh messages, as last counted in memory
}

// behind reports whether the store has visible messages that memory does not.
func (w *window) behind() bool { return w.cursor < w.tail || w.dueRead < w.dueSeen }

// noteRemoved tells a fill under way that a message has left the queue, if it may
// be among those that it reads.
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

// capacity is how many more fresh messages the queue may hold.
func (x *index) capacity() int {
	l, most := &x.broker.memory.limits, x.broker.memory.limits.standard
	if x.fifo {
		most = l.fifo
	}
	size := x.order.size()
	if left := l.total - int(x.broker.memory.fresh.Load()) + size; left < most {
		most = max(l.least, left)
	}
	return max(0, most-size)
}

// countFresh counts the queue's fresh messages in memory.
func (x *index) countFresh() {
	n := x.order.size()
	x.broker.memory.fresh.Add(int64(n - x.window.size))
	x.window.size = n
}

// arrive takes in a message that was just committed.
func (x *index) arrive(r *record) {
	w := &x.window
	covered, last := w.cursor == w.tail, w.tail
	w.tail = r.key
	delayed := r.due != 0 && r.due > x.broker.clock.floor(x.broker.clock.now())
	if delayed {
		x.delays.add(r.due, 1)
	}

	if r.due != 0 && !x.fifo {
		if covered {
			w.cursor = r.key
		}
		if !delayed {
			w.dueSeen++ // the commit took longer than the delay
		}
		if r.due <= w.dueAt {
			x.resetWindow()
		}
		return
	}
	if covered && x.capacity() > 0 {
		w.cursor = r.key
		x.order.add(x.newMessage(r))
		x.countFresh()
		return
	}

	if s, ok := x.order.(*standardOrder); ok && last <= max(w.ahead, w.cursor) && len(s.noisy) > 0 {
		x.arriveAhead(s, r)
	}
}

// arriveAhead takes in a message behind those of noisy tenants that memory does not hold.
func (x *index) arriveAhead(s *standardOrder, r *record) {
	noisy := s.isNoisy(r)
	if !noisy && x.capacityAhead(s) == 0 {
		return
	}
	if x.window.ahead = r.key; !noisy {
		x.window.noteEarly(r.key)
		s.add(x.newMessage(r))
		x.countFresh()
	}
}

func (w *window) noteEarly(key int64) {
	if w.early == nil {
		w.early = map[int64]bool{}
	}
	w.early[key] = true
}

// capacityAhead is how many more messages of tenants that are not noisy the queue may hold, although its window is
// full of others.
func (x *index) capacityAhead(s *standardOrder) int {
	l := &x.broker.memory.limits
	left := l.total - int(x.broker.memory.fresh.Load())
	most := min(l.standard-s.main.n-s.late.n, 2*l.standard-s.size(), max(l.least, left))
	return max(0, most)
}

// resetWindow forgets the fresh messages, to be read again from the store.
func (x *index) resetWindow() {
	x.order.reset(x.drop)
	x.countFresh()
	w := &x.window
	w.generation++
	w.filling = nil
	w.start(x.low(), max(w.tail, x.low()), x.fifo)
}

// start makes the window cover nothing: all messages with low < key <= last are to be read from the store.
func (w *window) start(low, last int64, fifo bool) {
	w.cursor, w.ahead, w.tail = low, low, last
	w.dueAt, w.dueKey = 0, 0
	w.early = nil
	w.stale = low < last
	if !fifo {
		// Moving the cursor does not find the messages whose delay has ended: they are read by their due time, from the
		// start again.
		w.dueSeen++
	}
}

// fill is one read from the store into the window.
type fill struct {
	done       chan struct{} // closed when it has ended
	err        error         // why it failed; read after done
	generation int
	floor      int64 // the key up to which all is purged
	low, high  int64
	tail       int64 // the newest key
	limit      int
	delayed    bool // FIFO: those with a delay too

	// without, when not nil, are tenants whose messages are not wanted: it reads ahead.
	without []string

	due           bool
	dueAt, dueKey int64
	dueSeen       int
	now           int64 // Unix milliseconds on the broker's clock

	main, late []*record

	// removed are the messages that left the queue meanwhile: the read may
	// still have seen them. The queue's lock guards it.
	removed map[int64]bool
}

// nextFill returns the read that is to begin now; nil for none.
func (x *index) nextFill() *fill {
	w := &x.window
	if w.filling != nil || !w.behind() {
		return nil
	}

	if s, ok := x.order.(*standardOrder); ok && len(s.noisy) > 0 {
		if w.filling = x.nextAhead(s); w.filling != nil {
			return w.filling
		}
	}

	capacity := x.capacity()
	if capacity < x.order.size()/4 || capacity == 0 {
		return nil
	}

	w.filling = &fill{
		done: make(chan struct{}), generation: w.generation, limit: min(capacity, x.broker.memory.limits.fill),
		floor: x.low(), low: w.cursor, high: w.tail, tail: w.tail, delayed: x.fifo,
		due: w.dueRead < w.dueSeen, dueAt: w.dueAt, dueKey: w.dueKey, dueSeen: w.dueSeen,
		now: x.broker.clock.floor(x.broker.clock.now()),
	}
	return w.filling
}

// aheadKeys is how many places of a queue one fill looks at when it reads ahead.
const aheadKeys = 10_000

// nextAhead returns the read of messages that are not of noisy tenants, and may lie behind many of these; nil when
// none is needed.
func (x *index) nextAhead(s *standardOrder) *fill {
	w, capacity := &x.window, x.capacityAhead(s)
	if s.rescan {
		s.rescan, w.ahead = false, w.cursor
	}
	low := max(w.ahead, w.cursor)
	late := w.dueRead < w.dueSeen && x.capacity() == 0
	if s.size() == 0 || capacity == 0 || capacity < s.quiet()/4 || low >= w.tail && !late {
		return nil
	}
	return &fill{
		done: make(chan struct{}), generation: w.generation, limit: min(capacity, x.broker.memory.limits.fill),
		floor: x.low(), low: low, high: min(w.tail, low+aheadKeys), tail: w.tail, without: s.noisyIDs(),
		due: late, dueAt: w.dueAt, dueKey: w.dueKey, dueSeen: w.dueSeen, now: x.broker.clock.floor(x.broker.clock.now()),
	}
}

// read reads the next messages: those that were sent without a delay, on a FIFO queue
// also the others, and those whose delay has ended.
func (f *fill) read(c *conn, number int64) (err error) {
	if f.low < f.high && f.without != nil {
		f.main, err = c.scanWithout(f.low, f.high, f.without, f.limit)
	} else if f.low < f.high {
		plain := false
		if !f.delayed {
			f.main, plain, err = c.scanPlain(f.low, f.high, f.limit)
		}
		if err == nil && !plain {
			f.main, err = c.scan(f.low, f.high, f.delayed, f.limit)
		}
	}
	if err == nil && f.due {
		f.late, err = c.scanDue(number, f.floor, f.tail, f.dueAt, f.dueKey, f.now, f.limit)
	}
	return err
}

// merge takes what a fill read into the window and returns how many messages that adds.
func (x *index) merge(f *fill) (added int) {
	w := &x.window
	w.stale = false
	added = x.admit(f, f.main) + x.admit(f, f.late)
	if f.low < f.high {
		read := f.high
		if len(f.main) == f.limit {
			read = f.main[len(f.main)-1].key
		}
		if f.without == nil {
			w.cursor = read
		} else {
			w.ahead = max(w.ahead, read)
		}
	}

	if w.cursor >= w.ahead {
		w.early = nil
	}

	if n := len(f.late); n > 0 {
		w.dueAt, w.dueKey = f.late[n-1].due, f.late[n-1].key
	}

	if f.due && len(f.late) < f.limit {
		w.dueRead = f.dueSeen
	}

	if order, ok := x.order.(*fifoOrder); ok && !w.behind() {
		order.complete()
	}
	return added
}

// admit puts the rows that memory does not hold into the window, and returns how many it added.
func (x *index) admit(f *fill, rows []*record) (added int) {
	for _, r := range rows {
		if x.skips(f, r) {
			continue
		}
		if f.without != nil && r.due == 0 {
			x.window.noteEarly(r.key)
		}
		x.order.add(x.newMessage(r))
		added++
	}
	x.countFresh()
	return added
}

// skips reports whether a row that a fill read does not belong in the window.
func (x *index) skips(f *fill, r *record) bool {
	switch {
	case x.held[r.key] != nil: // it was received before, is leaving or is damaged
	case f.removed[r.key]: // it left the queue after the fill began
	case r.sent < x.cutoff: // its retention has ended: the sweep deletes it
	case r.key <= x.low(): // it was purged
	case x.window.early[r.key]: // it was read ahead
	default:
		return false
	}
	return true
}

// newDeadlines returns a heap of the messages in flight, the one whose visibility timeout
// ends first on top.
func newDeadlines() indexed[*message] {
	return indexed[*message]{
		before: func(a, b *message) bool { return a.until < b.until },
		index:  func(m *message) *int { return &m.index },
	}
}
