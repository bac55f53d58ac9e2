package periodic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// noon is the time that tests count from.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// TestPlan is the policy for missed runs as a table. Times are minutes and
// seconds after noon.
func TestPlan(t *testing.T) {
	t.Parallel()
	minutely := schedule(t, "* * * * *", "UTC")
	for _, c := range []struct {
		name             string
		task             Task
		since, now       time.Duration
		fire, passed     string
		next             time.Duration
		passedOnlyCounts int
	}{
		{name: "nothing yet", since: 0, now: 59 * time.Second, next: time.Minute},
		{name: "to the second", since: 0, now: time.Minute, fire: "1m0s", next: 2 * time.Minute},
		{name: "a moment early", since: 0, now: time.Minute - 1, next: time.Minute},
		{name: "punctual", since: 0, now: 70 * time.Second, fire: "1m0s", next: 2 * time.Minute},
		{name: "missed, made up for", since: 0, now: 71 * time.Second, fire: "1m0s", next: 2 * time.Minute},
		{name: "two missed, one", since: 0, now: 150 * time.Second, fire: "2m0s", passed: "1m0s", next: 3 * time.Minute},
		{name: "a newer one is due anyway", since: 0, now: 181 * time.Second, fire: "3m0s", passed: "1m0s 2m0s", next: 4 * time.Minute},
		{name: "all", task: Task{Missed: MissedAll}, since: 0, now: 150 * time.Second, fire: "1m0s 2m0s", next: 3 * time.Minute},
		{name: "none", task: Task{Missed: MissedSkip}, since: 0, now: 150 * time.Second, passed: "1m0s 2m0s", next: 3 * time.Minute},
		{name: "none, but the punctual", task: Task{Missed: MissedSkip}, since: 0, now: 181 * time.Second, fire: "3m0s", passed: "1m0s 2m0s", next: 4 * time.Minute},
		{name: "grace", task: Task{Missed: MissedAll, Grace: time.Minute}, since: 0, now: 3*time.Minute + 30*time.Second, fire: "3m0s", passed: "1m0s 2m0s", next: 4 * time.Minute},
		{name: "the last of the grace", task: Task{Missed: MissedAll}, since: 0, now: 6 * time.Minute, fire: "1m0s 2m0s 3m0s 4m0s 5m0s 6m0s", next: 7 * time.Minute},
		{name: "past the grace", task: Task{Missed: MissedAll}, since: 0, now: 6*time.Minute + 1, fire: "2m0s 3m0s 4m0s 5m0s 6m0s", passed: "1m0s", next: 7 * time.Minute},
		{name: "long ago", since: -48 * time.Hour, now: 30 * time.Second, fire: "0s", next: time.Minute, passedOnlyCounts: 2879},
		{name: "years ago", since: -90000 * time.Hour, now: 30 * time.Second, fire: "0s", next: time.Minute, passedOnlyCounts: maxCounted + 4},
		{name: "all done", since: 3 * time.Minute, now: 3 * time.Minute, next: 4 * time.Minute},
		{name: "the clock was set back", since: time.Hour, now: 90 * time.Second, next: 2 * time.Minute},
	} {
		c.task.Name, c.task.Schedule = "t", minutely
		p := c.task.Plan(noon().Add(c.since), noon().Add(c.now))
		if diff := cmp.Diff(c.fire, offsets(p.Fire)); diff != "" {
			t.Errorf("%s: fired: %s", c.name, diff)
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

// TestPlanRandomly steps through time with random gaps: every slot is either
// fired or passed, in order, once, never early, and with "all" none is passed
// that was found within its grace.
func TestPlanRandomly(t *testing.T) {
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
			now = now.Add(time.Duration(rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 2_000_000)).Draw(t, "gap")) * time.Millisecond)
			p := task.Plan(since, now)
			for i, s := range append(append([]Slot{}, p.Passed...), p.Fire...) {
				if want := task.Schedule.Next(since); !s.ScheduledAt.Equal(want) {
					t.Fatalf("slot %d is %v, want %v", i, s.ScheduledAt, want)
				}
				since = s.ScheduledAt
				late := now.Sub(s.DueAt)
				if s.DueAt.Before(s.ScheduledAt) || s.DueAt.Sub(s.ScheduledAt) > task.Jitter || s != task.slot(s.ScheduledAt) {
					t.Fatalf("jitter of %v", s)
				}
				if fired := i >= len(p.Passed); fired && late < 0 {
					t.Fatalf("%v is early at %v", s, now)
				} else if !fired && task.Missed == MissedAll && late <= task.Grace && task.Jitter == 0 {
					t.Fatalf("%v passed at %v", s, now)
				}
			}
			if !p.Next.ScheduledAt.Equal(task.Schedule.Next(since)) || !p.Next.DueAt.After(now) {
				t.Fatalf("next %v after %v at %v", p.Next, since, now)
			}
		}
	})
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
	if task.jitter(noon()) == other.jitter(noon()) && task.jitter(noon().Add(time.Minute)) == other.jitter(noon().Add(time.Minute)) {
		t.Error("two tasks have the same delays")
	}
}
