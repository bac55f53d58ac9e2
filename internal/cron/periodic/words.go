package periodic

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Words describes the schedule, such as "every day at 23:00 UTC".
func (s Schedule) Words() string {
	if s.every > 0 {
		return "every " + s.every.String()
	}
	if s.bits == nil {
		return ""
	}

	at, atClockTimes := s.timeWords()
	days := s.dayWords()
	zone := " " + s.Zone().String()
	switch {
	case days == "" && atClockTimes:
		return "every day " + at + zone
	case days == "":
		return at + zone
	case atClockTimes:
		return days + " " + at + zone
	}
	return at + zone + ", " + days
}

func (s Schedule) timeWords() (at string, atClockTimes bool) {
	minutes, hours := setBits(s.bits.Minute, 0, 59), setBits(s.bits.Hour, 0, 23)
	minuteStep, hourStep := stride(minutes, 60), stride(hours, 24)
	onTheHour := len(minutes) == 1 && minutes[0] == 0
	switch {
	case s.runsEveryHour() && minuteStep > 0:
		return everyNth(minuteStep, "minute"), false
	case onTheHour && hourStep > 0:
		return everyNth(hourStep, "hour"), false
	case len(hours)*len(minutes) <= 6:
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + joinWords(times), true
	}

	past := " past every hour"
	if !s.runsEveryHour() {
		past = " past " + pluralized("hour", hours)
	}
	if minuteStep > 0 {
		return everyNth(minuteStep, "minute") + past, false
	}
	return "at " + pluralized("minute", minutes) + past, false
}

func everyNth(n int, unit string) string {
	if n == 1 {
		return "every " + unit
	}
	return "every " + counted(n, unit)
}

func (s Schedule) dayWords() string {
	dom := setBits(s.bits.Dom, 1, 31)
	dow := setBits(s.bits.Dow, 0, 6)
	months := setBits(s.bits.Month, 1, 12)

	date, week := "", ""
	// If neither field is *, either may match, so even a field that lists all days is described.
	anyDate, anyDay := s.bits.Dom&star != 0, s.bits.Dow&star != 0
	if !anyDate && (len(dom) < 31 || !anyDay) {
		date = "on " + pluralized("day", dom) + " of the month"
	}
	if !anyDay && (len(dow) < 7 || !anyDate) {
		week = weekdays(dow)
	}

	days := cmp.Or(date, week)
	if date != "" && week != "" {
		days = date + " or " + week
	}
	if len(months) == 12 {
		return days
	}

	names := make([]string, len(months))
	for i, m := range months {
		names[i] = time.Month(m).String()
	}

	if days == "" {
		return "every day in " + joinWords(names)
	}
	if week == "" && len(dom) == 1 && len(months) == 1 {
		return fmt.Sprintf("on %d %s", dom[0], names[0])
	}

	return days + " in " + joinWords(names)
}

// star is the bit of a field written as *.
const star = 1 << 63

func weekdays(days []int) string {
	if len(days) == 5 && days[0] == 1 && days[4] == 5 {
		return "from Monday to Friday"
	}
	if days[0] == 0 {
		days = append(days[1:], 0)
	}
	var names []string
	for _, d := range days {
		names = append(names, time.Weekday(d).String())
	}
	return "on " + joinWords(names)
}

func setBits(bits uint64, low, high int) []int {
	var all []int
	for i := low; i <= high; i++ {
		if bits&(1<<i) != 0 {
			all = append(all, i)
		}
	}
	return all
}

// stride returns n if values are the multiples of n, from 0, and n divides cycle, or else 0.
func stride(values []int, cycle int) int {
	if len(values) < 2 || cycle%len(values) != 0 {
		return 0
	}
	step := cycle / len(values)
	for i, v := range values {
		if v != i*step {
			return 0
		}
	}
	return step
}

func pluralized(what string, values []int) string {
	if len(values) == 1 {
		return fmt.Sprintf("%s %d", what, values[0])
	}
	if last := values[len(values)-1]; len(values) > 2 && last-values[0] == len(values)-1 {
		return fmt.Sprintf("%ss %d to %d", what, values[0], last)
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return what + "s " + joinWords(texts)
}

func joinWords(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
