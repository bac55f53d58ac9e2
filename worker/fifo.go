package worker

import "time"

// group is the messages of one FIFO message group that are held here, in
// order: one head that is ready, in work or being deleted, and those that
// wait for it. A queue gives out no message of a group that has one in flight,
// so they all came with one receive.
type group struct {
	id      string
	head    *held
	waiting []*held
	// turning: the head is being deleted and the next one is about to start.
	turning bool
}

// line puts a message of a FIFO queue into its group and reports whether it is
// the head, which may be started.
func (w *Worker) line(h *held) bool {
	if !w.opts.FIFO || h.msg.GroupID == "" {
		return true
	}
	g := w.groups[h.msg.GroupID]
	if g == nil {
		g = &group{id: h.msg.GroupID, head: h}
		w.groups[g.id] = g
		h.group = g
		return true
	}
	h.group = g
	g.waiting = append(g.waiting, h)
	return false
}

// turn notes that h, a head, is being deleted: the next of its group will
// want a slot soon.
func (w *Worker) turn(h *held) {
	if g := h.group; g != nil && g.head == h && len(g.waiting) > 0 && !g.turning {
		g.turning = true
		w.turning++
	}
}

// advance makes the next message of h's group ready, after h is out of the
// queue for certain.
func (w *Worker) advance(h *held, now time.Time) {
	g := w.leaveGroup(h)
	if g == nil {
		return
	}
	if len(g.waiting) == 0 {
		delete(w.groups, g.id)
		return
	}
	g.head, g.waiting = g.waiting[0], g.waiting[1:]
	w.makeReady(g.head, now)
}

// disband gives back what waits behind h, which is not done or not known to
// be: the queue will hand the group out again, in order.
func (w *Worker) disband(h *held, now time.Time) {
	if g := w.leaveGroup(h); g != nil {
		w.giveBackWaiting(g, now)
		delete(w.groups, g.id)
	}
}

// leaveGroup takes a head out of its group; nil when h is none.
func (w *Worker) leaveGroup(h *held) *group {
	g := h.group
	if g == nil || g.head != h {
		return nil
	}
	h.group = nil
	if g.turning {
		g.turning = false
		w.turning--
	}
	return g
}

// giveBackWaiting gives back what waits in a group; the last one goes first,
// so that none overtakes.
func (w *Worker) giveBackWaiting(g *group, now time.Time) {
	for i := len(g.waiting) - 1; i >= 0; i-- {
		h := g.waiting[i]
		h.group = nil
		w.giveBack(h, now)
	}
	g.waiting = nil
	if g.turning {
		g.turning = false
		w.turning--
	}
}
