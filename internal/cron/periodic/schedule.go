package periodic

import (
	"cmp"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// February 29 recurs within eight years, even across a century without a leap day.
const searchYears = 12

// Schedule determines when a task is due. It is immutable. The zero value is never due.
//
// Expressions are in local time. When clocks change, a schedule for certain hours is due once per scheduled time: at
// the first occurrence of a repeated time, and at the end of a gap for all times in the gap together. A schedule for
// every hour is due whenever the clocks show a scheduled time.
type Schedule struct {
	expression string
	zone       *time.Location
	// bits is nil for a fixed interval.
	bits  *cron.SpecSchedule
	every time.Duration
}

// parseSchedule parses five fields (minute, hour, day of month, month, day of week), or a name such as @daily. A field
// is * or a list of a, a-b, */n and a-b/n. Months and days of the week can be names; 7 is Sunday. If neither day field
// is *, a day that matches either is due. Dates that never occur are an error. A nil zone means UTC.
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
		return Schedule{}, &invalidError{"invalid expression", err.Error()}
	}

	calendar := *parsed.(*cron.SpecSchedule)
	calendar.Location = time.UTC
	if calendar.Next(time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, &invalidError{"the date never occurs: none of the given months has that day",
			"use a date that occurs, such as 0 0 28 2 *"}
	}
	return Schedule{expression: strings.Join(strings.Fields(expression), " "), zone: zone, bits: &calendar}, nil
}

// Every returns a schedule that is due at each multiple of interval, at least 1 s, since 1970 UTC. Files cannot contain
// it.
func Every(interval time.Duration) Schedule {
	return Schedule{zone: time.UTC, every: max(interval.Truncate(time.Second), time.Second)}
}

func (s Schedule) String() string {
	if s.every > 0 {
		return "every " + s.every.String()
	}
	return s.expression
}

// Zone returns the expression's time zone.
func (s Schedule) Zone() *time.Location { return cmp.Or(s.zone, time.UTC) }

// Next returns the first due time after the given time, or zero for the zero Schedule.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.lastMultiple(after.Unix()).Add(s.every)
	case s.bits == nil:
		return time.Time{}
	case s.runsEveryHour():
		return s.nextHourly(after)
	}
	after = after.In(s.zone)
	for slot := s.bits.Next(localAsUTC(after)); !slot.IsZero(); slot = s.bits.Next(slot) {
		if t := s.timeOf(slot); t.After(after) {
			return t
		}
	}
	return time.Time{}
}

// Prev returns the last due time before the given time, or zero for the zero Schedule.
func (s Schedule) Prev(before time.Time) time.Time {
	switch {
	case s.every > 0:
		return s.lastMultiple(before.Add(-time.Nanosecond).Unix())
	case s.bits == nil:
		return time.Time{}
	case s.runsEveryHour():
		return s.prevHourly(before)
	}

	before = before.In(s.zone)
	// The first occurrence of a repeated hour is before the second.
	latest := localAsUTC(before).Add(time.Nanosecond)
	if start, _ := before.ZoneBounds(); !start.IsZero() {
		if end := start.Add(-time.Nanosecond); localAsUTC(end).After(latest) {
			latest = localAsUTC(end)
		}
	}

	for slot := s.prevSlot(latest); !slot.IsZero(); slot = s.prevSlot(slot) {
		if t := s.timeOf(slot); t.Before(before) {
			return t
		}
	}

	return time.Time{}
}

// Upcoming returns the next n due times after the given time.
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

func (s Schedule) runsEveryHour() bool { return ^s.bits.Hour&(1<<24-1) == 0 }

// nextHourly is Next for schedules that run in every hour. It searches each span of constant UTC offset separately, so
// it also finds runs in a repeated hour.
func (s Schedule) nextHourly(after time.Time) time.Time {
	after = after.In(s.zone)
	for limit := after.AddDate(searchYears, 0, 0); after.Before(limit); {
		slot := s.bits.Next(localAsUTC(after))
		if slot.IsZero() {
			return time.Time{}
		}
		_, change := after.ZoneBounds()
		t := s.atOffsetOf(slot, after)
		if change.IsZero() || t.Before(change) {
			return t
		}
		if s.matches(change) {
			return change
		}
		after = change
	}
	return time.Time{}
}

func (s Schedule) prevHourly(before time.Time) time.Time {
	before = before.In(s.zone)
	for limit := before.AddDate(-searchYears, 0, 0); before.After(limit); {
		last := before.Add(-time.Nanosecond)
		slot := s.prevSlot(localAsUTC(last).Add(time.Nanosecond))
		if slot.IsZero() {
			return time.Time{}
		}
		change, _ := last.ZoneBounds()
		t := s.atOffsetOf(slot, last)
		if change.IsZero() || !t.Before(change) {
			return t
		}
		before = change
	}
	return time.Time{}
}

func (s Schedule) prevSlot(before time.Time) time.Time {
	if whole := before.Truncate(time.Second); whole.Before(before) {
		before = whole.Add(time.Second)
	}
	return s.bits.Prev(before)
}

func (s Schedule) matches(t time.Time) bool {
	r := localAsUTC(t)
	return s.bits.Next(r.Add(-time.Second)).Equal(r)
}

// timeOf returns a slot's first occurrence, or the end of the gap that skips it.
func (s Schedule) timeOf(slot time.Time) time.Time {
	near := time.Date(slot.Year(), slot.Month(), slot.Day(), slot.Hour(), slot.Minute(), 0, 0, s.zone)
	start, end := near.ZoneBounds()
	for _, change := range []time.Time{start, end} {
		if change.IsZero() {
			continue
		}
		lastBefore := change.Add(-time.Nanosecond)
		if !slot.After(localAsUTC(lastBefore)) {
			// The old clocks show the slot.
			if t := s.atOffsetOf(slot, lastBefore); localAsUTC(t).Equal(slot) {
				return t
			}
		} else if slot.Before(localAsUTC(change)) {
			return change.In(s.zone)
		}
	}
	return near
}

func (s Schedule) atOffsetOf(slot, near time.Time) time.Time {
	_, offset := near.Zone()
	return slot.Add(-time.Duration(offset) * time.Second).In(s.zone)
}

// localAsUTC returns the local time as UTC, for calculations without clock changes.
func localAsUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func (s Schedule) lastMultiple(second int64) time.Time {
	every := int64(s.every / time.Second)
	return time.Unix(second-(second%every+every)%every, 0).UTC()
}
