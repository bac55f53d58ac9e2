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
	ready   indexed[*group] // by the key of their first message
	waiting indexed[*group] // those whose first message is delayed, by its end
	fresh   int
}

// group is a message group with messages in memory.
type group struct {
	id       string
	messages []*message       // visible or delayed, in key order
	out      int              // those taken and not settled
	heap     *indexed[*group] // where it waits; nil while it is locked or empty
	index    int
}

func newFIFO() *fifoOrder {
	index := func(g *group) *int { return &g.index }
	return &fifoOrder{
		groups: map[string]*group{},
		ready: indexed[*group]{index: index,
			before: func(a, b *group) bool { return a.messages[0].key < b.messages[0].key }},
		waiting: indexed[*group]{index: index,
			before: func(a, b *group) bool { return a.messages[0].due < b.messages[0].due }},
	}
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
	if !m.queued && m.idle() {
		f.queue(m)
	}
	f.forget(m)
}

func (f *fifoOrder) forget(m *message) {
	if m.holds {
		m.holds = false
		m.group.out--
	}
	f.place(m.group)
}

func (f *fifoOrder) resume(m *message) {
	m.holds = true
	m.group.out++
	f.place(m.group)
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
		g.heap = nil
	}
	switch {
	case g.out > 0:
	case len(g.messages) == 0:
		if f.groups[g.id] == g {
			delete(f.groups, g.id)
		}
	case g.messages[0].due != 0:
		g.heap = &f.waiting
	default:
		g.heap = &f.ready
	}
	if g.heap != nil {
		heap.Push(g.heap, g)
	}
}

// pop removes the first message of a group.
func (f *fifoOrder) pop(g *group) {
	m := g.messages[0]
	g.messages[0] = nil
	g.messages = g.messages[1:]
	m.queued = false
	if m.fresh() {
		f.fresh--
	}
}

func (f *fifoOrder) take(t takeRequest) []*message {
	f.promote(t.now)
	var taken []*message
	for len(taken) < t.limit && f.ready.Len() > 0 {
		g := f.ready.first()
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

// promote makes those deliverable whose delay has ended.
func (f *fifoOrder) promote(now int64) {
	for g := f.waiting.first(); g != nil && g.messages[0].due <= now; g = f.waiting.first() {
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

func (f *fifoOrder) size() int { return f.fresh }

func (f *fifoOrder) deliverable(now int64) bool {
	f.promote(now)
	return f.ready.Len() > 0
}
