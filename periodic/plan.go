package periodic

import (
	"hash/fnv"
	"time"
)

const (
	// Punctual is how late a run may be and not count as missed.
	Punctual = 10 * time.Second
	// maxCounted bounds how many missed times one plan looks at.
	maxCounted = 10000
)

// Slot is one time at which a task is due.
type Slot struct {
	// ScheduledAt is the time that the schedule names.
	ScheduledAt time.Time
	// DueAt is that time and the jitter.
	DueAt time.Time
}

// Plan says what to do about one task.
type Plan struct {
	// Fire are the slots to enqueue, in order.
	Fire []Slot
	// Passed are the slots that the task's policy leaves out, in order. Older
	// ones may be missing when there are more than 10,000.
	Passed []Slot
	// Next is the first slot that is still to come.
	Next Slot
}

// Plan decides which slots later than since are due at now, by the task's
// policy for missed runs. since is the scheduled time up to which all is
// accounted for. It is a function of its arguments alone; both are times of
// day. A clock that was set back makes since a time to come: then nothing is
// due until the schedule's next time after now, and whoever enqueues has to
// tell by the run's id if that was enqueued already. A clock that was set
// forward makes what it jumped over missed.
func (t *Task) Plan(since, now time.Time) Plan {
	since, now = since.Round(0), now.Round(0)
	if since.After(now) {
		since = now
	}
	var p Plan
	due := t.dueSlots(since, now, &p.Next)
	first := len(due) // the first that is fired
	for first > 0 && now.Sub(due[first-1].DueAt) <= Punctual {
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
		first-- // nothing punctual makes up for the missed
	}
	p.Passed, p.Fire = due[:first:first], due[first:]
	return p
}

// dueSlots returns the slots after since whose time has come, in the order of
// the schedule: a slot waits for those before it, even if its jitter is
// smaller. next becomes the first of the others.
func (t *Task) dueSlots(since, now time.Time, next *Slot) []Slot {
	oldest := now.Add(-t.grace() - t.Jitter - Punctual)
	var due []Slot
	if since.Before(oldest) {
		for s := t.slot(t.Schedule.Prev(oldest)); s.ScheduledAt.After(since) && len(due) < maxCounted; s = t.slot(t.Schedule.Prev(s.ScheduledAt)) {
			due = append(due, s)
		}
		for i, j := 0, len(due)-1; i < j; i, j = i+1, j-1 {
			due[i], due[j] = due[j], due[i]
		}
		since = oldest.Add(-time.Nanosecond)
	}
	for s := t.slot(t.Schedule.Next(since)); ; s = t.slot(t.Schedule.Next(s.ScheduledAt)) {
		if s.ScheduledAt.IsZero() || s.DueAt.After(now) {
			*next = s
			return due
		}
		due = append(due, s)
	}
}

// slot adds the jitter to a scheduled time.
func (t *Task) slot(at time.Time) Slot {
	if at.IsZero() {
		return Slot{}
	}
	return Slot{ScheduledAt: at, DueAt: at.Add(t.jitter(at))}
}

// jitter is the delay of one run, 0 to Jitter in milliseconds: a function of
// the name and the time.
func (t *Task) jitter(at time.Time) time.Duration {
	if t.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(fireID(t.Name, at)))
	x := h.Sum64() // spread all of it over the low bits: names differ little
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return time.Duration(x%uint64(t.Jitter/time.Millisecond+1)) * time.Millisecond
}
