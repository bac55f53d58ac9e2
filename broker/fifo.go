package broker

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
)

// fifoOrder delivers the messages of a group in order, and only while no earlier one is in flight. Groups take turns,
// first by the key of their first message. After a delivery, a group's turn comes after all groups that have messages
// when it becomes deliverable again.
type fifoOrder struct {
	groups  map[string]*group
	ready   indexed[*group]
	waiting indexed[*group]
	fresh   int
	newest  int64 // key
	takes   int64
	partial bool // some messages dropped by a reset may not have been reread
}

type group struct {
	id       string
	messages []*message       // visible or delayed, in key order
	out      []int64          // sorted keys of taken, unsettled messages
	heap     *indexed[*group] // nil while the group is locked or empty
	index    int

	// The group's turn comes after groups whose first message has a key up to behind; given breaks ties. Before the
	// first take, given is 0 and the key of the first message applies.
	behind, given int64
	lastGiven     int64 // fifoOrder.takes after the latest take; 0 once the next turn is known
}

func (g *group) turnBefore(other *group) bool {
	at, otherAt := g.turnAfter(), other.turnAfter()
	return at < otherAt || at == otherAt && g.given < other.given
}

func (g *group) turnAfter() int64 {
	if g.given == 0 {
		return g.messages[0].key
	}
	return g.behind
}

func (g *group) locked() bool { return len(g.out) > 0 && g.messages[0].key > g.out[0] }

func newFIFO() *fifoOrder {
	index := func(g *group) *int { return &g.index }
	return &fifoOrder{
		groups: map[string]*group{},
		ready:  indexed[*group]{index: index, before: (*group).turnBefore},
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
	if !m.queued && m.eligible() {
		f.queue(m)
	}
	f.forget(m)
}

func (f *fifoOrder) forget(m *message) {
	if m.holds {
		m.holds = false
		m.group.settle(m.key)
	}
	f.place(m.group)
}

func (g *group) hold(m *message) {
	m.holds = true
	at, _ := slices.BinarySearch(g.out, m.key)
	g.out = slices.Insert(g.out, at, m.key)
}

func (g *group) settle(key int64) {
	if g.out[0] == key {
		g.out = g.out[1:]
	} else if at, found := slices.BinarySearch(g.out, key); found {
		g.out = slices.Delete(g.out, at, at+1)
	}
}

func (f *fifoOrder) withdraw(m *message) {
	if !m.queued {
		return
	}
	g := m.group
	if i := slices.Index(g.messages, m); i >= 0 {
		g.messages = slices.Delete(g.messages, i, i+1)
	}
	m.queued = false
	f.place(g)
}

func (f *fifoOrder) resume(m *message) {
	m.group.hold(m)
	f.place(m.group)
}

func (f *fifoOrder) queue(m *message) {
	g := m.group
	m.queued = true
	f.newest = max(f.newest, m.key)
	at, _ := slices.BinarySearchFunc(g.messages, m.key, func(o *message, key int64) int {
		return cmp.Compare(o.key, key)
	})
	g.messages = slices.Insert(g.messages, at, m)
	f.place(g)
}

// place puts the group in the heap for its first eligible message, or in neither heap while it is locked or empty. It
// deletes an empty group, unless the group must keep its turn for messages to be reread.
func (f *fifoOrder) place(g *group) {
	for len(g.messages) > 0 && !g.messages[0].eligible() {
		f.pop(g)
	}
	if g.heap != nil {
		heap.Remove(g.heap, g.index)
		g.heap = nil
	}

	switch {
	case len(g.messages) == 0:
		f.deleteEmpty(g)
		return
	case g.locked():
		return
	case g.messages[0].due != 0:
		g.heap = &f.waiting
	default:
		g.heap = &f.ready
		if g.lastGiven > 0 {
			g.behind = f.newest
			g.given = g.lastGiven
			g.lastGiven = 0
		}
	}
	heap.Push(g.heap, g)
}

func (f *fifoOrder) deleteEmpty(g *group) {
	hasTurn := g.given > 0 || g.lastGiven > 0
	keepsTurn := f.partial && hasTurn && len(f.groups) < maxEmptyGroups
	if len(g.out) == 0 && f.groups[g.id] == g && !keepsTurn {
		delete(f.groups, g.id)
	}
}

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
	for t.wants(len(taken)) && f.ready.Len() > 0 {
		g := f.ready.first()
		taken = f.takeFrom(g, t, taken)
		f.place(g)
	}
	return taken
}

// takeFrom stops at a message to be dead-lettered, because later ones wait until it has moved.
func (f *fifoOrder) takeFrom(g *group, t takeRequest, taken []*message) []*message {
	firstOut := int64(math.MaxInt64)
	if len(g.out) > 0 {
		firstOut = g.out[0]
	}

	before := len(taken)
	for t.wants(len(taken)) && len(g.messages) > 0 {
		m := g.messages[0]
		if m.due > t.now || m.key > firstOut {
			break
		}
		f.pop(g)
		if !m.eligible() {
			continue
		}
		decision := t.decide(m)
		if decision == skipIt {
			continue
		}
		g.hold(m)
		if decision == deadLetterIt {
			break
		}
		taken = append(taken, m)
	}

	if len(taken) > before {
		f.takes++
		g.lastGiven = f.takes
	}
	return taken
}

func (f *fifoOrder) promote(now int64) {
	for g := f.waiting.first(); g != nil && g.messages[0].due <= now; g = f.waiting.first() {
		g.messages[0].due = 0
		f.place(g)
	}
}

// maxEmptyGroups limits the empty groups that keep their turn after a reset.
const maxEmptyGroups = 20_000

func (f *fifoOrder) reset(drop func(*message)) {
	f.partial = true
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

// complete ends a reset. Empty groups no longer need to keep their turn.
func (f *fifoOrder) complete() {
	if !f.partial {
		return
	}
	f.partial = false
	maps.DeleteFunc(f.groups, func(_ string, g *group) bool { return len(g.messages)+len(g.out) == 0 })
}

func (f *fifoOrder) size() int { return f.fresh }

func (f *fifoOrder) deliverable(now int64) bool {
	f.promote(now)
	return f.ready.Len() > 0
}
