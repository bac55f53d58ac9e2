package supervisor

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRestartRule(t *testing.T) {
	t.Parallel()
	rule := restartRule{min: 500 * time.Millisecond, max: 30 * time.Second, limit: 10, window: 300 * time.Second}
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
		rule     restartRule
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
		{"limit 0 never restarts", restartRule{min: 1, max: 1, limit: 0, window: time.Second}, nil, 0, 1, 0, true},
		{"equal bounds give a constant", restartRule{min: 5, max: 5, limit: 9, window: time.Hour}, ago(3, 2, 1), 0.7, 4, 5,
			false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kept, d := tt.rule.next(tt.earlier, now, tt.random)
			if d.failures != tt.failures || d.delay != tt.delay || d.giveUp != tt.giveUp {
				t.Errorf("next = %+v, want failures %d, delay %s, give up %t", d, tt.failures, tt.delay, tt.giveUp)
			}
			if len(kept) != tt.failures || !kept[len(kept)-1].Equal(now) {
				t.Errorf("remembers %v, want the %d failures of the window, the last one now", kept, tt.failures)
			}
		})
	}
}

// Whatever the process does, no window holds more restarts than the limit, and
// every pause lies within its bounds.
func TestRestartRuleHoldsForAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := restartRule{
			min:    time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "min")),
			limit:  rapid.IntRange(0, 20).Draw(t, "limit"),
			window: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "window")),
		}
		rule.max = rule.min + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "spread"))
		now := time.Unix(0, 0)
		var failures, restarts []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "lives") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "ran")))
			var d restartDecision
			failures, d = rule.next(failures, now, rapid.Float64Range(0, 0.999).Draw(t, "random"))
			if d.giveUp {
				return
			}
			if d.delay < rule.min || d.delay > rule.max {
				t.Fatalf("pause %s outside %s to %s", d.delay, rule.min, rule.max)
			}
			restarts = append(restarts, now)
			inWindow := 0
			for _, r := range restarts {
				if now.Sub(r) < rule.window {
					inWindow++
				}
			}
			if inWindow > rule.limit {
				t.Fatalf("%d restarts within %s, the limit is %d", inWindow, rule.window, rule.limit)
			}
			now = now.Add(d.delay)
		}
	})
}
