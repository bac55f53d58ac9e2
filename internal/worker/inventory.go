package worker

import (
	"slices"
	"time"
)

// inventory is the messages that a worker holds, and its memory of others.
type inventory struct {
	core     *core
	held     map[string]*held // by message id
	groups   map[string]*group
	failing  map[string]failingGroup // by the id of the group
	ready    readyList
	deferred deferredHeap

	bytes       int // of all held messages
	turning     int // FIFO groups between two messages
	unconfirmed int // messages in stage deleting

	done     memory[struct{}] // done without a confirmed delete, by message id
	unposted memory[int]      // receives that did not reach the app, by life
}

func newInventory(c *core) *inventory {
	return &inventory{core: c, held: make(map[string]*held), groups: make(map[string]*group),
		failing: make(map[string]failingGroup), done: newMemory[struct{}](remembered), unposted: newMemory[int](remembered)}
}

// makeReady lines up a message that may be started.
func (m *inventory) makeReady(h *held, now time.Time) {
	h.stage, h.readyAt = ready, now
	m.ready.push(h)
	if m.core.opts.Batch.Window > 0 {
		m.core.wakeAt(m.windowEnd(h))
	}
}

// windowEnd returns when the window of a batch ends that begins with h: in any
// case while h may still be started.
func (m *inventory) windowEnd(h *held) time.Time {
	return earlier(h.readyAt.Add(m.core.opts.Batch.Window), h.hiddenFrom.Add(m.core.opts.VisibilityTimeout*7/16))
}

// hold adds a message.
func (m *inventory) hold(h *held) {
	m.held[h.msg.ID] = h
	m.bytes += h.size()
}

// forget drops a message.
func (m *inventory) forget(h *held) {
	if h.stage != gone {
		m.bytes -= h.size()
	}
	h.stage = gone
	if m.held[h.msg.ID] == h {
		delete(m.held, h.msg.ID)
	}
}

// expireVisibility notes, once, that a receipt's visibility ran out.
func (m *inventory) expireVisibility(h *held) {
	if h.lapsed {
		return
	}
	h.lapsed = true
	m.core.stats.counts.VisibilityExpired++
	notify(m.core, m.core.events.VisibilityExpired, VisibilityExpired{ID: h.msg.ID, InWork: h.stage == posting})
}

// skip notes a receive of a message that never reached the app; counted tells
// that it is among those that the queue counts.
func (m *inventory) skip(h *held, counted bool) {
	id := life(h.msg.ID, h.receives, h.receivesHere)
	n := m.unposted.values[id]
	if counted {
		n++
	}
	m.unposted.put(id, n)
}

// failingGroup is a FIFO group whose first message failed.
type failingGroup struct {
	until time.Time // until when it may come again
	// urgent: those behind it may have used up half of their receives.
	urgent bool
}

// rememberFailing is for how many visibility timeouts a failing group is remembered after it may
// come again: other workers may have it meanwhile.
const rememberFailing = 4

// fails notes that the first message of a FIFO group is to come again at a time. Where a receive
// counts although its message is returned, those behind it should not come along.
func (m *inventory) fails(h *held, again time.Time) {
	if m.core.opts.FIFO && !m.core.opts.UncountedReturns && h.msg.GroupID != "" {
		m.failing[h.msg.GroupID] = failingGroup{again.Add(rememberFailing * m.core.opts.VisibilityTimeout),
			2*h.receives >= m.core.opts.MaxReceives}
	}
}

// goesOn notes that a FIFO group got past the message that failed.
func (m *inventory) goesOn(group string) { delete(m.failing, group) }

// oneAtATime reports whether messages are to be received one by one, since a receive of several
// could bring a message that fails together with those behind it. While the queue is full, when
// that takes ten times the calls, it is only for a group that is urgent.
func (m *inventory) oneAtATime(now time.Time, full bool) bool {
	found := false
	for group, f := range m.failing {
		if !now.Before(f.until) {
			delete(m.failing, group)
			continue
		}
		found = found || f.urgent || !full
	}
	return found
}

// readyList is the messages that may be started: first in, first out.
type readyList struct {
	list  []*held
	head  int
	bytes int
}

func (l *readyList) len() int { return len(l.list) - l.head }

func (l *readyList) push(h *held) {
	if l.head > 64 && l.head*2 > len(l.list) {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, h)
	l.bytes += len(h.msg.Body)
}

// first returns the head, nil when empty.
func (l *readyList) first() *held {
	if l.len() == 0 {
		return nil
	}
	return l.list[l.head]
}

// pop takes the head, nil when empty.
func (l *readyList) pop() *held {
	h := l.first()
	if h == nil {
		return nil
	}
	l.bytes -= len(h.msg.Body)
	l.list[l.head] = nil
	l.head++
	if l.head == len(l.list) {
		l.list, l.head = l.list[:0], 0
	}
	return h
}

// memory keeps a value for each of the names used last, up to a bound.
type memory[V any] struct {
	bound  int
	values map[string]V
	order  []string // oldest first; may hold names that were forgotten
}

// remembered is how many messages a worker remembers: those that were done without
// a confirmed delete, and those whose receives did not all reach the app.
const remembered = 10000

func newMemory[V any](bound int) memory[V] {
	return memory[V]{bound: bound, values: make(map[string]V)}
}

