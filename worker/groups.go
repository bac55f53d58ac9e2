package worker

import (
	"time"

	"tendril/queue"
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

// line puts a message of a FIFO queue into its group and reports whether it is
// the first, which may be started.
func (w *Worker) line(h *held) bool {
	if !w.opts.FIFO || h.msg.GroupID == "" {
		return true
	}
	g := w.groups[h.msg.GroupID]
	if g == nil {
		g = &group{id: h.msg.GroupID, active: 1}
		w.groups[g.id] = g
		h.group = g
		return true
	}
	h.group = g
	g.waiting = append(g.waiting, h)
	return false
}

// turn notes that h is being deleted: after the last of those that are active
// the next of its group will want a slot soon.
func (w *Worker) turn(h *held) {
	g := h.group
	if g == nil {
		return
	}
	g.deleting++
	w.turnIfLast(g)
}

// turnIfLast notes that a group is about to go on when all that are active are
// being deleted.
func (w *Worker) turnIfLast(g *group) {
	if g.deleting == g.active && len(g.waiting) > 0 && !g.turning {
		g.turning = true
		w.turning++
	}
}

// advance makes the next message of h's group ready, after h and its batch are
// out of the queue for certain.
func (w *Worker) advance(h *held, now time.Time) {
	g := leaveGroup(h)
	if g == nil {
		return
	}
	g.deleting--
	w.goOn(g, now)
}

// goOn makes the next message of a group ready when no other is active.
func (w *Worker) goOn(g *group, now time.Time) {
	if g.active > 0 {
		w.turnIfLast(g)
		return
	}
	w.unturn(g)
	if len(g.waiting) == 0 {
		delete(w.groups, g.id)
		return
	}
	var next *held
	next, g.waiting = g.waiting[0], g.waiting[1:]
	g.active = 1
	w.makeReady(next, now)
}

// last reports whether the queue hands a message out no more after this receive,
// but dead-letters it. What came out of a dead-letter queue may have brought its
// count along, which tells nothing then.
func (w *Worker) last(h *held) bool {
	return w.opts.FIFO && w.opts.MaxReceives > 0 && h.receives == w.opts.MaxReceives && h.msg.DeadLetterSource == ""
}

// dies reports whether a message failed at its last receive. That has to have
// been so when it was handed over, and to be so still.
func (w *Worker) dies(h *held, res *queue.Result) bool {
	return h.last && w.last(h) && res.Outcome == queue.Failed
}

// SetMaxReceives changes [Options].MaxReceives while the worker runs; 0 when it
// is not known any more. What was raised a moment ago may let a message come
// again behind those that went on without it.
func (w *Worker) SetMaxReceives(n int) {
	w.mu.Lock()
	defer w.unlock()
	w.opts.MaxReceives = n
}

// pass lets the group of a dead message go on without it. Given back, those
// behind it would come again only after it, and perhaps die unposted: they were
// received as often as it was.
func (w *Worker) pass(h *held, now time.Time) {
	if g := leaveGroup(h); g != nil {
		w.goOn(g, now)
	}
}

// disband gives back what waits behind h, which is not done or not known to
// be: the queue will hand the group out again, in order.
func (w *Worker) disband(h *held, now time.Time) {
	g := leaveGroup(h)
	if g == nil {
		return
	}
	if h.stage == deleting {
		g.deleting--
	}
	w.giveBackWaiting(g, now)
	if g.active == 0 {
		delete(w.groups, g.id)
	}
}

// leaveGroup takes a message that does not wait out of its group; nil when it
// is in none.
func leaveGroup(h *held) *group {
	g := h.group
	if g == nil {
		return nil
	}
	h.group = nil
	g.active--
	return g
}

// unturn notes that a group is not, or no longer, about to go on.
func (w *Worker) unturn(g *group) {
	if g.turning {
		g.turning = false
		w.turning--
	}
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
	w.unturn(g)
}
