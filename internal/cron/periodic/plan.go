package periodic

import (
	"hash/fnv"
	"slices"
	"time"
)

const (
	// punctual is how late a run may be without counting as missed.
	punctual   = 10 * time.Second
	maxCounted = 10000
)

// Slot is a time at which a task is due.
type Slot struct {
	ScheduledAt time.Time // without jitter
	// DueAt is ScheduledAt plus jitter, but not before an earlier run's DueAt.
	DueAt time.Time
}

// Plan is the result of [Task.Plan].
type Plan struct {
	Enqueue []Slot
	// Passed contains the slots skipped by the task's policy. Of those beyond the grace, it contains the latest 10,000.
	Passed []Slot
	Next   Slot
}

// Plan determines which slots after since are due at now, according to the policy for missed runs. If since is in the
// future because the clock was set back, nothing is due until the next scheduled time.
func (t *Task) Plan(since, now time.Time) Plan {
	since, now = since.Round(0), now.Round(0)
	if since.After(now) {
		since = now
	}
	due, next := t.dueSlots(since, now)

	punctualFrom := len(due)
	for punctualFrom > 0 && now.Sub(due[punctualFrom-1].DueAt) <= punctual {
		punctualFrom--
	}
	graceFrom := punctualFrom
	for graceFrom > 0 && now.Sub(due[graceFrom-1].DueAt) <= t.grace() {
		graceFrom--
	}

	first := punctualFrom
	switch t.Missed {
	case MissedAll:
		first = graceFrom
	case MissedSkip:
	default:
		if punctualFrom == len(due) && graceFrom < punctualFrom {
			first-- // one run replaces all missed ones
		}
	}
	return Plan{Passed: due[:first:first], Enqueue: due[first:], Next: next}
}

// dueSlots returns the due slots after since, and the next one. The jitter of earlier slots, even accounted-for ones,
// delays them, so that all instances agree on the due time.
func (t *Task) dueSlots(since, now time.Time) (due []Slot, next Slot) {
	oldest := now.Add(-t.grace() - t.Jitter - punctual)
	if since.Before(oldest) {
		due = t.longMissed(since, oldest)
		since = oldest.Add(-time.Nanosecond)
	}

	var latest time.Time
	for at := t.Schedule.Next(since.Add(-t.Jitter)); !at.IsZero(); at = t.Schedule.Next(at) {
		s := t.slot(at)
		latest = later(latest, s.DueAt)
		s.DueAt = latest
		switch {
		case !at.After(since):
		case latest.After(now):
			return due, s
		default:
			due = append(due, s)
		}
	}
	return due, Slot{}
}

func (t *Task) longMissed(since, oldest time.Time) (missed []Slot) {
	for at := t.Schedule.Prev(oldest); at.After(since) && len(missed) < maxCounted; at = t.Schedule.Prev(at) {
		missed = append(missed, t.slot(at))
	}
	slices.Reverse(missed)
	return missed
}

func (t *Task) slot(at time.Time) Slot { return Slot{at, at.Add(t.jitter(at))} }

func (t *Task) jitter(at time.Time) time.Duration {
	if t.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(runID(t.Name, at)))
	x := h.Sum64() // mixed as by MurmurHash3, because names differ little
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return time.Duration(x%uint64(t.Jitter/time.Millisecond+1)) * time.Millisecond
}
