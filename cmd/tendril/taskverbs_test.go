package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/console"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

func TestTaskVerbs(t *testing.T) {
	t.Parallel()
	var said []string
	s := newStage(t, func(opts *console.Options, _ *api.Instance) {
		opts.Tasks = &console.TaskOptions{
			Status: func() api.TasksStatus {
				return api.TasksStatus{File: "cron.yaml", Off: "no registry", Leader: api.Leader{}}
			},
			History: func(string) []api.TaskRun {
				return []api.TaskRun{{Task: "tidy", ScheduledAt: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), MessageID: "m1"}}
			},
			Run: func(_ context.Context, name string) (api.TaskRun, error) {
				if name == "late" {
					return api.TaskRun{}, fmt.Errorf("running the task late: %w", context.DeadlineExceeded)
				}
				return api.TaskRun{}, queue.Errorf(queue.CodeResourceNotFound, "task %s not found", name)
			},
			Pause:  func(_ context.Context, name, why, _ string) error { said = append(said, name+": "+why); return nil },
			Resume: func(context.Context, string) error { return errors.New("nothing is scheduled") },
		}
		opts.Reload = func(context.Context) (api.ReloadResult, error) {
			return api.ReloadResult{}, &periodic.Error{Problems: []periodic.Problem{{Where: "cron.yaml:3", Text: "one"},
				{Where: "cron.yaml:4", Text: "two", Hint: "do that"}}}
		}
	})
	if out := s.must("tasks"); !strings.HasSuffix(out, "\nNOT SCHEDULED: no registry\n") {
		t.Errorf("tasks: %q", out)
	}
	if out := s.must("tasks", "history"); !strings.Contains(out, "m1") {
		t.Errorf("history: %q", out)
	}
	if s.must("tasks", "pause", "tidy", "--reason", "audit"); cmp.Diff([]string{"tidy: audit"}, said) != "" {
		t.Errorf("pause said %q", said)
	}
	if _, talk, _ := s.tendril("", "tasks", "pause", "tidy up"); talk !=
		"task tidy up is paused; 'tendril tasks resume 'tidy up'' resumes it\n" {
		t.Errorf("pause: %q", talk)
	}
	for _, c := range []struct {
		args string
		code int
		talk string
	}{
		{"tasks run nobody", base.ExitNotFound,
			"tendril: task nobody not found\nhint: 'tendril tasks' lists the tasks\n"},
		{"tasks run late", base.ExitFailed,
			"tendril: running the task late: context deadline exceeded\nhint: it may have succeeded"},
		{"tasks resume tidy", base.ExitConflict, "tendril: nothing is scheduled\nhint: "},
		{"reload", base.ExitUsage,
			"tendril: cron.yaml:3: one\ntendril: cron.yaml:4: two\nhint: do that\n" +
				"tendril: the task file was rejected; the current tasks stay in force\n"},
		{"tasks history -n 1001", base.ExitUsage, "tendril: --limit 1001 is out of range"},
	} {
		out, talk, code := s.tendril("", strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.HasPrefix(talk, c.talk) {
			t.Errorf("tendril %s: exit %d, %q, %q; want %d, %q", c.args, code, out, talk, c.code, c.talk)
		}
	}
}
