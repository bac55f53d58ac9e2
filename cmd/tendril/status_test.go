package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestAnOpenBreakerIsSaidFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &cli{out: &out}
		st := &api.Status{Environment: "letters", State: api.StateRunning, Ready: true,
			Workers: []api.Worker{{Queue: "jobs", Target: "a"}, {Queue: "logs", Target: "b", Receiving: true},
				{Queue: "mails", Target: "a"}},
			Limits: []api.Limit{
				{Target: "b", Breaker: "closed"},
				{Target: "a", Breaker: "open", TrialAt: time.Now().Add(12*time.Second - time.Millisecond)},
			},
		}
		if err := printStatus((c), st); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if want := "NOT receiving from jobs, mails: the breaker is open, next trial in 12s"; len(lines) < 3 ||
			lines[2] != want {
			t.Errorf("the third line is not %q:\n%s", want, &out)
		}
		st.Limits[1].TrialAt = time.Now()
		st.Workers[2].Receiving = true // and jobs is paused
		want := []string{"NOT receiving from jobs: the breaker is open, the next message is a trial",
			"receiving from mails for a trial: the breaker is open"}
		if diff := cmp.Diff(want, breakerLines(st)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		st.Limits[1].Breaker = "half-open"
		if got := breakerLines(st); got != nil {
			t.Errorf("a breaker that is not open: %q", got)
		}
	})
}

func TestScalingShowsTheLastChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
		for want, s := range map[string]api.Scaling{
			"processes on this machine: no decision yet (1 to 4), 1 ready": {Target: "processes", MinSize: 1, MaxSize: 4,
				Ready: 1, IsLeader: true},
			"processes on this machine: 3 wanted (1 to 4), 2 ready\n        last change 2m ago, from 1 to 3: 90 messages wait": {
				Target: "processes", MinSize: 1, MaxSize: 4, Desired: 3, Ready: 2, IsLeader: true,
				Decisions: []api.ScaleDecision{
					{At: ago(time.Second), From: 3, Desired: 4, Why: "refused"},
					{At: ago(time.Minute), From: 3, Desired: 3, Applied: true, Why: "enough"},
					{At: ago(2 * time.Minute), From: 1, Desired: 3, Applied: true, Why: "90 messages wait"},
					{At: ago(time.Hour), From: 3, Desired: 1, Applied: true, Why: "idle"},
				},
			},
			"the group workers: 2 wanted (2 to 8), 2 ready, another instance is the leader\n" +
				"        PROBLEM: setting the size: denied": {
				Target: "asg:workers", MinSize: 2, MaxSize: 8, Desired: 2, Ready: 2, Problem: "setting the size: denied",
			},
			"instances, by published metrics: 5 wanted (1 to 9), 4 ready": {Target: "publish", MinSize: 1, MaxSize: 9,
				Desired: 5, Ready: 4, IsLeader: true},
		} {
			if got := scalingText(&s); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
	})
}

func TestPaceNamesWhatHoldsBack(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"": "", "limit": "held back by the limits",
		"breaker": "held back by the breaker", "rate": "held back by the limit of rate"} {
		if got := paceText(&api.Worker{LimitedBy: reason}); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

func TestWarningsHaveAHintOrNone(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string][]any{
		"":        {"component", "config", "problem", "mind this"},
		"do that": {"component", "config", "problem", "mind this", "hint", "do that"},
	} {
		if diff := cmp.Diff(want, attributesOf("config", "mind this", hint)); diff != "" {
			t.Errorf("%q: %s", hint, diff)
		}
	}
}
