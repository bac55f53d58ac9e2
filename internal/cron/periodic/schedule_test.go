package periodic

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "time/tzdata"
)

type naive [5]set

// written means that the field was not a bare star.
type set struct {
	has     [60]bool
	written bool
}

func naively(t *testing.T, expression string) naive {
	t.Helper()
	names := map[string]int{}
	for i, n := range strings.Fields("sun mon tue wed thu fri sat") {
		names[n] = i
	}
	for i, n := range strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec") {
		names[n] = i + 1
	}
	value := func(s string) int {
		if n, ok := names[strings.ToLower(s)]; ok {
			return n
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return n
	}
	low, top := [5]int{0, 0, 1, 1, 0}, [5]int{59, 23, 31, 12, 6}
	var n naive
	for i, f := range strings.Fields(expression) {
		n[i].written = f != "*"
		for item := range strings.SplitSeq(f, ",") {
			base, step, stepped := strings.Cut(item, "/")
			from, to, by := low[i], top[i], 1
			if stepped {
				by = value(step)
			}
			if base != "*" {
				a, b, ranged := strings.Cut(base, "-")
				from = value(a)
				if to = from; ranged {
					to = value(b)
				}
			}
			for v := from; v <= to; v += by {
				if i == 4 {
					n[i].has[v%7] = true
				} else {
					n[i].has[v] = true
				}
			}
		}
	}
	return n
}

func (n *naive) match(r time.Time) bool { return n[0].has[r.Minute()] && n.matchHour(r) }

func (n *naive) matchHour(r time.Time) bool {
	if !n[1].has[r.Hour()] || !n[3].has[int(r.Month())] {
		return false
	}
	dom, dow := n[2].has[r.Day()], n[4].has[int(r.Weekday())]
	if n[2].written && n[4].written {
		return dom || dow
	}
	return dom && dow
}

// everyZone returns zones with clock changes of an hour, of half an hour, at midnight and during Ramadan, without clock
// changes, and with unusual offsets.
func everyZone() []string {
	return []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Kathmandu",
		"America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "Africa/Cairo",
	}
}

func everyExpression() []string {
	return []string{
		"* * * * *", "*/15 * * * *", "30 * * * *", "7-52/5 * * * *", "0 */12 * * *", "0 */2 * * *", "0 23 * * *",
		"30 2 * * *", "*/20 2 * * *",
		"* 1-3 * * *", "0 0 * * *", "15 1 * * *", "45 1 * * *", "0 3 * * sun", "30 9 * * 1-5", "0 0 1 * *", "0 0 31 * *",
		"0 12 29 2 *", "0 0 1,15 * mon",
		"59 23 28-31 * *", "5 4 */2 jan,jul *", "0 0 1 1 *", "0 22 * * 5-7", "10,50 0-1 * 3,10,11 *", "0 6 13 * fri",
		"0 1 * * */3",
	}
}

func TestTenYears(t *testing.T) {
	t.Parallel()
	from, to := time.Date(2019, 12, 30, 0, 0, 0, 0, time.UTC), time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, zone := range everyZone() {
		if zone == "Pacific/Apia" { // skipped a day
			tenYears(t, zone, from.AddDate(-9, 0, 0), from.AddDate(-7, 0, 0))
			continue
		}
		tenYears(t, zone, from, to)
	}
}

func tenYears(t *testing.T, zoneName string, from, to time.Time) {
	zone, err := time.LoadLocation(zoneName)
	if err != nil {
		t.Fatal(err)
	}
	t.Run(zoneName, func(t *testing.T) {
		t.Parallel()
		for at, expected := range reference(t, everyExpression(), zone, from, to) {
			expression := everyExpression()[at]
			s, err := parseSchedule(expression, zone)
			if err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			compare(t, s, expected, from, to)
		}
	})
}

