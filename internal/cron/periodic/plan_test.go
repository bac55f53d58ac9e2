package periodic

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// Times are minutes and seconds after noon.
func TestPlan(t *testing.T) {
	t.Parallel()
	minutely := schedule(t, "* * * * *", "UTC")
	for _, c := range []struct {
		name             string
		task             Task
		since, now       time.Duration
		run, passed      string
		next             time.Duration
		passedOnlyCounts int
	}{
		{name: "nothing yet", since: 0, now: 59 * time.Second, next: time.Minute},
		{name: "to the second", since: 0, now: time.Minute, run: "1m0s", next: 2 * time.Minute},
		{name: "a moment early", since: 0, now: time.Minute - 1, next: time.Minute},
		{name: "punctual", since: 0, now: 70 * time.Second, run: "1m0s", next: 2 * time.Minute},
		{name: "punctual to the second, none made up for", task: Task{Missed: MissedSkip}, since: 0, now: 70 * time.Second,
			run: "1m0s", next: 2 * time.Minute},
		{name: "missed, made up for", since: 0, now: 71 * time.Second, run: "1m0s", next: 2 * time.Minute},
		{name: "two missed, one", since: 0, now: 150 * time.Second, run: "2m0s", passed: "1m0s", next: 3 * time.Minute},
		{name: "a newer one is due anyway", since: 0, now: 181 * time.Second, run: "3m0s", passed: "1m0s 2m0s",
			next: 4 * time.Minute},
		{name: "all", task: Task{Missed: MissedAll}, since: 0, now: 150 * time.Second, run: "1m0s 2m0s",
			next: 3 * time.Minute},
		{name: "none", task: Task{Missed: MissedSkip}, since: 0, now: 150 * time.Second, passed: "1m0s 2m0s",
			next: 3 * time.Minute},
		{name: "none, but the punctual", task: Task{Missed: MissedSkip}, since: 0, now: 181 * time.Second, run: "3m0s",
			passed: "1m0s 2m0s", next: 4 * time.Minute},
		{name: "grace", task: Task{Missed: MissedAll, Grace: time.Minute}, since: 0, now: 3*time.Minute + 30*time.Second,
			run: "3m0s", passed: "1m0s 2m0s", next: 4 * time.Minute},
		{name: "the last of the grace", task: Task{Missed: MissedAll}, since: 0, now: 6 * time.Minute,
			run: "1m0s 2m0s 3m0s 4m0s 5m0s 6m0s", next: 7 * time.Minute},
		{name: "past the grace", task: Task{Missed: MissedAll}, since: 0, now: 6*time.Minute + 1,
			run: "2m0s 3m0s 4m0s 5m0s 6m0s", passed: "1m0s", next: 7 * time.Minute},
		{name: "long ago", since: -48 * time.Hour, now: 30 * time.Second, run: "0s", next: time.Minute,
			passedOnlyCounts: 2879},
		{name: "long ago, one at the edge of what is looked at", since: -48 * time.Hour,
			now: defaultGrace + punctual, run: "5m0s", next: 6 * time.Minute, passedOnlyCounts: 2884},
		{name: "years ago", since: -90000 * time.Hour, now: 30 * time.Second, run: "0s", next: time.Minute,
			passedOnlyCounts: maxCounted + 4},
		{name: "all done", since: 3 * time.Minute, now: 3 * time.Minute, next: 4 * time.Minute},
		{name: "the clock was set back", since: time.Hour, now: 90 * time.Second, next: 2 * time.Minute},
	} {
		c.task.Name, c.task.Schedule = "t", minutely
		p := c.task.Plan(noon().Add(c.since), noon().Add(c.now))
		if diff := cmp.Diff(c.run, offsets(p.Enqueue)); diff != "" {
			t.Errorf("%s: enqueued: %s", c.name, diff)
		}
		if c.passedOnlyCounts > 0 && len(p.Passed) != c.passedOnlyCounts {
			t.Errorf("%s: %d passed, want %d", c.name, len(p.Passed), c.passedOnlyCounts)
		} else if diff := cmp.Diff(c.passed, offsets(p.Passed)); diff != "" && c.passedOnlyCounts == 0 {
			t.Errorf("%s: passed: %s", c.name, diff)
		}
		if got := p.Next.ScheduledAt.Sub(noon()); got != c.next {
			t.Errorf("%s: next %v, want %v", c.name, got, c.next)
		}
	}
}

func offsets(slots []Slot) string {
	var texts []string
	for _, s := range slots {
		texts = append(texts, s.ScheduledAt.Sub(noon()).String())
	}
	return strings.Join(texts, " ")
}

func TestPlanWithRandomGaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := Task{
			Name:     rapid.StringMatching("[a-z]{1,8}").Draw(t, "name"),
			Schedule: Every(time.Duration(rapid.IntRange(1, 400).Draw(t, "every")) * time.Second),
			Jitter:   time.Duration(rapid.IntRange(0, 90).Draw(t, "jitter")) * time.Second,
			Grace:    time.Duration(rapid.IntRange(1, 600).Draw(t, "grace")) * time.Second,
			Missed:   rapid.SampledFrom([]Missed{"", MissedOne, MissedAll, MissedSkip}).Draw(t, "missed"),
		}
		since, now := noon(), noon()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 2_000_000)).Draw(t,
				"gap")) * time.Millisecond)
			p := task.Plan(since, now)
			for i, s := range append(append([]Slot{}, p.Passed...), p.Enqueue...) {
				if want := task.Schedule.Next(since); !s.ScheduledAt.Equal(want) {
					t.Fatalf("slot %d is %v, want %v", i, s.ScheduledAt, want)
				}
				since = s.ScheduledAt
				late := now.Sub(s.DueAt)
				if longAgo := late > task.Grace+punctual; !longAgo && !s.DueAt.Equal(dueNaively(&task, s.ScheduledAt)) {
					t.Fatalf("%v is due at %v, want %v", s.ScheduledAt, s.DueAt, dueNaively(&task, s.ScheduledAt))
				}
				if enqueued := i >= len(p.Passed); enqueued && late < 0 {
					t.Fatalf("%v is early at %v", s, now)
				} else if !enqueued && (late <= punctual || task.Missed == MissedAll && late <= task.Grace) {
					t.Fatalf("%v passed at %v", s, now)
				}
			}
			if !p.Next.ScheduledAt.Equal(task.Schedule.Next(since)) || !p.Next.DueAt.After(now) {
				t.Fatalf("next %v after %v at %v", p.Next, since, now)
			}
		}
	})
}

func dueNaively(task *Task, at time.Time) time.Time {
	due := task.slot(at).DueAt
	for before := task.Schedule.Prev(at); at.Sub(before) <= maxJitter; before = task.Schedule.Prev(before) {
		if d := task.slot(before).DueAt; d.After(due) {
			due = d
		}
	}
	return due
}

// Jitter may exceed the interval.
func TestJitterLosesNoRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression string
		jitter     time.Duration
		days       int
	}{
		{"* * * * *", 0, 2}, {"* * * * *", 55 * time.Second, 2}, {"* * * * *", 2 * time.Minute, 3},
		{"* * * * *", time.Hour, 2},
		{"*/5 * * * *", 10 * time.Minute, 30}, {"*/5 * * * *", time.Hour, 7}, {"*/15 * * * *", 30 * time.Minute, 100},
		{"30 * * * *", time.Hour, 365}, {"*/20 2 * * *", time.Hour, 3652}, {"0,10 3 * * *", 30 * time.Minute, 3652},
		{"0 0 1 * *", time.Hour, 3652},
	} {
		t.Run(c.expression+" "+c.jitter.String(), func(t *testing.T) {
			t.Parallel()
			task := Task{Name: "report", Schedule: schedule(t, c.expression, "Europe/Berlin"), Jitter: c.jitter}
			from := time.Date(2020, 3, 28, 22, 0, 0, 0, time.UTC) // the clocks change in this night
			to := from.AddDate(0, 0, c.days)
			times := reference(t, []string{c.expression}, task.Schedule.Zone(), from, to)[0]
			found := followPlans(t, &task, from.Add(-time.Second), to)
			if rest := len(times) - found; rest < 0 || rest > 0 && dueNaively(&task, time.Unix(times[found], 0)).Before(to) {
				t.Errorf("found %d of %d times", found, len(times))
			}
		})
	}
}

func followPlans(t *testing.T, task *Task, since, to time.Time) (found int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for now := since; now.Before(to); {
		p := task.Plan(since, now)
		if len(p.Passed) > 0 {
			t.Fatalf("%v was left out at %v", p.Passed, now)
		}
		if len(p.Enqueue) == 0 {
			now = p.Next.DueAt.Add(time.Duration(random.Int64N(int64(checkInterval))))
			continue
		}
		s := p.Enqueue[0]
		if want := task.Schedule.Next(since); !s.ScheduledAt.Equal(want) || !s.DueAt.Equal(dueNaively(task, want)) {
			t.Fatalf("found %v, want %v, due %v", s, want, dueNaively(task, want))
		}
		if s.DueAt.Sub(s.ScheduledAt) > task.Jitter || now.Before(s.DueAt) || now.Sub(s.DueAt) > checkInterval {
			t.Fatalf("%v was found at %v", s, now)
		}
		since = s.ScheduledAt
		found++
	}
	return found
}

func TestShortestJitter(t *testing.T) {
	t.Parallel()
	task := Task{Name: "a", Jitter: time.Millisecond}
	counts := map[time.Duration]int{}
	for i := range 100 {
		counts[task.jitter(noon().Add(time.Duration(i)*time.Minute))]++
	}
	if len(counts) != 2 || counts[0] == 0 || counts[time.Millisecond] == 0 {
		t.Errorf("the delays are %v, want 0 and 1 ms", counts)
	}
}

func TestJitterSpreads(t *testing.T) {
	t.Parallel()
	task := Task{Name: "a", Schedule: Every(time.Minute), Jitter: 10 * time.Second}
	counts := [10]int{}
	for i := range 2000 {
		j := task.jitter(noon().Add(time.Duration(i) * time.Minute))
		counts[min(9, j/time.Second)]++
	}
	for i, n := range counts {
		if n < 120 || n > 290 {
			t.Errorf("%d of 2000 delays in second %d", n, i)
		}
	}
	other := Task{Name: "b", Schedule: task.Schedule, Jitter: task.Jitter}
	if task.jitter(noon()) == other.jitter(noon()) &&
		task.jitter(noon().Add(time.Minute)) == other.jitter(noon().Add(time.Minute)) {
		t.Error("two tasks have the same delays")
	}
}
