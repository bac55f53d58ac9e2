package broker

import (
	"cmp"
	"container/heap"
	"slices"
)

// fifoOrder is the order of a FIFO queue: within a message group strictly in order, and
// none while one of the group is out; among groups the one with the oldest
// message first.
type fifoOrder struct {
	groups  map[string]*group
	ready   groupHeap // by the key of their first message
	waiting groupHeap // those whose first message is delayed, by its end
	fresh   int
}

// group is a message group with messages in memory.
type group struct {
	id       string
	messages []*message // visible or delayed, in key order
	out      int        // those taken and not settled
	heap     *groupHeap // where it waits; nil while it is locked or empty
	index    int
}

func newFIFO() *fifoOrder {
	f := &fifoOrder{groups: map[string]*group{}}
	f.waiting.byDue = true
	return f
}

func (f *fifoOrder) group(id string) *group {
	g := f.groups[id]
	if g == nil {
		g = &group{id: id}
		f.groups[id] = g
	}
	return g
}

func (f *fifoOrder) add(m *message) {
	f.fresh++
	f.queue(m)
}

func (f *fifoOrder) requeue(m *message) {
	f.unhold(m)
	if !m.queued && m.idle() {
		f.queue(m)
	}
	f.place(m.group)
}

func (f *fifoOrder) forget(m *message) {
	f.unhold(m)
	f.place(m.group)
}

func (f *fifoOrder) resume(m *message) {
	m.holds = true
	m.group.out++
	f.place(m.group)
}

func (f *fifoOrder) unhold(m *message) {
	if m.holds {
		m.holds = false
		m.group.out--
	}
}

// queue puts a message at its place in its group.
func (f *fifoOrder) queue(m *message) {
	g := m.group
	m.queued = true
	at, _ := slices.BinarySearchFunc(g.messages, m.key, func(o *message, key int64) int {
		return cmp.Compare(o.key, key)
	})
	g.messages = slices.Insert(g.messages, at, m)
	f.place(g)
}

// place puts a group where its state says: among the ready or the waiting
// ones, or nowhere.
func (f *fifoOrder) place(g *group) {
	for len(g.messages) > 0 && !g.messages[0].idle() {
		f.pop(g)
	}
	if g.heap != nil {
		heap.Remove(g.heap, g.index)
	}
	switch {
	case g.out > 0:
	case len(g.messages) == 0:
		if f.groups[g.id] == g {
			delete(f.groups, g.id)
		}
	case g.messages[0].due != 0:
		heap.Push(&f.waiting, g)
	default:
		heap.Push(&f.ready, g)
	}
}

// pop removes the first message of a group.
func (f *fifoOrder) pop(g *group) *message {
	m := g.messages[0]
	g.messages[0] = nil
	g.messages = g.messages[1:]
	m.queued = false
	if m.fresh() {
		f.fresh--
	}
	return m
}

func (f *fifoOrder) take(t takeRequest) []*message {
	f.promote(t.now)
	var taken []*message
	for len(taken) < t.limit && f.ready.Len() > 0 {
		g := f.ready.groups[0]
		taken = f.takeFrom(g, t, taken)
		f.place(g)
	}
	return taken
}

// takeFrom takes the first messages of one group, as many as may be taken;
// a dead-lettered one ends it, since those after it wait until it has moved.
func (f *fifoOrder) takeFrom(g *group, t takeRequest, taken []*message) []*message {
	for len(taken) < t.limit && len(g.messages) > 0 {
		m := g.messages[0]
		if m.due > t.now {
			break
		}
		f.pop(g)
		if !m.idle() {
			continue
		}
		v := t.decide(m)
		if v == skipIt {
			continue
		}
		m.holds = true
		g.out++
		if v == deadLetterIt {
			break
		}
		taken = append(taken, m)
	}
	return taken
}

func (f *fifoOrder) promote(now int64) {
	for f.waiting.Len() > 0 && f.waiting.groups[0].messages[0].due <= now {
		g := f.waiting.groups[0]
		g.messages[0].due = 0
		f.place(g)
	}
}

func (f *fifoOrder) reset(drop func(*message)) {
	for _, g := range f.groups {
		g.messages = slices.DeleteFunc(g.messages, func(m *message) bool {
			if !m.fresh() {
				return false
			}
			m.queued = false
			drop(m)
			return true
		})
		f.place(g)
	}
	f.fresh = 0
}

func (f *fifoOrder) clear(drop func(*message)) {
	f.reset(drop)
	for _, g := range f.groups {
		// Messages on their way out still point to their group.
		g.messages, g.heap, g.out = nil, nil, 0
	}
	*f = *newFIFO()
}

func (f *fifoOrder) size() int { return f.fresh }

func (f *fifoOrder) deliverable() bool { return f.ready.Len() > 0 }

// groupHeap orders groups by their first message.
type groupHeap struct {
	groups []*group
	byDue  bool
}

func (h *groupHeap) Len() int { return len(h.groups) }

func (h *groupHeap) Less(i, j int) bool {
	a, b := h.groups[i].messages[0], h.groups[j].messages[0]
	if h.byDue {
		return a.due < b.due
	}
	return a.key < b.key
}

func (h *groupHeap) Swap(i, j int) {
	h.groups[i], h.groups[j] = h.groups[j], h.groups[i]
	h.groups[i].index, h.groups[j].index = i, j
}

// Push implements [heap.Interface].
func (h *groupHeap) Push(x any) {
	g := x.(*group)
	g.heap, g.index = h, len(h.groups)
	h.groups = append(h.groups, g)
}

// Pop implements [heap.Interface].
func (h *groupHeap) Pop() any {
	last := len(h.groups) - 1
	g := h.groups[last]
	h.groups[last] = nil
	h.groups = h.groups[:last]
	g.heap = nil
	return g
}
