package worker

import (
	"slices"
	"time"
)

// group is the messages of one FIFO message group that are held here, in
// order: those that are ready, in work, postponed or being deleted (one, or
// those of one batch), and those that wait for them. A queue gives out no message of a
// group that has one in flight, so they all came with one receive.
type group struct {
	id       string
	active   int // ready, in work, postponed or being deleted
	deleting int // of them
	waiting  []*held
	// turning: all that are active are being deleted and the next one is about
	// to start.
	turning bool
}

// joinGroup puts a message of a FIFO queue into its group and reports whether it is
// the first, which may be started.
func (m *inventory) joinGroup(h *held) bool {
	if !m.opts.FIFO || h.msg.GroupID == "" {
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

// deleteBegins notes that h is being deleted: after the last of those that are active
// the next of its group will want a slot soon.
func (m *inventory) deleteBegins(h *held) {
	if g := h.group; g != nil {
		g.deleting++
		m.turnIfLast(g)
	}
}

// turnIfLast notes that a group is about to go on when all that are active are
// being deleted.
func (m *inventory) turnIfLast(g *group) {
	if g.deleting == g.active && len(g.waiting) > 0 && !g.turning {
		g.turning = true
		m.turning++
	}
}

// deleteEnds makes the next message of h's group ready, after h and its batch are
// out of the queue for certain.
func (m *inventory) deleteEnds(h *held, now time.Time) {
	if g := h.group; g != nil {
		g.deleting--
		m.leaveGroup(h, now)
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

// takeWaiting takes what waits out of a group.
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
// but dead-letters it. What came out of a dead-letter queue may have brought its
// count along, which tells nothing then.
func (m *inventory) lastReceive(h *held) bool {
	return m.opts.FIFO && m.opts.MaxReceives > 0 && h.receives == m.opts.MaxReceives && h.msg.DeadLetterSource == ""
}
