package periodic

import (
	"sync"
	"time"

	"tendril/queue"
)

// Run is one run of a task, as far as this instance knows of it.
type Run struct {
	Task        string
	ScheduledAt time.Time
	// ID is the ID of the [registry.Run]; "" when another instance enqueued it, or this
	// one in a try that had no answer.
	ID     string
	Manual bool
	// Skipped says why it was left out; "" when it was not.
	Skipped Reason
	// EnqueuedAt is zero, and Lateness 0, when another instance enqueued it or
	// it was not enqueued. Lateness counts from the time it was due, jitter included.
	EnqueuedAt time.Time
	Lateness   time.Duration
	MessageID  string
	// Resent: there may be two messages of it.
	Resent bool
	// Attempts counts deliveries, 0 before the first. Result is the last one's, and
	// FinishedAt when it ended.
	Attempts   int
	Result     queue.Result
	FinishedAt time.Time
}

// Outcome is how one delivery of a run's message ended.
type Outcome struct {
	// Task and ScheduledAt are what [queue.ParseRun] says of the message.
	Task        string
	ScheduledAt time.Time
	MessageID   string
	Attempt     int       // the message's receive count
	At          time.Time // when it ended
	Result      queue.Result
}

// history is a ring of runs.
type history struct {
	mu   sync.Mutex
	ring []Run
	next int
	most int
	// recorded counts changes.
	recorded int64
}

// add remembers a run. One that was delivered before it was known to be
// enqueued keeps its outcome.
func (h *history) add(r Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	if old := h.find(r.Task, r.ScheduledAt, r.MessageID); old != nil && old.ID == "" && r.MessageID != "" {
		r.Attempts, r.Result, r.FinishedAt = old.Attempts, old.Result, old.FinishedAt
		*old = r
		return
	}
	h.push(r)
}

// already remembers a run that was found enqueued, by another instance or by a
// try of ours without an answer, unless it is known.
func (h *history) already(task string, at time.Time, messageID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	h.seen(task, at, messageID)
}

// seen returns the entry of a run, which it adds if it is missing.
// Called with the lock held.
func (h *history) seen(task string, at time.Time, messageID string) *Run {
	if r := h.find(task, at, messageID); r != nil {
		return r
	}
	return h.push(Run{Task: task, ScheduledAt: at, MessageID: messageID})
}

func (h *history) push(r Run) *Run {
	if len(h.ring) < h.most {
		h.ring = append(h.ring, r)
		return &h.ring[len(h.ring)-1]
	}
	slot := &h.ring[h.next]
	*slot, h.next = r, (h.next+1)%len(h.ring)
	return slot
}

func (h *history) find(task string, at time.Time, messageID string) *Run {
	for i := range h.ring {
		r := &h.ring[i]
		if r.Task == task && r.ScheduledAt.Equal(at) && r.MessageID == messageID {
			return r
		}
	}
	return nil
}

// messageOf returns the message of a scheduled run, "" when none is known.
func (h *history) messageOf(task string, at time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.ring {
		if r := &h.ring[i]; r.Task == task && r.ScheduledAt.Equal(at) && !r.Manual && r.MessageID != "" {
			return r.MessageID
		}
	}
	return ""
}

// outcome notes how a delivery ended, also of a run that another instance
// enqueued.
func (h *history) outcome(o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	r := h.seen(o.Task, o.ScheduledAt, o.MessageID)
	r.Attempts, r.Result, r.FinishedAt = max(r.Attempts, o.Attempt), o.Result, o.At
}

// count returns the number of changes.
func (h *history) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recorded
}

// runs returns the runs of a task, or of all tasks for "", the newest first.
func (h *history) runs(task string) []Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	var runs []Run
	for i := range h.ring {
		r := h.ring[(h.next-1-i+2*len(h.ring))%len(h.ring)]
		if task == "" || r.Task == task {
			runs = append(runs, r)
		}
	}
	return runs
}