// compare checks only the first weeks and the days around clock changes of dense schedules, unless TENDRIL_LONG is set.
func compare(t *testing.T, s Schedule, expected []int64, from, to time.Time) {
	t.Helper()
	dense := len(expected) > 400*12*int(to.Sub(from)/(365*24*time.Hour)) && os.Getenv("TENDRIL_LONG") == ""
	for i := 0; i <= len(expected); i++ {
		before, after := from.Add(-time.Second), to
		if i > 0 {
			before = time.Unix(expected[i-1], 0)
		}
		if i < len(expected) {
			after = time.Unix(expected[i], 0)
		}
		if dense && i > 1000 && !changing(before, s.Zone()) {
			continue
		}
		if next := s.Next(before); !next.Equal(after) && (i < len(expected) || next.Before(to)) {
			t.Fatalf("%s: Next of %v is %v, the walk says %v", s, before.In(s.Zone()), next, after.In(s.Zone()))
		}
		if prev := s.Prev(after); !prev.Equal(before) && (i > 0 || !prev.Before(from)) {
			t.Fatalf("%s: Prev of %v is %v, the walk says %v", s, after.In(s.Zone()), prev, before.In(s.Zone()))
		}
	}
}

func changing(at time.Time, zone *time.Location) bool {
	start, end := at.In(zone).ZoneBounds()
	const near = 30 * time.Hour
	return at.Sub(start).Abs() < near || end.Sub(at).Abs() < near
}

