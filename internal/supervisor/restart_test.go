package supervisor

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRestartRule(t *testing.T) {
	t.Parallel()
	rule := Options{RestartMin: 500 * time.Millisecond, RestartMax: 30 * time.Second, RestartLimit: 10,
		RestartWindow: 300 * time.Second}
	now := time.Unix(1_000_000, 0)
	ago := func(seconds ...int) []time.Time {
		var at []time.Time
		for _, s := range seconds {
			at = append(at, now.Add(-time.Duration(s)*time.Second))
		}
		return at
	}
	tests := []struct {
		name     string
		rule     Options
		earlier  []time.Time
		random   float64
		failures int
		delay    time.Duration
		giveUp   bool
	}{
		{"first failure waits the minimum", rule, nil, 0.9, 1, 500 * time.Millisecond, false},
		{"second doubles", rule, ago(9), 1, 2, time.Second, false},
		{"jitter takes up to half", rule, ago(9, 8), 0, 3, time.Second, false},
		{"jitter is proportional", rule, ago(9, 8), 0.5, 3, 1500 * time.Millisecond, false},
		{"never above the maximum", rule, ago(9, 8, 7, 6, 5, 4, 3, 2), 1, 9, 30 * time.Second, false},
		{"the tenth failure still restarts", rule, ago(9, 8, 7, 6, 5, 4, 3, 2, 1), 1, 10, 30 * time.Second, false},
		{"the eleventh gives up", rule, ago(10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 1, 11, 0, true},
		{"failures older than the window are forgotten", rule, ago(400, 301, 300, 299), 1, 2, time.Second, false},
		{"a long healthy time starts anew", rule, ago(900, 800, 700), 1, 1, 500 * time.Millisecond, false},
		{"limit 0 never restarts",
			Options{RestartMin: 1, RestartMax: 1, RestartWindow: time.Second}, nil, 0, 1, 0, true},
		{"equal bounds give a constant", Options{RestartMin: 5, RestartMax: 5, RestartLimit: 9,
			RestartWindow: time.Hour}, ago(3, 2, 1), 0.7, 4, 5,
			false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kept, delay, giveUp := tt.rule.afterFailure(tt.earlier, now, tt.random)
			if delay != tt.delay || giveUp != tt.giveUp {
				t.Errorf("delay %s, give up %t, want %s, %t", delay, giveUp, tt.delay, tt.giveUp)
			}
			if len(kept) != tt.failures || !kept[len(kept)-1].Equal(now) {
				t.Errorf("remembers %v, want the %d failures of the window, the last one now", kept, tt.failures)
			}
		})
	}
}

func TestRestartRuleHoldsForAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := Options{
			RestartMin:    time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "min")),
			RestartLimit:  rapid.IntRange(0, 20).Draw(t, "limit"),
			RestartWindow: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "window")),
		}
		rule.RestartMax = rule.RestartMin + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "spread"))
		now := time.Unix(0, 0)
		var failures, restarts []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "lives") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "ran")))
			var delay time.Duration
			var giveUp bool
			failures, delay, giveUp = rule.afterFailure(failures, now, rapid.Float64Range(0, 0.999).Draw(t, "random"))
			if giveUp {
				return
			}
			if delay < rule.RestartMin || delay > rule.RestartMax {
				t.Fatalf("pause %s outside %s to %s", delay, rule.RestartMin, rule.RestartMax)
			}
			restarts = append(restarts, now)
			inWindow := 0
			for _, r := range restarts {
				if now.Sub(r) < rule.RestartWindow {
					inWindow++
				}
			}
			if inWindow > rule.RestartLimit {
				t.Fatalf("%d restarts within %s, the limit is %d", inWindow, rule.RestartWindow, rule.RestartLimit)
			}
			now = now.Add(delay)
		}
	})
}
