package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// farSchedule is not due while a test runs, on any day of the year.
func farSchedule() string {
	at := time.Now().UTC().AddDate(0, 6, 0)
	return fmt.Sprintf("0 0 %d %d *", at.Day(), at.Month())
}

func cronFile(t *testing.T, path string, names ...string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("version: 1\ncron:\n")
	for _, name := range names {
		fmt.Fprintf(&text, " - name: %s\n   url: /%s?key=secret\n   schedule: '%s'\n", name, name, farSchedule())
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

type env struct {
	*Manager
	broker *broker.Broker
	dir    string
	stop   chan struct{}
	ended  bool
}

func manager(t *testing.T, o Options, names ...string) *env {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	e := &env{broker: b, dir: t.TempDir(), stop: make(chan struct{})}
	if len(names) > 0 {
		cronFile(t, e.cron(), names...)
		if o.File, err = Open(e.cron(), slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	if o.Registry.Queue == "" {
		o.Registry = RegistryOptions{Queue: "jobs", Broker: b, Local: true}
	}
	if o.HasWorker == nil {
		o.HasWorker = func(string) bool { return true }
	}
	o.Stopping = e.stop
	e.Manager = New(o)
	t.Cleanup(func() {
		if e.ended {
			return
		}
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *env) cron() string { return filepath.Join(e.dir, "cron.yaml") }

func (e *env) begin(t *testing.T) {
	t.Helper()
	if err := e.Open(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	e.Start(t.Context())
}

func (e *env) names() (names []string) {
	for _, r := range e.Readings() {
		names = append(names, r.Task.Name)
	}
	return names
}

func (e *env) messages(t *testing.T) (paths []string) {
	t.Helper()
	msgs, err := e.broker.Queue("jobs").Receive(t.Context(), queue.ReceiveRequest{Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range msgs {
		paths = append(paths, msgs[i].Attribute(queue.AttributePath))
	}
	return paths
}

func TestTaskIsRunPausedAndResumed(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{}, "tidy", "report")
	if _, err := e.Run(t.Context(), "tidy"); !errors.Is(err, errStarting) {
		t.Errorf("before the start: %v", err)
	}
	if err := e.Reload(); !errors.Is(err, errStarting) {
		t.Errorf("reloaded before the start: %v", err)
	}
	e.begin(t)
	if !e.Leading() || !e.Any() || e.Off() != "" || e.Count() != 2 || !e.Election().IsLeader() {
		t.Errorf("leading %t, any %t, off %q, %d tasks", e.Leading(), e.Any(), e.Off(), e.Count())
	}
	run, err := e.Run(t.Context(), "tidy")
	if err != nil || !run.Manual || run.Task != "tidy" || run.RunID == "" || run.MessageID == "" {
		t.Errorf("run: %+v, %v", run, err)
	}
	if got := e.messages(t); !slices.Equal(got, []string{"/tidy?key=secret"}) {
		t.Errorf("the queue holds %q", got)
	}
	if known, err := e.Known(t.Context(), run.RunID, "/tidy?key=secret"); !known || err != nil {
		t.Errorf("the run is known: %t, %v", known, err)
	}
	if err := e.Pause(t.Context(), "tidy", "audit of the data", "ann"); err != nil {
		t.Fatal(err)
	}
	st := e.Status()
	if len(st.Tasks) != 2 || st.Off != "" || st.File != e.cron() || !st.Leader.Local {
		t.Fatalf("status: %+v", st)
	}
	tidy, report := st.Tasks[0], st.Tasks[1]
	if !tidy.Paused || tidy.PauseReason != "audit of the data" || tidy.URL != "/tidy?(hidden)" || tidy.Last == nil ||
		tidy.Last.RunID != run.RunID || len(tidy.Next) != 5 {
		t.Errorf("tidy: %+v", tidy)
	}
	if report.Paused || report.Last != nil || report.PauseReason != "" {
		t.Errorf("report: %+v", report)
	}
	if runs := e.History("tidy"); len(runs) != 1 || !runs[0].Manual || len(e.History("report")) != 0 {
		t.Errorf("history: %+v", runs)
	}
	next := New(Options{File: e.opts.File, Registry: e.opts.Registry, HasWorker: e.opts.HasWorker})
	if err := next.Open(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if s := next.current.Load().scheduler.Status(); !s[0].Paused || s[1].Paused {
		t.Errorf("after a restart: %+v", s)
	}
	if err := errors.Join(next.Stop(t.Context()), e.Resume(t.Context(), "tidy")); err != nil {
		t.Fatal(err)
	}
	if tidy := e.Status().Tasks[0]; tidy.Paused || tidy.PauseReason != "" {
		t.Errorf("resumed: %+v", tidy)
	}
	missing := &queue.Error{Code: queue.CodeResourceNotFound}
	_, err = e.Run(t.Context(), "none")
	for what, err := range map[string]error{"run": err, "pause": e.Pause(t.Context(), "none", "", ""),
		"resume": e.Resume(t.Context(), "none")} {
		if !errors.Is(err, missing) || !strings.Contains(err.Error(), e.cron()) {
			t.Errorf("%s of a task that does not exist: %v", what, err)
		}
	}
}

func TestReloadPutsTheFileInForce(t *testing.T) {
	t.Parallel()
	var good, bad atomic.Int32
	e := manager(t, Options{Observers: Observers{Reloaded: func(err error) {
		if err == nil {
			good.Add(1)
		} else {
			bad.Add(1)
		}
	}}}, "tidy", "audit", "ann")
	e.begin(t)
	want := func(what string, names ...string) {
		t.Helper()
		if got := e.names(); !slices.Equal(got, names) || e.Count() != len(names) {
			t.Errorf("%s: %q are scheduled and %d counted, want %q", what, got, e.Count(), names)
		}
	}
	want("at the start", "tidy", "audit", "ann")
	cronFile(t, e.cron(), "tidy", "report")
	if err := e.Reload(); err != nil {
		t.Error(err)
	}
	want("another task", "tidy", "report")
	if err := os.WriteFile(e.cron(), []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(); err == nil || !strings.Contains(err.Error(), "the current tasks stay in force") {
		t.Errorf("a broken file: %v", err)
	}
	want("a broken file", "tidy", "report")
	if err := os.Remove(e.cron()); err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	want("the file is gone")
	other := filepath.Join(t.TempDir(), "cron.yaml")
	cronFile(t, other, "next")
	if err := e.Adopt(t.Context(), other); err != nil {
		t.Error(err)
	}
	want("the file of a new version", "next")
	if err := e.Adopt(t.Context(), ""); err != nil {
		t.Error(err)
	}
	want("a version without tasks")
	if good.Load() < 4 || bad.Load() < 1 {
		t.Errorf("observed %d changes and %d errors", good.Load(), bad.Load())
	}
}

func TestRequiredFileMustBeThere(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{Required: true}, "tidy")
	e.begin(t)
	if err := os.Remove(e.cron()); err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(); !errors.Is(err, os.ErrNotExist) || !slices.Equal(e.names(), []string{"tidy"}) {
		t.Errorf("%v; %q are scheduled", err, e.names())
	}
}

func TestTasksStartWithTheFirstFile(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{})
	e.begin(t)
	const none = "no periodic tasks"
	_, err := e.Run(t.Context(), "tidy")
	for what, err := range map[string]error{"run": err, "reload": e.Reload(), "status": errors.New(e.Status().Off)} {
		if err == nil || !strings.Contains(err.Error(), none) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if e.Any() || e.Count() != 0 || e.Leading() || e.Account() != nil {
		t.Errorf("any %t, %d tasks, leading %t", e.Any(), e.Count(), e.Leading())
	}
	if err := e.Refresh(t.Context(), e.dir); err != nil || e.Any() {
		t.Errorf("without a file: %v, any %t", err, e.Any())
	}
	if err := os.WriteFile(e.cron(), []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(t.Context(), e.dir); err == nil || e.Count() != 0 {
		t.Errorf("with a broken file: %v, %d tasks", err, e.Count())
	}
	cronFile(t, e.cron(), "tidy")
	if err := e.Refresh(t.Context(), e.dir); err != nil || !slices.Equal(e.names(), []string{"tidy"}) || !e.Leading() {
		t.Errorf("with a file: %v, %q are scheduled", err, e.names())
	}
	if _, err := e.Run(t.Context(), "tidy"); err != nil {
		t.Error(err)
	}
}

func TestTasksWithoutALeaderAreShown(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{Registry: RegistryOptions{Queue: "jobs", QueueURL: onlyInstance.QueueURL}}, "tidy")
	e.begin(t)
	const hint = "no leader can be elected: add --registry-table"
	st := e.Status()
	if !strings.Contains(st.Off, hint) || len(st.Tasks) != 1 || st.Tasks[0].Name != "tidy" || e.Count() != 1 ||
		e.Leading() || !strings.Contains(e.Off(), hint) || e.Account() != nil || e.Readings() != nil {
		t.Errorf("%+v", st)
	}
	_, err := e.Run(t.Context(), "tidy")
	for what, err := range map[string]error{"run": err, "pause": e.Pause(t.Context(), "tidy", "", ""),
		"resume": e.Resume(t.Context(), "tidy"), "reload": e.Reload(), "adopt": e.Adopt(t.Context(), e.cron())} {
		if !errors.Is(err, ErrNotScheduled) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := e.Adopt(t.Context(), ""); err != nil || e.Any() || e.Off() != "" {
		t.Errorf("a version without tasks: %v, any %t, off %q", err, e.Any(), e.Off())
	}
}

// The task's queue is not created before a restart.
func TestRunsOfATaskWithoutItsQueueGoToTheFirst(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{HasWorker: func(name string) bool { return name == "jobs" }})
	e.begin(t)
	text := "version: 1\ncron:\n - {name: tidy, url: /tidy, schedule: '" + farSchedule() + "', queue: other}\n"
	if err := os.WriteFile(e.cron(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Refresh(t.Context(), e.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), "tidy"); err != nil {
		t.Fatal(err)
	}
	if got := e.messages(t); !slices.Equal(got, []string{"/tidy"}) {
		t.Errorf("the first queue holds %q", got)
	}
	task := e.Status().Tasks[0]
	if task.Queue != "other" || task.Problem != "the queue other is created at the next restart: until then its runs go to jobs" {
		t.Errorf("%+v", task)
	}
}

func TestUnfinishedRunIsKnown(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{}, "tidy")
	e.begin(t)
	tidy := periodic.Task{Name: "tidy"}
	want := func(what string, unfinished bool) {
		t.Helper()
		if got := e.unfinished(tidy); got != unfinished {
			t.Errorf("%s: unfinished %t", what, got)
		}
	}
	want("before a run", false)
	if _, err := e.Run(t.Context(), "tidy"); err != nil {
		t.Fatal(err)
	}
	want("in the queue", true)
	e.Account().Begun("tidy")
	msgs, err := e.broker.Queue("jobs").Receive(t.Context(), queue.ReceiveRequest{Max: 1})
	if err != nil || len(msgs) != 1 {
		t.Fatal(msgs, err)
	}
	if errs := e.broker.Queue("jobs").Delete(t.Context(), []string{msgs[0].ReceiptHandle}); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	want("in work", true)
	e.Account().Ended(periodic.Outcome{Task: "tidy", ScheduledAt: queue.ParseRun(&msgs[0]).ScheduledAt,
		MessageID: msgs[0].ID, Attempt: 1, At: time.Now(), Result: queue.Result{Outcome: queue.Done, Status: 200}})
	want("done", false)
	if runs := e.History("tidy"); len(runs) != 1 || runs[0].Outcome != "done" || runs[0].Status != 200 {
		t.Errorf("history: %+v", runs)
	}
}

func TestNothingStartsWhileTheEnvironmentStops(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{})
	e.begin(t)
	cronFile(t, e.cron(), "tidy")
	token := <-e.changing // another change seems to be in progress
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Adopt(ctx, e.cron()); !errors.Is(err, errStopped) {
		t.Errorf("while another change is under way: %v", err)
	}
	e.ended = true
	if err := e.Stop(ctx); err == nil || !strings.Contains(err.Error(), "enqueueing did not stop") {
		t.Errorf("stopped while a change is under way: %v", err)
	}
	e.changing <- token
	other := manager(t, Options{})
	other.begin(t)
	cronFile(t, other.cron(), "tidy")
	close(other.stop)
	if err := other.Adopt(t.Context(), other.cron()); !errors.Is(err, errStopped) || other.Count() != 0 {
		t.Errorf("%v, %d tasks", err, other.Count())
	}
}

func TestPauseThatCannotBeKeptIsAnError(t *testing.T) {
	t.Parallel()
	e := manager(t, Options{Registry: onlyInstance, Pauses: brokenPauses{}}, "tidy")
	e.begin(t)
	if err := e.Pause(t.Context(), "tidy", "audit", "ann"); !errors.Is(err, errDown) || e.Status().Tasks[0].Paused {
		t.Errorf("%v; %+v", err, e.Status().Tasks)
	}
	if err := e.Resume(t.Context(), "tidy"); !errors.Is(err, errDown) {
		t.Error(err)
	}
}

type brokenPauses struct{}

func (brokenPauses) SetPaused(context.Context, string, string, bool) error { return errDown }
func (brokenPauses) Paused(context.Context) (map[string]string, error)     { return nil, errDown }
