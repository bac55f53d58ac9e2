package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cron/periodic"
	"tendril/queue"

	"github.com/google/go-cmp/cmp"
)

func pastRuns() []api.TaskRun {
	at := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	return []api.TaskRun{
		{Task: "tidy", RunID: "tidy@2026-11-20T13:00:00Z", ScheduledAt: at, EnqueuedAt: at.Add(12 * time.Millisecond),
			LatenessMS: 12, MessageID: "m2",
			Attempts: 1, Outcome: "done", Status: 200, DurationMS: 41, FinishedAt: at.Add(time.Second)},
		{Task: "gone", RunID: "gone@2026-11-20T12:30:00Z", ScheduledAt: at.Add(-30 * time.Minute), MessageID: "m1"},
		{Task: "tidy", RunID: "tidy@2026-11-20T12:00:00Z", ScheduledAt: at.Add(-time.Hour), Skipped: "paused"},
	}
}

func crew(said *[]string) *TaskOptions {
	known := func(name string) error {
		if strings.Contains("tidy /a//b/../c .. a?b%2F", name) {
			return nil
		}
		return fmt.Errorf("tasks: %w", queue.Errorf(queue.CodeResourceNotFound, "there is no task %s", name))
	}
	note := func(text string) { *said = append(*said, text) }
	return &TaskOptions{
		Status: func() api.TasksStatus {
			return api.TasksStatus{File: "app/cron.yaml", Leader: api.Leader{Leading: true, Term: 4, Holder: "127.0.0.1:9325"},
				Tasks: []api.Task{
					{Name: "tidy", URL: "/tidy", Schedule: "0 * * * *", Words: "every hour UTC", Zone: "UTC", Overlap: "allow",
						Missed: "one", Last: &pastRuns()[0]},
					{Name: "never ran", Zone: "UTC", Paused: true, PauseReason: "audit"},
				}}
		},
		Run: func(_ context.Context, name string) (api.TaskRun, error) {
			note("run " + name)
			switch name {
			case "never ran":
				return api.TaskRun{}, queue.Errorf(queue.CodeResourceNotFound, "registry table jobs does not exist")
			case "late":
				return api.TaskRun{}, fmt.Errorf("running the task late: %w", context.DeadlineExceeded)
			case "off":
				return api.TaskRun{}, errors.New("nothing is scheduled here")
			case "lost":
				return api.TaskRun{}, queue.Errorf(queue.CodeQueueDoesNotExist, "there is no queue punctual")
			}
			return api.TaskRun{Task: name, Manual: true, MessageID: "m3"}, known(name)
		},
		Pause: func(_ context.Context, name, why, _ string) error {
			note("pause " + name + " " + why)
			return known(name)
		},
		Resume: func(_ context.Context, name string) error { note("resume " + name); return known(name) },
		History: func(name string) (runs []api.TaskRun) {
			for _, r := range pastRuns() {
				if name == "" || r.Task == name {
					runs = append(runs, r)
				}
			}
			return runs
		},
	}
}

func TestClientSeesTheTasks(t *testing.T) {
	t.Parallel()
	opts := crew(new([]string))
	c := dial(t, &Options{Tasks: opts, Status: func() api.Status { st := opts.Status(); return api.Status{Tasks: &st} }})
	got, err := c.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(opts.Status(), got); diff != "" {
		t.Errorf("tasks (-want +got)\n%s", diff)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Tasks == nil {
		t.Fatalf("status: %+v, %v", st, err)
	}
	if diff := cmp.Diff(opts.Status(), *st.Tasks); diff != "" {
		t.Errorf("status (-want +got)\n%s", diff)
	}
}

func TestClientSeesTheHistory(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{Tasks: crew(new([]string))})
	all := pastRuns()
	for _, want := range []struct {
		name  string
		limit int
		runs  []api.TaskRun
	}{
		{"", 0, all}, {"", 2, all[:2]}, {"tidy", 0, []api.TaskRun{all[0], all[2]}}, {"tidy", 1, all[:1]},
		{"gone", 0, all[1:2]}, {"never ran", 0, []api.TaskRun{}},
	} {
		got, err := c.TaskHistory(t.Context(), want.name, want.limit)
		if diff := cmp.Diff(want.runs, got); err != nil || diff != "" {
			t.Errorf("history of %q, limit %d: %v (-want +got)\n%s", want.name, want.limit, err, diff)
		}
	}
	var refusal *api.Error
	if _, err := c.TaskHistory(t.Context(), "nobody", 0); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusNotFound || refusal.Hint == "" {
		t.Errorf("history of nobody: %#v", err)
	}
	for _, limit := range []int{-1, 1001} {
		if _, err := c.TaskHistory(t.Context(), "", limit); !errors.As(err, &refusal) ||
			refusal.Status != http.StatusBadRequest {
			t.Errorf("limit %d: %#v", limit, err)
		}
	}
}

