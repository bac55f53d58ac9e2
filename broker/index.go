package broker

import (
	"container/heap"
	"sync/atomic"
)

// index is a queue's state in memory, guarded by its lock.
type index struct {
	broker   *Broker
	number   int64
	fifo     bool
	counters counters // as of the latest commit
	cutoff   int64    // stamp; fresh messages sent before it have expired
	held     map[int64]*message
	damaged  int
	order    deliveryOrder
	inFlight indexed[*message]
	delays   delays
	window   window
	work     block
}

// low and high bound the keys of the queue's messages: low < key <= high.
func (x *index) low() int64  { return makeKey(x.number, x.counters.floor) }
func (x *index) high() int64 { return makeKey(x.number, maxSeq) }

func (x *index) last() int64 { return max(x.low(), makeKey(x.number, x.counters.next-1)) }

func (x *index) published(key int64) bool { return key > x.low() && key <= x.last() }

func newIndex(b *Broker, number int64, fifo bool) index {
	x := index{broker: b, number: number, fifo: fifo, held: map[int64]*message{}, inFlight: newDeadlines()}
	x.newOrder()
	return x
}

func (x *index) newOrder() {
	x.order = newStandard()
	if x.fifo {
		x.order = newFIFO()
	}
}

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

func (x *index) assignGroup(m *message, r *record) {
	switch order := x.order.(type) {
	case *fifoOrder:
		m.group = order.group(r.group)
	case *standardOrder:
		if len(order.byID) >= order.sweepAt {
			order.sweepTenants(x.held)
		}
		m.tenant = order.tenantOf(r)
	}
}

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

func (x *index) dropContent(m *message) {
	if m.content != nil {
		x.broker.memory.content.Add(-m.content.footprint())
		m.content = nil
	}
}

func (x *index) endFlight(m *message) {
	x.stopFlight(m)
	if !m.leaving && !m.gone {
		x.order.requeue(m)
	}
}

func (x *index) startFlight(m *message, resumed bool) {
	m.inFlight = true
	heap.Push(&x.inFlight, m)
	if s, ok := x.order.(*standardOrder); ok && m.tenant != nil {
		s.flightStarted(m.tenant, x.inFlight.Len(), resumed)
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
		s.flightEnded(m, now-m.receivedAt, now)
	}
}

func (x *index) remove(m *message) {
	m.gone = true
	m.leaving = false
	x.stopFlight(m)
	if m.damaged {
		m.damaged = false
		x.damaged--
	}
	delete(x.held, m.key)
	delete(x.window.early, m.key)
	x.window.recordRemoved(m.key)
	x.dropContent(m)
	x.broker.marks.drop(m)
	x.order.forget(m)
}

func (x *index) endLeaving(m *message, removed bool) {
	if removed && !m.claimed {
		x.remove(m)
	} else {
		x.unreserve(m)
	}
}

func (x *index) unreserve(m *message) {
	m.leaving = false
	switch {
	case m.claimed:
		if x.held[m.key] == m {
			delete(x.held, m.key)
		}
		x.resetWindow()
	case !m.inFlight:
		x.order.requeue(m)
	}
}

// claim reserves a message that is not in memory by adding a placeholder; unreserve releases it.
func (x *index) claim(key int64) *message {
	m := &message{key: key, origin: key, leaving: true, claimed: true}
	x.held[key] = m
	x.resetWindow()
	return m
}

func (x *index) resume(m *message) {
	m.until = min(m.until, x.broker.clock.now()+int64(maxFlight))
	x.startFlight(m, true)
	x.order.resume(m)
}

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
	x.inFlight.items = nil
	x.delays = delays{}
	x.window.tail = x.low()
	x.resetWindow()
	x.window.dueRead = x.window.dueSeen
	x.newOrder()
}

type memory struct {
	limits  memoryLimits
	fresh   atomic.Int64
	content atomic.Int64
}

type memoryLimits struct {
	// total limits the fresh messages of all queues, but each may hold least.
	total, least int
	// standard and fifo limit the fresh messages of a queue, by type. On a FIFO queue, this also limits how far a
	// receive looks past locked groups.
	standard, fifo int
	fill           int // messages read at once
	// cache limits the cached contents, and pages the page cache of the write connection, in bytes; each read
	// connection gets a quarter of pages.
	cache, pages int64
	inFlight     int
	queues       int
}

func defaultLimits() *memoryLimits {
	return &memoryLimits{total: 100_000, least: 256, standard: 8_192, fifo: 20_000, fill: 1_024, cache: 24 << 20,
		pages: 8 << 20, inFlight: 120_000, queues: 10_000}
}

func limitsOf(memory int64) *memoryLimits {
	limits := defaultLimits()
	if memory > 0 {
		limits.cache = min(limits.cache, memory/16)
		limits.pages = min(limits.pages, memory/32)
	}
	return limits
}

