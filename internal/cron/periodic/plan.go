package periodic

import (
	"hash/fnv"
	"slices"
	"time"
)

const (
	// punctual is how late a run may be and not count as missed.
	punctual = 10 * time.Second
	// maxCounted bounds how many missed times one plan looks at.
	maxCounted = 10000
)

// Slot is one time at which a task is due.
type Slot struct {
	ScheduledAt time.Time // the time that the schedule names
	// DueAt is that time and the jitter, or the DueAt of one before it, if that
	// is later: runs keep their order. It is Jitter after ScheduledAt at most.
	DueAt time.Time
}

// Plan says what to do about one task.
type Plan struct {
	Enqueue []Slot // in order
	// Passed are the slots that the task's policy leaves out, in order. Older
	// ones may be missing when there are more than 10,000.
	Passed []Slot
	Next   Slot // the first that is still to come
}

// Plan decides which slots later than since are due at now, by the task's
// policy for missed runs. since is the scheduled time up to which all is
// accounted for. It is a function of its arguments alone; both are times of
// day. A clock that was set back makes since a time to come: then nothing is
// due until the schedule's next time after now, and the registry has
// to recognise by its id a run that was enqueued already. Times that a clock set
// forward jumped over count as missed.
func (t *Task) Plan(since, now time.Time) Plan {
	since, now = since.Round(0), now.Round(0)
	if since.After(now) {
		since = now
	}
	var p Plan
	due := t.dueSlots(since, now, &p.Next)

	first := len(due) // the first that is enqueued
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
		first-- // nothing punctual makes up for the missed
	}

	p.Passed, p.Enqueue = due[:first:first], due[first:]
	return p
}

// dueSlots returns the slots after since whose time has come, in the order of
// the schedule. next becomes the first of the others.
//
// Which slots a slot waits for follows from the schedule alone, also where those
// are accounted for, so that all instances agree on when it is due. Only those
// less than the jitter before it matter: older ones are due before it anyway.
func (t *Task) dueSlots(since, now time.Time, next *Slot) []Slot {
	oldest := now.Add(-t.grace() - t.Jitter - punctual)
	var due []Slot
	if since.Before(oldest) {
		due = t.longMissed(since, oldest)
		since = oldest.Add(-time.Nanosecond)
	}

	var latest time.Time // of the DueAt so far
	for at := t.Schedule.Next(since.Add(-t.Jitter)); !at.IsZero(); at = t.Schedule.Next(at) {
		s := t.slot(at)
		if s.DueAt.Before(latest) {
			s.DueAt = latest
		}
		latest = s.DueAt
		switch {
		case !at.After(since): // accounted for
		case latest.After(now):
			*next = s
			return due
		default:
			due = append(due, s)
		}
	}
	return due
}

// longMissed returns the slots after since and before oldest, in order; of more
// than maxCounted the latest. They are past any grace, even with all of the
// jitter, so the slots that they wait for do not matter.
func (t *Task) longMissed(since, oldest time.Time) (missed []Slot) {
	for at := t.Schedule.Prev(oldest); at.After(since) && len(missed) < maxCounted; at = t.Schedule.Prev(at) {
		missed = append(missed, t.slot(at))
	}
	slices.Reverse(missed)
	return missed
}

// slot adds the jitter to a scheduled time, and does not order it after others.
func (t *Task) slot(at time.Time) Slot { return Slot{at, at.Add(t.jitter(at))} }

// jitter is the delay of one run, 0 to Jitter in milliseconds: a function of
// the name and the time.
func (t *Task) jitter(at time.Time) time.Duration {
	if t.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(runID(t.Name, at)))
	x := h.Sum64() // spread all of it over the low bits: names differ little
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return time.Duration(x%uint64(t.Jitter/time.Millisecond+1)) * time.Millisecond
}
