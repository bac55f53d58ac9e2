package periodic

import (
	"hash/fnv"
	"slices"
	"time"
)

const (
	// punctual is how late a run may be without counting as missed.
	punctual = 10 * time.Second
	// maxCounted is the maximum number of missed times in a plan.
	maxCounted = 10000
)

// Slot is a time at which a task is due.
type Slot struct {
	ScheduledAt time.Time // as given by the schedule
	// DueAt is ScheduledAt plus jitter, or the DueAt of an earlier run if that is later, so that runs stay in order.
	// It is at most Jitter after ScheduledAt.
	DueAt time.Time
}

// Plan is the result of [Task.Plan].
type Plan struct {
	Enqueue []Slot // in order
	// Passed contains the slots that the task's policy skips, in order. If there are more than 10,000, the oldest are
	// omitted.
	Passed []Slot
	Next   Slot // first future slot
}

// Plan determines which slots after since are due at now, according to the task's policy for missed runs. It is a
// pure function of wall clock times.
//
// If the clock was set back, since is in the future, and nothing is due until the next scheduled time after now.
// Times that were skipped by setting the clock forward count as missed.
func (t *Task) Plan(since, now time.Time) Plan {
	since, now = since.Round(0), now.Round(0)
	if since.After(now) {
		since = now
	}
	var p Plan
	due := t.dueSlots(since, now, &p.Next)

	first := len(due) // index of the first slot to enqueue
	for first > 0 && now.Sub(due[first-1].DueAt) <= punctual {
		first--
	}
	graced := first
	for graced > 0 && now.Sub(due[graced-1].DueAt) <= t.grace() {
		graced--
	}

	switch {
	case t.Missed == MissedAll:
		first = graced
	case t.Missed == MissedSkip:
	case first == len(due) && graced < first:
		first-- // one run replaces all missed ones
	}

	p.Passed, p.Enqueue = due[:first:first], due[first:]
	return p
}

// dueSlots returns the due slots after since, in order, and sets next to the first future slot.
//
// A slot may have to wait for the jitter of an earlier slot, even if that is accounted for, so that all instances
// agree on the due time. Only slots that are less than the maximum jitter earlier matter.
func (t *Task) dueSlots(since, now time.Time, next *Slot) []Slot {
	oldest := now.Add(-t.grace() - t.Jitter - punctual)
	var due []Slot
	if since.Before(oldest) {
		due = t.longMissed(since, oldest)
		since = oldest.Add(-time.Nanosecond)
	}

	var latest time.Time // latest DueAt so far
	for at := t.Schedule.Next(since.Add(-t.Jitter)); !at.IsZero(); at = t.Schedule.Next(at) {
		s := t.slot(at)
		if s.DueAt.Before(latest) {
			s.DueAt = latest
		}
		latest = s.DueAt
		switch {
		case !at.After(since): // already accounted for
		case latest.After(now):
			*next = s
			return due
		default:
			due = append(due, s)
		}
	}
	return due
}

// longMissed returns slots that exceed any grace, even with jitter, but at most the latest maxCounted.
func (t *Task) longMissed(since, oldest time.Time) (missed []Slot) {
	for at := t.Schedule.Prev(oldest); at.After(since) && len(missed) < maxCounted; at = t.Schedule.Prev(at) {
		missed = append(missed, t.slot(at))
	}
	slices.Reverse(missed)
	return missed
}

// slot does not take earlier slots into account.
func (t *Task) slot(at time.Time) Slot { return Slot{at, at.Add(t.jitter(at))} }

// jitter returns a whole number of milliseconds, derived from the task's name and the time.
func (t *Task) jitter(at time.Time) time.Duration {
	if t.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(runID(t.Name, at)))
	x := h.Sum64() // mixes the bits, because names differ little
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return time.Duration(x%uint64(t.Jitter/time.Millisecond+1)) * time.Millisecond
}
