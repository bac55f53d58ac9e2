package worker

import (
	"container/heap"
	"slices"
	"time"

	"tendril/queue"
)

// How soon a message that the deliverer postponed is asked for again: when it
// named no time, and the bounds of the time that it may name.
const (
	postponeUsual    = 100 * time.Millisecond
	postponeShortest = 10 * time.Millisecond
	postponeLongest  = time.Minute
)

// How many postponed messages are kept, and how many times PrefetchBytes their
// bodies may have. The youngest beyond that is given back, but not to come
// again before surplusPause: else the queue would hand it out in a circle,
// and count a receive each time.
const (
	maxPostponed      = 1000
	postponedPerBytes = 8
	surplusPause      = postponeLongest
)

// aside is the messages that were postponed, as a heap: the first one to be
// asked for again is at its top.
type aside struct {
	list  []*held
	bytes int
}

// Len, Less, Swap, Push and Pop make it a [heap.Interface].
func (a *aside) Len() int           { return len(a.list) }
func (a *aside) Less(i, j int) bool { return a.list[i].again.Before(a.list[j].again) }

// Swap exchanges two messages and keeps their places right.
func (a *aside) Swap(i, j int) {
	a.list[i], a.list[j] = a.list[j], a.list[i]
	a.list[i].place, a.list[j].place = i, j
}

// Push appends a *held.
func (a *aside) Push(x any) {
	h := x.(*held)
	h.place = len(a.list)
	a.list = append(a.list, h)
	a.bytes += len(h.msg.Body)
}

// Pop takes the last one off.
func (a *aside) Pop() any {
	n := len(a.list) - 1
	h := a.list[n]
	a.list[n] = nil
	a.list = a.list[:n]
	a.bytes -= len(h.msg.Body)
	return h
}

// next returns when the first one is to be asked for again, zero when there is none.
func (a *aside) next() time.Time {
	if len(a.list) == 0 {
		return time.Time{}
	}
	return a.list[0].again
}

// youngest returns the one that was postponed for the first time last.
func (a *aside) youngest() *held {
	return slices.MaxFunc(a.list, func(x, y *held) int { return x.postponed.Compare(y.postponed) })
}

// surplus reports whether there are more than may be kept.
func (w *Worker) surplus() bool {
	return w.aside.Len() > maxPostponed || w.aside.Len() > 1 && w.aside.bytes > postponedPerBytes*w.opts.PrefetchBytes
}

// keepable reports whether a message that was not posted may stay in hand.
func (w *Worker) keepable(h *held, now time.Time) bool {
	return w.keeping(now) && w.workCtx.Err() == nil && !h.spent(w.opts.VisibilityTimeout, now)
}

// postpone keeps a message aside, hidden, and lines it up again after a time.
func (w *Worker) postpone(h *held, after time.Duration, now time.Time) {
	if h.postponed.IsZero() {
		h.postponed = now
	}
	h.stage, h.again = postponed, now.Add(after)
	heap.Push(&w.aside, h)
	w.prolong(h, now)
	for w.surplus() {
		h := w.aside.youngest()
		heap.Remove(&w.aside, h.place)
		w.disband(h, now)
		w.giveBackFor(h, surplusPause, now)
	}
	w.wakeAt(w.aside.next())
	w.wakeAt(w.changes.next())
}

// resume lines up what was postponed until now.
func (w *Worker) resume(now time.Time) {
	for t := w.aside.next(); !t.IsZero() && !now.Before(t); t = w.aside.next() {
		w.makeReady(heap.Pop(&w.aside).(*held), now)
	}
}

// unkeep gives back a postponed message, or all of them if h is nil.
func (w *Worker) unkeep(h *held, now time.Time) {
	if h != nil {
		heap.Remove(&w.aside, h.place)
		w.giveBackGroup(h, now)
		return
	}
	for w.aside.Len() > 0 {
		w.giveBackGroup(w.aside.Pop().(*held), now)
	}
}

// stepAside postpones once more what was postponed before and found no slot in
// time, and reports whether it did.
func (w *Worker) stepAside(h *held, now time.Time) bool {
	if h.postponed.IsZero() || h.lapsed || !now.Before(h.hiddenUntil) || !w.keepable(h, now) {
		return false
	}
	w.postpone(h, postponeUsual, now)
	return true
}

// putOff keeps those of a delivery that were postponed, or gives them back, as it
// does with those that did not reach the app. It begins with the last one, so that
// none overtakes another of its FIFO group.
func (w *Worker) putOff(batch []*held, results []queue.Result, actions []action, now time.Time) {
	for i := len(batch) - 1; i >= 0; i-- {
		if results[i].Outcome == queue.Unreached && actions[i].verb == surrender {
			w.giveBackGroup(batch[i], now)
		}
		if results[i].Outcome != queue.Postponed {
			continue
		}
		h, after := batch[i], time.Duration(0)
		behind, broken := before(batch, actions, i)
		switch {
		case actions[i].verb != keep || broken:
			w.giveBackGroup(h, now)
		case behind:
			w.waitAgain(h)
		default:
			after = actions[i].after
			w.postpone(h, after, now)
		}
		w.status.counts.Postponed++
		if f := w.events.Postponed; f != nil {
			event := Postponed{ID: h.msg.ID, GroupID: h.msg.GroupID, Reason: results[i].Reason, Kept: h.stage != gone,
				For:       after,
				Throttled: h.throttled, Status: results[i].Status, Duration: now.Sub(h.startedAt)}
			w.note(func() { f(event) })
		}
	}
}

// before looks at what is ahead of a message in its batch and FIFO group:
// behind tells that there is something, broken that one of it neither is done
// nor stays here.
func before(batch []*held, actions []action, i int) (behind, broken bool) {
	if batch[i].group == nil {
		return false, false
	}
	for j, h := range batch[:i] {
		if h.msg.GroupID == batch[i].msg.GroupID {
			behind = true
			broken = broken || actions[j].verb != remove && actions[j].verb != keep
		}
	}
	return behind, broken
}

// waitAgain puts a message that was not tried in front of those that wait for
// their FIFO group.
func (w *Worker) waitAgain(h *held) {
	g := h.group
	g.active--
	h.stage = waiting
	g.waiting = slices.Insert(g.waiting, 0, h)
	w.turnIfLast(g)
}
