package periodic

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// searchYears is how far a date is looked for. The 29th of February comes again
// within eight years also where a century has no leap day.
const searchYears = 12

// Schedule tells when a task is due. It never changes and may be shared. The
// zero value is never due.
//
// An expression speaks of the local time of one zone. Where that zone changes
// its clocks, this rule holds:
//
//   - A schedule for certain hours is due once for each time that it names. A
//     time that the clocks skip is due right after the gap; several that one
//     gap swallows are due together, once. A time that the clocks show twice is
//     due when they show it first.
//   - A schedule for every hour (its hour field takes all 24) is due whenever
//     the clocks show a time it names, so that "*/15 * * * *" goes on every
//     quarter of an hour while an hour is repeated, and has nothing to make up
//     for when one is skipped.
type Schedule struct {
	expression string
	zone       *time.Location
	// bits are the fields as sets, and the calendar over them, on a clock that
	// never changes; nil for a fixed interval.
	bits  *cron.SpecSchedule
	every time.Duration
}

// parseSchedule reads an expression of five fields (minute, hour, day of month,
// month, day of week) or one of @yearly, @annually, @monthly, @weekly, @daily,
// @midnight and @hourly, in the local time of zone; nil means UTC. A field is *
// or a list of a, a-b, each but a alone optionally with a step: */n, a-b/n. The
// months jan to dec and the days sun to sat may be named, and 7 is Sunday. When
// neither the day of month nor the day of week is *, a day that matches one of
// them is enough.
//
// It refuses everything else, and dates that never come, with a sentence that
// says what to write instead.
func parseSchedule(expression string, zone *time.Location) (Schedule, error) {
	zone = cmp.Or(zone, time.UTC)
	fields, err := splitExpression(expression)
	if err != nil {
		return Schedule{}, err
	}
	parser := cron.MustNewParser(
		cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).WithMaxSearchYears(searchYears)
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("the expression is not understood: %w", err)
	}
	bits, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, errors.New("the expression is not a calendar schedule: write five fields, such as 0 23 * * *")
	}
	calendar := *bits
	calendar.Location = time.UTC
	s := Schedule{expression: strings.Join(strings.Fields(expression), " "), zone: zone, bits: &calendar}
	if calendar.Next(time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, errors.New("the date never occurs, because none of its months has that day: write a day that " +
			"exists, such as 0 0 28 2 *")
	}
	return s, nil
}

// Every returns the schedule of the multiples of interval since the beginning
// of 1970 UTC. An interval below a second counts as one second. It is meant
// for tests and for programs; a file cannot ask for it.
func Every(interval time.Duration) Schedule {
	return Schedule{zone: time.UTC, every: max(interval.Truncate(time.Second), time.Second)}
}

// String returns the expression as it was written, with single blanks.
func (s Schedule) String() string {
	if s.every > 0 {
		return "every " + s.every.String()
	}
	return s.expression
}

// Zone is the location whose local time the expression speaks of; UTC for the
// zero value.
func (s Schedule) Zone() *time.Location { return cmp.Or(s.zone, time.UTC) }

// Next returns the first time that the schedule is due later than after, in
// its zone. It is the zero time only for the zero Schedule.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.multiple(after.Unix()).Add(s.every)
	case s.bits == nil:
		return time.Time{}
	case s.hourly():
		return s.nextShown(after)
	}
	after = after.In(s.zone)
	for slot := s.bits.Next(reading(after)); !slot.IsZero(); slot = s.bits.Next(slot) {
		if t := s.instant(slot); t.After(after) {
			return t
		}
	}
	return time.Time{}
}