func reference(t *testing.T, expressions []string, zone *time.Location, from, to time.Time) [][]int64 {
	t.Helper()
	sets, found := make([]naive, len(expressions)), make([][]int64, len(expressions))
	hourly := make([]bool, len(expressions))
	for i, e := range expressions {
		sets[i] = naively(t, e)
		hourly[i] = strings.Fields(e)[1] == "*"
	}
	show := func(at time.Time) time.Time {
		l := at.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	// Clocks change only at full quarters of an hour.
	const quarter = 15 * time.Minute
	latest := show(from.Add(-time.Minute))
	for block := from; block.Before(to); block = block.Add(quarter) {
		first := show(block)
		last := first.Add(quarter - time.Minute)
		even := first.Equal(latest.Add(time.Minute))
		for i := range sets {
			if even {
				if !sets[i].matchHour(first) {
					continue
				}
				for m := range 15 {
					if sets[i][0].has[first.Minute()+m] {
						found[i] = append(found[i], block.Unix()+int64(60*m))
					}
				}
				continue
			}
			seen := latest
			for m := time.Duration(0); m < quarter; m += time.Minute {
				now := first.Add(m)
				due := hourly[i] && sets[i].match(now)
				for r := seen.Add(time.Minute); !due && !hourly[i] && !r.After(now); r = r.Add(time.Minute) {
					due = sets[i].match(r)
				}
				if due {
					found[i] = append(found[i], block.Add(m).Unix())
				}
				if now.After(seen) {
					seen = now
				}
			}
		}
		if last.After(latest) {
			latest = last
		}
	}
	return found
}

func TestNextAndPrevBetweenMinutes(t *testing.T) {
	t.Parallel()
	s := schedule(t, "*/5 * * * *", "UTC")
	at := time.Date(2026, 11, 20, 13, 5, 0, 0, time.UTC)
	for _, d := range []time.Duration{-time.Nanosecond, -time.Second, -time.Minute, -time.Minute - time.Nanosecond} {
		if got := s.Next(at.Add(d)); !got.Equal(at) {
			t.Errorf("Next of %v before is %v", d, got)
		}
	}
	if got := s.Next(at); !got.Equal(at.Add(5 * time.Minute)) {
		t.Errorf("Next of a due time is %v", got)
	}
	for _, d := range []time.Duration{time.Nanosecond, time.Second, time.Minute, 5 * time.Minute} {
		if got := s.Prev(at.Add(d)); !got.Equal(at) {
			t.Errorf("Prev of %v after is %v", d, got)
		}
	}
	if got := (Schedule{}).Next(at); !got.IsZero() {
		t.Errorf("the zero schedule is due at %v", got)
	}
	if got := (Schedule{}).Upcoming(at, 3); got != nil {
		t.Errorf("the zero schedule is due at %v", got)
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	s, at := Every(3*time.Second), time.Unix(1_000_000_002, 0).UTC()
	if got := s.Next(at); !got.Equal(at.Add(3*time.Second)) || !s.Prev(got).Equal(at) || !s.Prev(at.Add(1)).Equal(at) ||
		!s.Next(at.Add(-1)).Equal(at) {
		t.Errorf("after %v comes %v, before %v", at, got, s.Prev(got))
	}
	if got := s.Prev(at); !got.Equal(at.Add(-3 * time.Second)) {
		t.Errorf("before %v, when it was due, comes %v", at, got)
	}
	if got := Every(0).Next(at); !got.Equal(at.Add(time.Second)) {
		t.Errorf("the shortest interval is %v", got.Sub(at))
	}
	if got := Every(7 * time.Second).Prev(time.Unix(-1, 0)); got.Unix() != -7 {
		t.Errorf("before 1970: %v", got.Unix())
	}
}

func TestChangesOfTheClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, expression, after, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
		{"Europe/Berlin", "*/10 2 * * *", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"Europe/Berlin", "0 2,3 * * *", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T00:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00 2026-10-27T02:30:00+01:00"},
		{"Europe/Berlin", "*/30 * * * *", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00 2026-10-25T02:00:00+01:00"},
		{"Europe/Berlin", "45 * * * *", "2026-03-29T01:00:00+01:00", "2026-03-29T01:45:00+01:00 2026-03-29T03:45:00+02:00"},
		{"America/New_York", "30 1 * * *", "2026-11-01T00:00:00-04:00",
			"2026-11-01T01:30:00-04:00 2026-11-02T01:30:00-05:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			"2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-05T00:00:00+11:00",
			"2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"Pacific/Apia", "0 12 30 * *", "2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-01-30T12:00:00+14:00"},
		{"UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z 2108-02-29T00:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, at := range schedule(t, c.expression, c.zone).Upcoming(after, 2) {
			got = append(got, at.Format(time.RFC3339))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s in %s: %s", c.expression, c.zone, diff)
		}
	}
}

func schedule(t testing.TB, expression, zoneName string) Schedule {
	t.Helper()
	zone, err := time.LoadLocation(zoneName)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseSchedule(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExpressionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                             "0 fields",
		"5":                            "1 field:",
		"* * * *":                      "4 fields",
		"0 0 12 * * ?":                 "six fields",
		"0 0 1 1 * 2026":               "six fields",
		"60 * * * *":                   "the minute 60 is not between 0 and 59",
		"* 24 * * *":                   "the hour 24 is not between 0 and 23",
		"* * 0 * *":                    "the day of month 0 is not between 1 and 31",
		"* * * 13 *":                   "the month 13 is not between 1 and 12",
		"* * * * 8":                    "the day of week 8 is not between 0 and 7",
		"* * * * 1-8":                  "is not between 0 and 7",
		"* * * * L":                    "is invalid",
		"* * ? * *":                    "stands for *",
		"5/10 * * * *":                 "5-59/10",
		"* 22-2 * * *":                 "22-23,0-2",
		"*/0 * * * *":                  "step",
		"*/x * * * *":                  "step",
		"1,,2 * * * *":                 "empty item",
		"- * * * *":                    "is invalid",
		"1- * * * *":                   "is invalid",
		"** * * * *":                   "is invalid",
		"-1 * * * *":                   "is invalid",
		"+1 * * * *":                   "is invalid",
		"* * * * mon-":                 "is invalid",
		"* * 31 2 *":                   "never occurs",
		"0 0 30-31 feb *":              "never occurs",
		"0 0 31 4,6,9,11 *":            "never occurs",
		"@reboot":                      "unknown expression",
		"@every 1h":                    "unknown expression",
		"TZ=Asia/Tokyo 0 0 * * *":      "timezone: Asia/Tokyo",
		"CRON_TZ=UTC 0 0 * * *":        "timezone: UTC",
		strings.Repeat("1,", 600):      "longer than 512",
		"* * * * " + "mon\x00":         "is invalid",
		"99999999999999999999 * * * *": "is invalid",
	} {
		if s, err := parseSchedule(expression, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v; want an error with %q", expression, s, err, want)
		} else if !strings.Contains(err.Error(), ": ") {
			t.Errorf("%q: no advice in %q", expression, err)
		}
	}
}

func TestExpressionsAtTheirBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1,", 200) + "1 * * *"
	for _, expression := range []string{"*/1 * * * *", "*/59 * * * *", "0-59/59 0-23/23 * * *", "5-5 * * * *",
		"0005 * * * *", "0 0 1 1 0", "59 23 31 12 7", long + strings.Repeat(" ", maxExpression-2-len(long)) + " *"} {
		if _, err := parseSchedule(expression, nil); err != nil {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, expression := range []string{"*/60 * * * *", "00005 * * * *"} {
		if s, err := parseSchedule(expression, nil); err == nil {
			t.Errorf("%q gives %v", expression, s)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"0 23 * * *":              "every day at 23:00 UTC",
		"0 */12 * * *":            "every 12 hours UTC",
		"0 0 1-31 * *":            "every day at 00:00 UTC",
		"0 0 * * 0-6":             "every day at 00:00 UTC",
		"0 0 1,2 * *":             "on days 1 and 2 of the month at 00:00 UTC",
		"0 1,4,5,8,9,13 * * *":    "every day at 01:00, 04:00, 05:00, 08:00, 09:00 and 13:00 UTC",
		"0 * * * *":               "every hour UTC",
		"* * * * *":               "every minute UTC",
		"*/15 * * * *":            "every 15 minutes UTC",
		"*/7 * * * *":             "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 past every hour UTC",
		"5 * * * *":               "at minute 5 past every hour UTC",
		"0 9,17 * * 1-5":          "from Monday to Friday at 09:00 and 17:00 UTC",
		"*/10 9-17 * * mon":       "every 10 minutes past hours 9 to 17 UTC, on Monday",
		"* 2 * * *":               "every minute past hour 2 UTC",
		"0 0 1 * *":               "on day 1 of the month at 00:00 UTC",
		"@monthly":                "on day 1 of the month at 00:00 UTC",
		"@yearly":                 "on 1 January at 00:00 UTC",
		"@weekly":                 "on Sunday at 00:00 UTC",
		"@DAILY":                  "every day at 00:00 UTC",
		"0 0 1,15 * fri":          "on days 1 and 15 of the month or on Friday at 00:00 UTC",
		"0 0 * jul *":             "every day in July at 00:00 UTC",
		"0 0 13 jan,feb 7":        "on day 13 of the month or on Sunday in January and February at 00:00 UTC",
		"0 0 1-31 * mon":          "on days 1 to 31 of the month or on Monday at 00:00 UTC",
		"15 0-23/6 * * *":         "every day at 00:15, 06:15, 12:15 and 18:15 UTC",
		"*/30 * * * sat,sun":      "every 30 minutes UTC, on Saturday and Sunday",
		"1,2,3 1,5,9 1 1 *":       "at minutes 1 to 3 past hours 1, 5 and 9 UTC, on 1 January",
		"0 1,4,5,8,9,13,20 * * *": "at minute 0 past hours 1, 4, 5, 8, 9, 13 and 20 UTC",
	} {
		if got := schedule(t, expression, "UTC").Words(); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	if got := schedule(t, "0 7 * * *", "Europe/Berlin").Words(); got != "every day at 07:00 Europe/Berlin" {
		t.Error(got)
	}
	if got := Every(time.Minute).Words() + (Schedule{}).Words(); got != "every 1m0s" {
		t.Error(got)
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, e := range everyExpression() {
		f.Add(e)
	}
	now := time.Date(2026, 2, 27, 23, 59, 30, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := parseSchedule(expression, nil)
		if err != nil {
			return
		}
		next := s.Next(now)
		if !next.After(now) || !s.Prev(next.Add(1)).Equal(next) || s.Next(next.Add(-1)) != next {
			t.Errorf("%q: next %v, before that %v", expression, next, s.Prev(next.Add(1)))
		}
		again, err := parseSchedule(s.String(), nil)
		if err != nil || again.Words() != s.Words() || s.Words() == "" {
			t.Errorf("%q is written %q: %v, %q", expression, s, err, s.Words())
		}
		_ = fmt.Sprint(s)
	})
}