func (m *memory[V]) put(name string, v V) {
	if _, ok := m.values[name]; !ok {
		m.order = append(m.order, name)
	}
	m.values[name] = v
	for len(m.values) > m.bound || len(m.order) > 2*m.bound {
		delete(m.values, m.order[0])
		m.order = m.order[1:]
	}
}

// joinGroup puts a message of a FIFO queue into its group and reports whether it is
// the first, which may be started.
func (m *inventory) joinGroup(h *held) bool {
	if !m.core.opts.FIFO || h.msg.GroupID == "" {
		return true
	}
	g := m.groups[h.msg.GroupID]
	if g == nil {
		h.group = &group{id: h.msg.GroupID, active: 1}
		m.groups[h.msg.GroupID] = h.group
		return true
	}
	h.group = g
	g.waiting = append(g.waiting, h)
	return false
}

// turnIfLast notes that a group is about to go on when all that are active are
// being deleted.
func (m *inventory) turnIfLast(g *group) {
	if g.deleting == g.active && len(g.waiting) > 0 && !g.turning {
		g.turning = true
		m.turning++
	}
}

// leaveGroup lets the group of a message go on without it. The next one is made ready
// when no other is active.
func (m *inventory) leaveGroup(h *held, now time.Time) {
	g := h.group
	if g == nil {
		return
	}
	h.group = nil
	g.active--
	if g.active > 0 {
		m.turnIfLast(g)
		return
	}
	m.endTurn(g)
	if len(g.waiting) == 0 {
		delete(m.groups, g.id)
		return
	}
	next := g.waiting[0]
	g.waiting, g.active = g.waiting[1:], 1
	m.makeReady(next, now)
}

// disband takes a message that is not done, or not known to be, out of its group and
// returns those that wait behind it: the queue will hand the group out again, in order.
func (m *inventory) disband(h *held) (waiting []*held) {
	g := h.group
	if g == nil {
		return nil
	}
	h.group = nil
	g.active--
	if h.stage == deleting {
		g.deleting--
	}
	waiting = m.takeWaiting(g)
	if g.active == 0 {
		delete(m.groups, g.id)
	}
	return waiting
}

// takeWaiting takes the waiting messages out of a group.
func (m *inventory) takeWaiting(g *group) (waiting []*held) {
	for _, h := range g.waiting {
		h.group = nil
	}
	waiting, g.waiting = g.waiting, nil
	m.endTurn(g)
	return waiting
}

// endTurn notes that a group is not, or no longer, about to go on.
func (m *inventory) endTurn(g *group) {
	if g.turning {
		g.turning = false
		m.turning--
	}
}

// waitAgain puts a message that was not tried in front of those that wait for
// their FIFO group.
func (m *inventory) waitAgain(h *held) {
	g := h.group
	g.active--
	h.stage = waiting
	g.waiting = slices.Insert(g.waiting, 0, h)
	m.turnIfLast(g)
}

// lastReceive reports whether the queue hands a message out no more after this receive,
// but dead-letters it. A message that came out of a dead-letter queue may have brought its
// count along, which then says nothing.
func (m *inventory) lastReceive(h *held) bool {
	return m.core.opts.FIFO && m.core.opts.MaxReceives > 0 && h.receives == m.core.opts.MaxReceives && h.msg.DeadLetterSource == ""
}

// How soon a message that the deliverer postponed is asked for again: when it
// named no time, and the bounds of the time that it may name.
const (
	postponeUsual    = 100 * time.Millisecond
	postponeShortest = 10 * time.Millisecond
	postponeLongest  = time.Minute
)

// How many postponed messages are kept, and how many times PrefetchBytes their
// bodies may have. The youngest beyond that is returned, but not to come
// again before surplusPause: else the queue would hand it out in a circle,
// and count a receive each time.
const (
	maxPostponed      = 1000
	postponedPerBytes = 8
	surplusPause      = postponeLongest
)

// deferredHeap is the messages that were postponed. The first one to be asked for
// again is at its top.
type deferredHeap struct {
	list  []*held
	bytes int
}

// Len, Less, Swap, Push and Pop make it a [heap.Interface] of *held, which know their places.
func (d *deferredHeap) Len() int           { return len(d.list) }
func (d *deferredHeap) Less(i, j int) bool { return d.list[i].again.Before(d.list[j].again) }

func (d *deferredHeap) Swap(i, j int) {
	d.list[i], d.list[j] = d.list[j], d.list[i]
	d.list[i].place, d.list[j].place = i, j
}

func (d *deferredHeap) Push(x any) {
	h := x.(*held)
	h.place = len(d.list)
	d.list = append(d.list, h)
	d.bytes += len(h.msg.Body)
}

func (d *deferredHeap) Pop() any {
	n := len(d.list) - 1
	h := d.list[n]
	d.list[n] = nil
	d.list = d.list[:n]
	d.bytes -= len(h.msg.Body)
	return h
}

// next returns when the first one is to be asked for again, zero when there is none.
func (d *deferredHeap) next() time.Time {
	if len(d.list) == 0 {
		return time.Time{}
	}
	return d.list[0].again
}

// youngest returns the one that was postponed for the first time last.
func (d *deferredHeap) youngest() *held {
	return slices.MaxFunc(d.list, func(x, y *held) int { return x.postponedAt.Compare(y.postponedAt) })
}
