package broker

import (
	"testing"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

func TestTasksOfAnEarlierVersionHaveNoStart(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ask := func(b *Broker, hours int, schedule string) queue.TaskTimes {
		t.Helper()
		runs := registry.NewRuns(b.Registry(), registry.Scope{})
		known, err := runs.Since(t.Context(), 0,
			map[string]registry.Start{"audit": {At: at.Add(time.Duration(hours) * time.Hour), Schedule: schedule}})
		if err != nil {
			t.Fatal(err)
		}
		return known["audit"]
	}
	b := openDir(t, dir, nil)
	ask(b, 0, "0 5 * * *")
	closeBroker(t, b)
	alterDatabase(t, dir, `DROP TABLE task_starts`)
	b = openDir(t, dir, nil)
	if got, want := ask(b, -1, "0 5 * * *"), (queue.TaskTimes{UpTo: at}); got != want {
		t.Errorf("a task of an earlier version: %v, want %v", got, want)
	}
	later := at.Add(time.Hour)
	if got, want := ask(b, 1, "* * * * *"), (queue.TaskTimes{UpTo: later, From: later}); got != want {
		t.Errorf("with another schedule: %v, want %v", got, want)
	}
}
