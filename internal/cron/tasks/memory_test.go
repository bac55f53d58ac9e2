package tasks

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

func TestTheMemoryKeepsRecordsOfRuns(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newMemoryRuns()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := periodic.ScheduledRun{ID: "audit@1", Task: "audit", ScheduledAt: at, Path: "/audit"}
	since, _ := s.Since(ctx, 1, map[string]periodic.Start{"audit": {At: at.Add(-time.Hour)}})
	if want := (queue.TaskTimes{UpTo: at.Add(-time.Hour), From: at.Add(-time.Hour)}); since["audit"] != want {
		t.Errorf("a new task is accounted for since %v", since)
	}
	if c, _ := s.Claim(ctx, 1, f, 2); c.Tries != 0 {
		t.Errorf("try 2 was claimed before try 1: %+v", c)
	}
	if c, _ := s.Claim(ctx, 1, f, 1); c.Tries != 1 || c.Settled {
		t.Errorf("try 1: %+v", c)
	}
	s.Mark(ctx, 1, f, "m-1")
	s.Mark(ctx, 1, f, "m-2")
	if c, _ := s.Claim(ctx, 2, f, 2); c.Tries != 1 || !c.Settled || c.MessageID != "m-1" {
		t.Errorf("after the mark: %+v", c)
	}
	for _, step := range []struct{ at, from time.Duration }{{-1, -1}, {-2, -2}, {1, -2}} { // the second: a clock set back
		since, _ = s.Since(ctx, 1, map[string]periodic.Start{"audit": {At: at.Add(step.at * time.Hour)}})
		if want := (queue.TaskTimes{UpTo: at, From: at.Add(step.from * time.Hour)}); since["audit"] != want {
			t.Errorf("accounted for %v, want %v", since["audit"], want)
		}
	}
	s.Mark(ctx, 1, periodic.ScheduledRun{ID: "audit@0", Task: "audit", ScheduledAt: at}, "") // left out
	for run, want := range map[[2]string]bool{{"audit@1", "/audit"}: true, {"audit@1", "/admin"}: false,
		{"audit@0", ""}: false} {
		if known, _ := s.Known(ctx, run[0], run[1]); known != want {
			t.Errorf("Known(%q) = %v", run, known)
		}
	}
	later := periodic.ScheduledRun{ID: "audit@2", Task: "audit", ScheduledAt: at.Add(72 * time.Hour)}
	s.Claim(ctx, 1, later, 1)
	if known, _ := s.Known(ctx, "audit@1", "/audit"); known {
		t.Error("records are kept for ever")
	}
}

func TestTheFileMustBeRegular(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cron.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(path)
	if err == nil || !strings.Contains(err.Error(), "not a regular file") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