// Task names must not be resolved as paths.
func TestTaskNamesArriveWhole(t *testing.T) {
	t.Parallel()
	var said, want []string
	c := dial(t, &Options{Tasks: crew(&said)})
	for _, name := range []string{"tidy", "/a//b/../c", "..", ".", "a?b%2F"} {
		run, err := c.RunTask(t.Context(), name)
		if err != nil || run.Task != name || !run.Manual || run.MessageID != "m3" {
			t.Errorf("run %q = %+v, %v", name, run, err)
		}
		if err := errors.Join(c.PauseTask(t.Context(), name, "audit"), c.ResumeTask(t.Context(), name)); err != nil {
			t.Error(err)
		}
		want = append(want, "run "+name, "pause "+name+" audit", "resume "+name)
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestActsOnTasksAreRefused(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{Tasks: crew(new([]string))})
	run := func(name string) error { _, err := c.RunTask(t.Context(), name); return err }
	for what, want := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"run of nobody":     {run("nobody"), 404, "tasks: there is no task nobody"},
		"pause of nobody":   {c.PauseTask(t.Context(), "nobody", ""), 404, "there is no task nobody"},
		"resume of nobody":  {c.ResumeTask(t.Context(), "nobody"), 404, "there is no task nobody"},
		"a registry away":   {run("late"), 503, "running the task late"},
		"no table":          {run("never ran"), 503, "registry table jobs does not exist"},
		"no scheduler":      {run("off"), 409, "nothing is scheduled here"},
		"no queue":          {run("lost"), 404, "there is no queue punctual"},
		"a reason too long": {c.PauseTask(t.Context(), "tidy", strings.Repeat("x", maxReason+1)), 400, "200 bytes"},
	} {
		var refusal *api.Error
		if !errors.As(want.err, &refusal) || refusal.Status != want.status ||
			!strings.Contains(refusal.Message, want.says) || refusal.Hint == "" && what != "no table" {
			t.Errorf("%s: %#v; want a hint and %d saying %q", what, want.err, want.status, want.says)
		}
	}
}

func TestReloadSaysEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	var failure error
	c := dial(t, &Options{Reload: func(context.Context) (api.ReloadResult, error) { return api.ReloadResult{}, failure }})
	failure = fmt.Errorf("they stay: %w", &periodic.Error{Problems: []periodic.Problem{
		{Where: "cron.yaml:3", Text: "the task has no url", Hint: "write a line such as url: /backup"},
		{Where: "cron.yaml:9", Text: "two tasks have the name a"},
	}})
	var refusal *api.Error
	if _, err := c.Reload(t.Context()); !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest ||
		!strings.Contains(refusal.Message, "stay in force") {
		t.Fatalf("a bad file: %#v", err)
	}
	want := []api.Detail{{Text: "cron.yaml:3: the task has no url", Hint: "write a line such as url: /backup"},
		{Text: "cron.yaml:9: two tasks have the name a"}}
	if diff := cmp.Diff(want, refusal.Details); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	failure = errors.New("reading the periodic tasks: no such file")
	if _, err := c.Reload(t.Context()); !errors.As(err, &refusal) || refusal.Status != http.StatusConflict {
		t.Errorf("a missing file: %#v", err)
	}
}

func TestNoTasksAreAnEmptyList(t *testing.T) {
	t.Parallel()
	s := New(&Options{Tasks: &TaskOptions{Status: func() api.TasksStatus {
		return api.TasksStatus{Off: "no leader"}
	}, History: func(string) []api.TaskRun { return nil }}})
	if _, body := exchange(t, s, get("/api/v1/tasks")); fmt.Sprint(body["tasks"]) != "[]" || body["off"] != "no leader" {
		t.Errorf("tasks: %v", body)
	}
	if _, body := exchange(t, s, get("/api/v1/history")); fmt.Sprint(body["runs"]) != "[]" {
		t.Errorf("history: %v", body)
	}
}