// Prev returns the last time that the schedule was due earlier than before, in
// its zone. It is the zero time only for the zero Schedule.
func (s Schedule) Prev(before time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.multiple(before.Add(-time.Nanosecond).Unix())
	case s.bits == nil:
		return time.Time{}
	case s.hourly():
		return s.prevShown(before)
	}
	before = before.In(s.zone)
	// What the clocks showed first of an hour shown twice lies before the
	// repetition, whatever they show now.
	latest := reading(before).Add(time.Nanosecond)
	if start, _ := before.ZoneBounds(); !start.IsZero() {
		if end := start.Add(-time.Nanosecond); reading(end).After(latest) {
			latest = reading(end)
		}
	}
	for slot := s.prevSlot(latest); !slot.IsZero(); slot = s.prevSlot(slot) {
		if t := s.instant(slot); t.Before(before) {
			return t
		}
	}
	return time.Time{}
}

// Upcoming returns the next n times after a time.
func (s Schedule) Upcoming(after time.Time, n int) []time.Time {
	var times []time.Time
	for len(times) < n {
		if after = s.Next(after); after.IsZero() {
			break
		}
		times = append(times, after)
	}
	return times
}

// hourly reports whether every hour, 0 to 23, is named.
func (s Schedule) hourly() bool { return ^s.bits.Hour&(1<<24-1) == 0 }

// nextShown finds the next minute at which the clocks show a named time: in
// each stretch between two changes of the clocks the local time is even.
func (s Schedule) nextShown(after time.Time) time.Time {
	after = after.In(s.zone)
	for limit := after.AddDate(searchYears, 0, 0); after.Before(limit); {
		_, end := after.ZoneBounds()
		slot := s.bits.Next(reading(after))
		if slot.IsZero() {
			return time.Time{}
		}
		t := s.shownAs(slot, after)
		if end.IsZero() || t.Before(end) {
			return t
		}
		if after = end; s.shown(end) {
			return end
		}
	}
	return time.Time{}
}

func (s Schedule) prevShown(before time.Time) time.Time {
	before = before.In(s.zone)
	for limit := before.AddDate(-searchYears, 0, 0); before.After(limit); {
		last := before.Add(-time.Nanosecond)
		start, _ := last.ZoneBounds()
		slot := s.prevSlot(reading(last).Add(time.Nanosecond))
		if slot.IsZero() {
			return time.Time{}
		}
		t := s.shownAs(slot, last)
		if start.IsZero() || !t.Before(start) {
			return t
		}
		before = start
	}
	return time.Time{}
}

// prevSlot is the last named time of the calendar before a time.
func (s Schedule) prevSlot(before time.Time) time.Time {
	if whole := before.Truncate(time.Second); whole.Before(before) {
		before = whole.Add(time.Second)
	}
	return s.bits.Prev(before)
}

// shown reports whether the clocks show a named time at t.
func (s Schedule) shown(t time.Time) bool {
	r := reading(t)
	return s.bits.Next(r.Add(-time.Second)).Equal(r)
}

// instant returns when the clocks of the zone show slot for the first time, or
// the end of the gap that skips it.
func (s Schedule) instant(slot time.Time) time.Time {
	near := time.Date(slot.Year(), slot.Month(), slot.Day(), slot.Hour(), slot.Minute(), 0, 0, s.zone)
	start, end := near.ZoneBounds()
	for _, change := range []time.Time{start, end} {
		last := change.Add(-time.Nanosecond)
		switch {
		case change.IsZero():
		case !slot.After(reading(last)):
			// Not later than the change by the old clocks: with them, then.
			if t := s.shownAs(slot, last); reading(t).Equal(slot) {
				return t
			}
		case slot.Before(reading(change)):
			return change.In(s.zone)
		}
	}
	return near
}

// shownAs returns when the clocks show slot, set as they are at the time near.
func (s Schedule) shownAs(slot, near time.Time) time.Time {
	_, offset := near.Zone()
	return slot.Add(-time.Duration(offset) * time.Second).In(s.zone)
}

// reading is the time shown by the clocks of t's zone, on a clock that never changes.
func reading(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// multiple is the latest multiple of a fixed interval up to a second since 1970.
func (s Schedule) multiple(second int64) time.Time {
	every := int64(s.every / time.Second)
	return time.Unix(second-(second%every+every)%every, 0).UTC()
}
