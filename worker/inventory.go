package worker

import "time"

// inventory is the messages that a worker holds, and what it remembers of others.
type inventory struct {
	*core
	held     map[string]*held // by message id
	groups   map[string]*group
	ready    readyList
	deferred deferredHeap

	turning     int // FIFO groups between two messages
	unconfirmed int // messages in stage deleting

	done     memory[struct{}] // done without a confirmed delete, by message id
	unposted memory[int]      // receives that did not reach the app, by life
}

// makeReady lines up a message that may be started.
func (m *inventory) makeReady(h *held, now time.Time) {
	h.stage, h.readyAt = ready, now
	m.ready.push(h)
	if m.opts.Batch.Window > 0 {
		m.wakeAt(m.windowEnd(h))
	}
}

// windowEnd returns when the window of a batch ends that begins with h: in any
// case while h may still be started.
func (m *inventory) windowEnd(h *held) time.Time {
	end, latest := h.readyAt.Add(m.opts.Batch.Window), h.hiddenFrom.Add(m.opts.VisibilityTimeout*7/16)
	if latest.Before(end) {
		return latest
	}
	return end
}

// forget drops a message from what is held.
func (m *inventory) forget(h *held) {
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
	m.stats.counts.VisibilityExpired++
	notify(m.core, m.events.VisibilityExpired, VisibilityExpired{ID: h.msg.ID, InWork: h.stage == posting})
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

// bytes returns the size of the bodies that wait for a slot.
func (m *inventory) bytes() int { return m.ready.bytes + m.deferred.bytes }

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