// window tracks by key which messages are in memory. Up to cursor, all are in the delivery order, were delivered or are
// delayed. From there to tail, memory holds only messages of quiet tenants, up to ahead.
type window struct {
	cursor, tail int64
	ahead        int64 // below cursor if nothing was read ahead
	early        map[int64]bool
	// Delayed messages are read in order of due time and key. dueAt and dueKey belong to the last one read.
	dueAt, dueKey int64
	dueSeen       int // number of times that delays have ended
	dueRead       int // dueSeen at the latest read of messages whose delay has ended
	generation    int // incremented by each reset, to discard earlier fills
	filling       *fill
	stale         bool // set by a reset: receives wait for the next fill
	counted       int  // in memory.fresh
}

func (w *window) behind() bool { return w.cursor < w.tail || w.behindDelays() }

func (w *window) behindDelays() bool { return w.dueRead < w.dueSeen }

func (w *window) recordRemoved(key int64) {
	f := w.filling
	if f == nil || key <= f.low && !f.due {
		return
	}
	if f.removed == nil {
		f.removed = map[int64]bool{}
	}
	f.removed[key] = true
}

func (x *index) capacity() int {
	limits := &x.broker.memory.limits
	most := limits.standard
	if x.fifo {
		most = limits.fifo
	}

	size := x.order.size()
	others := int(x.broker.memory.fresh.Load()) - size
	if left := limits.total - others; left < most {
		most = max(limits.least, left)
	}
	return max(0, most-size)
}

func (x *index) countFresh() {
	n := x.order.size()
	x.broker.memory.fresh.Add(int64(n - x.window.counted))
	x.window.counted = n
}

// arrive adds a new message. If it is outside the window, a later fill reads it.
func (x *index) arrive(r *record) {
	w := &x.window
	previous := w.tail
	w.tail = r.key
	delayed := r.due > x.broker.clock.nowMilli()
	if delayed {
		x.delays.add(r.due, 1)
	}

	s, isStandard := x.order.(*standardOrder)
	if isStandard {
		s.noteSent(r)
	}
	switch complete := w.cursor == previous; {
	case isStandard && r.due != 0:
		if complete {
			w.cursor = r.key
		}
		x.leaveToDueFill(r.due, delayed)
	case complete && x.capacity() > 0:
		w.cursor = r.key
		x.order.add(x.newMessage(r))
		x.countFresh()
	case isStandard && len(s.noisy) > 0 && previous <= max(w.ahead, w.cursor):
		x.arriveAhead(s, r)
	}
}

func (x *index) leaveToDueFill(due int64, delayed bool) {
	if !delayed {
		x.window.dueSeen++ // the commit took longer than the delay
	}
	if due <= x.window.dueAt {
		x.resetWindow()
	}
}

// arriveAhead adds a quiet tenant's message although earlier messages are not in memory. It leaves a noisy tenant's
// message to a fill from cursor.
func (x *index) arriveAhead(s *standardOrder, r *record) {
	w := &x.window
	if s.isNoisy(r.group) {
		w.ahead = r.key
		return
	}
	if x.capacityAhead(s) == 0 {
		return
	}
	w.ahead = r.key
	w.recordEarly(r.key)
	s.add(x.newMessage(r))
	x.countFresh()
}

func (w *window) recordEarly(key int64) {
	if w.early == nil {
		w.early = map[int64]bool{}
	}
	w.early[key] = true
}

// capacityAhead allows limits.standard fresh messages of quiet tenants, and twice as many with messages of noisy ones.
func (x *index) capacityAhead(s *standardOrder) int {
	l := &x.broker.memory.limits
	left := l.total - int(x.broker.memory.fresh.Load())
	most := min(l.standard-s.main.n-s.late.n, 2*l.standard-s.size(), max(l.least, left))
	return max(0, most)
}

func (x *index) resetWindow() {
	x.order.reset(x.dropContent)
	x.countFresh()
	w := &x.window
	w.generation++
	w.filling = nil
	w.start(x.low(), max(w.tail, x.low()), x.fifo)
}

// start restarts the window: all messages with low < key <= last must be read again.
func (w *window) start(low, last int64, fifo bool) {
	w.cursor = low
	w.ahead = low
	w.tail = last
	w.dueAt, w.dueKey = 0, 0
	w.early = nil
	w.stale = low < last
	if !fifo {
		// cursor does not cover messages whose delay has ended.
		w.dueSeen++
	}
}

