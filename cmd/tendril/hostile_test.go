package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"tendril/api"
	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/console"
	"tendril/internal/observe/health"
)

// hostile contains control characters of both sets, direction marks and invalid bytes.
const hostile = "x\x1b[2J\u009b2J\u202e\x07\rx"

func assertHarmless(t *testing.T, what, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}); i >= 0 {
		t.Errorf("%s prints %q", what, text[max(0, i-40):min(len(text), i+20)])
	}
}

func TestTextOfOthersIsHarmless(t *testing.T) {
	t.Parallel()
	run := api.TaskRun{Task: hostile, Outcome: hostile, Reason: hostile, Skipped: hostile, MessageID: hostile}
	tasks := api.TasksStatus{
		File: hostile, Leader: api.Leader{Holder: hostile, Term: 3, Error: hostile},
		Tasks: []api.Task{{Name: hostile, URL: hostile, Words: hostile, Zone: "UTC", Next: []time.Time{time.Now()},
			Paused: true, PauseReason: hostile, Queue: hostile, Last: &run}},
	}
	report := health.Report{Status: health.Severe, Causes: []string{hostile}}
	s := newStage(t, func(o *console.Options, _ *api.Instance) {
		o.Environment, o.Version = hostile, hostile
		o.Views.Health = func() health.Report { return report }
		o.Probes.Ready = func() []health.Check { return []health.Check{{Name: hostile, Detail: hostile}} }
		o.Tasks = &console.TaskOptions{Status: func() api.TasksStatus {
			return tasks
		}, History: func(string) []api.TaskRun { return []api.TaskRun{run} },
			Pause: func(context.Context, string, string, string) error { return errors.New(hostile) }}
		o.Status = func() api.Status {
			return api.Status{
				State: hostile,
				Workers: []api.Worker{{Queue: hostile, Target: hostile, Progress: api.Progress{Paused: true, PauseReason: hostile, Why: hostile},
					GateReasons: []string{hostile}, LimitedBy: hostile, LastError: hostile}},
				App:        []api.Process{{Name: hostile, State: hostile, LastExit: hostile}},
				Deployment: &api.Deployment{State: api.DeployRolledBack, To: hostile, Error: hostile, Ended: time.Now()},
				Limits:     []api.Limit{{Target: hostile, Breaker: hostile}, {Target: "y" + hostile, Breaker: "open"}},
				Scaling: &api.Scaling{Target: "asg:" + hostile, Problem: hostile,
					Decisions: []api.ScaleDecision{{From: 1, Desired: 2, Applied: true, Why: hostile}}},
				Tasks: &tasks,
			}
		}
	})
	for _, args := range [][]string{{"status"}, {"health"}, {"tasks"}, {"tasks", "history"}, {"queues", "list"},
		{"peek", hostile}, {"tasks", "pause", hostile}, {hostile}} {
		stdout, stderr, _ := s.tendril("", args...)
		assertHarmless(t, strings.Join(args, " "), stdout)
		assertHarmless(t, strings.Join(args, " "), stderr)
		if stdout+stderr == "" {
			t.Errorf("%q prints nothing", args)
		}
	}
}

func TestWhateverIsPrintedIsHarmless(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	c := &base.CLI{In: strings.NewReader(""), Out: io.Discard, Err: &talk}
	cli.Execute(c, []string{"peek", hostile, "--data-dir", hostile})
	assertHarmless(t, "an error", talk.String())

	var out, log bytes.Buffer
	c = &base.CLI{Out: &out, Err: &log}
	c.Buffer(true)
	if _, err := c.Out.Write([]byte(hostile + "\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Err.Write([]byte(hostile + "\n")); err != nil {
		t.Fatal(err)
	}
	c.CloseBuffers()
	assertHarmless(t, "a line of the environment", out.String())
	assertHarmless(t, "a log line", log.String())
	if !strings.Contains(out.String(), `x\x1b[2J`) || !strings.Contains(log.String(), `x\x1b[2J`) {
		t.Errorf("the text is gone: %q, %q", &out, &log)
	}
}
