package tasks

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

func TestHistorySurvivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), HistoryFile)
		m := New(Options{HistoryFile: path, Registry: onlyInstance})
		s, err := m.newSchedule(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m.current.Store(s)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { m.KeepHistory(ctx); close(ended) }()
		at := time.Now().UTC().Round(0)
		outcome := periodic.Outcome{Task: "tidy", ScheduledAt: at, MessageID: "m1", Attempt: 2, At: at.Add(time.Second),
			Result: queue.Result{Outcome: queue.Unreached, Reason: "connection refused", Duration: 3 * time.Millisecond,
				Answer: "secret"}}
		s.scheduler.Outcome(outcome)
		time.Sleep(historyInterval + time.Second)
		if runs := readHistory(path, m.log); len(runs) != 1 {
			t.Fatalf("after an interval: %+v", runs)
		}
		outcome.MessageID, outcome.Result = "m2", queue.Result{Outcome: queue.Done, Status: 200}
		s.scheduler.Outcome(outcome)
		stop()
		<-ended
		next, err := New(Options{HistoryFile: path, Registry: onlyInstance}).newSchedule(
			t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := s.scheduler.History("")
		want[1].Result.Answer = "" // only operators see the response
		if diff := cmp.Diff(want, next.scheduler.History("")); diff != "" || len(want) != 2 {
			t.Errorf("after the restart (-before +after):\n%s", diff)
		}
		data, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(data), "secret") {
			t.Errorf("the file holds %s, %v", data, err)
		}
	})
}

func TestInvalidHistoryFileIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if runs := readHistory(filepath.Join(dir, "missing"), logger); len(runs) != 0 || log.Len() != 0 {
		t.Errorf("without a file: %v, %s", runs, &log)
	}
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte(`{"runs":[{"task`), 0o600); err != nil {
		t.Fatal(err)
	}
	if runs := readHistory(broken, logger); len(runs) != 0 || !strings.Contains(log.String(), "task history not read") {
		t.Errorf("a broken file: %v, %s", runs, &log)
	}
}

var onlyInstance = RegistryOptions{Queue: "jobs", QueueURL: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
	Local: true}

type fakePauses map[string]string

func (f fakePauses) SetPaused(_ context.Context, task, reason string, paused bool) error {
	if delete(f, task); paused {
		f[task] = reason
	}
	return nil
}

func (f fakePauses) Paused(context.Context) (map[string]string, error) { return f, nil }

func TestTheOnlyInstanceKeepsItsPauses(t *testing.T) {
	t.Parallel()
	store := fakePauses{"tidy": "audit"}
	m := New(Options{Pauses: store, Registry: onlyInstance})
	s, err := m.newSchedule(t.Context(), &periodic.File{Tasks: []periodic.Task{{Name: "tidy"}, {Name: "report"}}})
	if err != nil {
		t.Fatal(err)
	}
	paused := map[string]bool{}
	for _, task := range s.scheduler.Status() {
		paused[task.Task.Name] = task.Paused
	}
	if !paused["tidy"] || paused["report"] || s.pauses.all()["tidy"] != (pause{Reason: "audit"}) {
		t.Errorf("paused %v, %v", paused, s.pauses.all())
	}
	if err := s.pauses.set(t.Context(), "report", pause{"lunch", "owner", time.Unix(0, 0).UTC()}, true); err != nil ||
		pausesOf(store)["report"] != (pause{"lunch", "owner", time.Unix(0, 0).UTC()}) {
		t.Errorf("%v, %v", store, err)
	}
	s.pauses.follow(t.Context()) // returns at once without other instances
}
