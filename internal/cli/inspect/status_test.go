package inspect

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/cli/base"
)

func TestAnOpenBreakerIsSaidFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &base.CLI{Out: &out}
		st := &api.Status{Environment: "letters", State: api.StateRunning, Ready: true,
			Workers: []api.Worker{{Queue: "jobs", Target: "a"}, {Queue: "logs", Target: "b", Receiving: true},
				{Queue: "mails", Target: "a/mails"}},
			Limits: []api.Limit{
				{Target: "b", Queues: []string{"logs"}, Breaker: "closed"},
				{Target: "a", Queues: []string{"jobs", "mails"}, Breaker: "open", TrialAt: time.Now().Add(12*time.Second - time.Millisecond)},
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
		st.Workers[2].Receiving = true
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
			"processes on this machine: 3 desired (1 to 4), 2 ready\n        last change 2m ago, from 1 to 3: 90 messages wait": {
				Target: "processes", MinSize: 1, MaxSize: 4, Desired: 3, Ready: 2, IsLeader: true,
				Decisions: []api.ScaleDecision{
					{At: ago(time.Second), From: 3, Desired: 4, Why: "refused"},
					{At: ago(time.Minute), From: 3, Desired: 3, Applied: true, Why: "enough"},
					{At: ago(2 * time.Minute), From: 1, Desired: 3, Applied: true, Why: "90 messages wait"},
					{At: ago(time.Hour), From: 3, Desired: 1, Applied: true, Why: "idle"},
				},
			},
			"the group workers: 2 desired (2 to 8), 2 ready, another instance is the leader\n" +
				"        PROBLEM: setting the size: denied": {
				Target: "asg:workers", MinSize: 2, MaxSize: 8, Desired: 2, Ready: 2, Problem: "setting the size: denied",
			},
			"instances, by published metrics: 5 desired (1 to 9), 4 ready": {Target: "publish", MinSize: 1, MaxSize: 9,
				Desired: 5, Ready: 4, IsLeader: true},
		} {
			if got := scalingLines(&s).Join(indented); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
	})
}

func TestDescribedLeader(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]api.Leader{
		"unknown":                  {},
		"this instance":            {Local: true},
		"this instance: a, term 3": {Leading: true, Holder: "a", Term: 3},
		"another instance: b":      {Holder: "b"},
		"unknown; PROBLEM: timed":  {Error: "timed"},
	} {
		if got := describedLeader(&l); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

func TestStatusTexts(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		healthText(&api.Status{State: "running",
			Ready: true}): "running, ready",
		healthText(&api.Status{State: "draining",
			Workers: []api.Worker{{Progress: api.Progress{Paused: true}}}}): "draining, NOT READY, PAUSED",
		healthText(&api.Status{Workers: []api.Worker{{Progress: api.Progress{Paused: true,
			Why: "by owner: n\x1bight"}}}}): `NOT READY, PAUSED by owner: n\x1bight`,
		accountText(api.Account{Sent: 9, Done: 3, DeadLettered: 1, Expired: 2, Purged: 1,
			Live: 2}): "sent 9 = done 3 + dead-lettered 1 + expired 2 + purged 1 + live 2",
		accountText(api.Account{Sent: 9}): "sent 9 = done 0 + dead-lettered 0 + expired 0 + purged 0 + live 0 (DOES " +
			"NOT BALANCE: off by 9; please report this)",
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestDeploymentTexts(t *testing.T) {
	t.Parallel()
	ago := time.Now().Add(-2*time.Hour - time.Minute)
	for state, want := range map[string]string{api.DeployDone: "version 2, 2h ago",
		api.DeployFailed: "version 2 has the messages, but failed 2h ago: why"} {
		if got := deploymentText(&api.Deployment{State: state, To: "version 2", Ended: ago, Error: "why"}); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