type fill struct {
	done       chan struct{}
	err        error // valid once done is closed
	generation int
	floor      int64 // keys up to this one are purged
	low, high  int64
	tail       int64
	limit      int
	delayed    bool // include delayed messages (FIFO only)

	without []string // noisy tenants to skip

	due           bool
	dueAt, dueKey int64
	dueSeen       int
	now           int64 // Unix milliseconds on the broker's clock

	main, late []*record

	// removed holds messages that left the queue during the read. The queue's lock guards it.
	removed map[int64]bool
}

func (x *index) nextFill() *fill {
	w := &x.window
	if w.filling != nil || !w.behind() {
		return nil
	}

	if s, ok := x.order.(*standardOrder); ok && len(s.noisy) > 0 {
		w.filling = x.nextAhead(s)
	}
	if capacity := x.capacity(); w.filling == nil && isWorthAFill(capacity, x.order.size()) {
		w.filling = x.newFill(capacity)
	}
	return w.filling
}

func isWorthAFill(capacity, inMemory int) bool { return capacity > 0 && capacity >= inMemory/4 }

const aheadKeys = 10_000

// nextAhead returns a fill that reads beyond cursor, skipping messages of noisy tenants, or nil. If there is no
// room for a normal fill, it also reads messages whose delay has ended.
func (x *index) nextAhead(s *standardOrder) *fill {
	w := &x.window
	if s.rescan {
		s.rescan = false
		w.ahead = w.cursor
	}

	capacity := x.capacityAhead(s)
	if s.size() == 0 || !isWorthAFill(capacity, s.quiet()) {
		return nil
	}

	low := max(w.ahead, w.cursor)
	readsLate := w.behindDelays() && x.capacity() == 0
	if low >= w.tail && !readsLate {
		return nil
	}

	f := x.newFill(capacity)
	f.low = low
	f.high = min(w.tail, low+aheadKeys)
	f.without = s.noisyIDs()
	f.due = readsLate
	return f
}

func (x *index) newFill(capacity int) *fill {
	w := &x.window
	return &fill{
		done: make(chan struct{}), generation: w.generation, limit: min(capacity, x.broker.memory.limits.fill),
		floor: x.low(), low: w.cursor, high: w.tail, tail: w.tail, delayed: x.fifo,
		due: w.behindDelays(), dueAt: w.dueAt, dueKey: w.dueKey, dueSeen: w.dueSeen,
		now: x.broker.clock.nowMilli(),
	}
}

func (f *fill) read(c *conn, number int64) (err error) {
	if f.low < f.high {
		if f.main, err = f.readMain(c); err != nil {
			return err
		}
	}
	if f.due {
		f.late, err = c.scanDue(number, f.floor, f.tail, f.dueAt, f.dueKey, f.now, f.limit)
	}
	return err
}

func (f *fill) readMain(c *conn) ([]*record, error) {
	if f.without != nil {
		return c.scanWithout(f.low, f.high, f.without, f.limit)
	}
	if !f.delayed {
		rows, plain, err := c.scanPlain(f.low, f.high, f.limit)
		if plain || err != nil {
			return rows, err
		}
	}
	return c.scan(f.low, f.high, f.delayed, f.limit)
}

func (x *index) merge(f *fill) (added int) {
	w := &x.window
	w.stale = false
	added = x.admit(f, f.main) + x.admit(f, f.late)
	w.advance(f)
	if order, ok := x.order.(*fifoOrder); ok && !w.behind() {
		order.complete()
	}
	return added
}

func (w *window) advance(f *fill) {
	if f.low < f.high {
		if f.without == nil {
			w.cursor = f.readUpTo()
		} else {
			w.ahead = max(w.ahead, f.readUpTo())
		}
	}
	if w.cursor >= w.ahead {
		w.early = nil
	}

	if n := len(f.late); n > 0 {
		w.dueAt = f.late[n-1].due
		w.dueKey = f.late[n-1].key
	}
	if f.due && len(f.late) < f.limit {
		w.dueRead = f.dueSeen
	}
}

func (f *fill) readUpTo() int64 {
	if len(f.main) == f.limit {
		return f.main[f.limit-1].key
	}
	return f.high
}

func (x *index) admit(f *fill, rows []*record) (added int) {
	for _, r := range rows {
		if x.skips(f, r) {
			continue
		}
		if f.without != nil && r.due == 0 {
			x.window.recordEarly(r.key)
		}
		x.order.add(x.newMessage(r))
		added++
	}
	x.countFresh()
	return added
}

func (x *index) skips(f *fill, r *record) bool {
	isExpired := r.sent < x.cutoff // left to a sweep
	return isExpired || r.key <= x.low() || x.held[r.key] != nil || f.removed[r.key] || x.window.early[r.key]
}

func newDeadlines() indexed[*message] {
	return indexed[*message]{
		before: func(a, b *message) bool { return a.until < b.until },
		index:  func(m *message) *int { return &m.index },
	}
}
