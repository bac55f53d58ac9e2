package periodic

import (
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// Run is a run as known to this instance.
type Run struct {
	Task        string
	ScheduledAt time.Time
	// ID and EnqueuedAt are zero if another instance, or a try without a response, enqueued the run. EnqueuedAt is also
	// zero for a skipped run.
	ID      string
	Manual  bool
	Skipped Reason
	// Lateness counts from the due time, which includes jitter.
	EnqueuedAt time.Time
	Lateness   time.Duration
	MessageID  string
	Resent     bool // there may be two messages
	// Attempts is the receive count of the last delivery here, which Result and FinishedAt describe.
	Attempts   int
	Result     queue.Result
	FinishedAt time.Time
}

// Outcome is the result of a delivery of a run.
type Outcome struct {
	Task        string
	ScheduledAt time.Time
	MessageID   string
	Attempt     int // receive count
	At          time.Time
	Result      queue.Result
}

type history struct {
	mu       sync.Mutex
	ring     []Run
	next     int
	maxRuns  int
	recorded int64
}

// add keeps the result of a delivery that was recorded before the run itself.
func (h *history) add(r Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	if old := h.find(r.Task, r.ScheduledAt, r.MessageID); old != nil && old.ID == "" && r.MessageID != "" {
		r.Attempts = old.Attempts
		r.Result = old.Result
		r.FinishedAt = old.FinishedAt
		*old = r
		return
	}
	h.push(r)
}

func (h *history) addEnqueuedBefore(task string, at time.Time, messageID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	h.findOrAdd(task, at, messageID)
}

// The caller must hold mu.
func (h *history) findOrAdd(task string, at time.Time, messageID string) *Run {
	if r := h.find(task, at, messageID); r != nil {
		return r
	}
	added := Run{Task: task, ScheduledAt: at, MessageID: messageID}
	if r := h.find(task, at, ""); r != nil && r.Skipped == ReasonUncertain {
		*r = added
		return r
	}
	return h.push(added)
}

func (h *history) push(r Run) *Run {
	if len(h.ring) < h.maxRuns {
		h.ring = append(h.ring, r)
		return &h.ring[len(h.ring)-1]
	}
	oldest := &h.ring[h.next]
	*oldest = r
	h.next = (h.next + 1) % len(h.ring)
	return oldest
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

func (h *history) hasMessage(task string, at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.ring, func(r Run) bool {
		return r.Task == task && r.ScheduledAt.Equal(at) && !r.Manual && r.MessageID != ""
	})
}

// recordOutcome ignores a postponed delivery, which made no attempt, and an outcome older than the recorded one.
func (h *history) recordOutcome(o Outcome) {
	if o.Result.Outcome == queue.Postponed {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
	r := h.findOrAdd(o.Task, o.ScheduledAt, o.MessageID)
	if o.Attempt >= r.Attempts {
		r.Attempts = o.Attempt
		r.Result = o.Result
		r.FinishedAt = o.At
	}
}

func (h *history) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recorded
}

func (h *history) runs(task string) []Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	var runs []Run
	n := len(h.ring)
	for age := range n {
		r := h.ring[(h.next-1-age+2*n)%n]
		if task == "" || r.Task == task {
			runs = append(runs, r)
		}
	}
	return runs
}
