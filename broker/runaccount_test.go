package broker

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"tendril/queue"
)

func TestTasksAreAccountedFor(t *testing.T) {
	t.Parallel()
	b, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	ctx, r := t.Context(), b.Registry()
	if err := b.CreateQueue(ctx, "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	if won, _, err := r.Swap(ctx, "lead", queue.Lease{},
		queue.Lease{Version: "v1", Term: 3, Duration: time.Second}); !won || err != nil {
		t.Fatal(won, err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	since, err := r.SinceUnder(ctx, "lead", 3, map[string]time.Time{"audit": at}, nil)
	if err != nil || !since["audit"].UpTo.Equal(at) {
		t.Fatalf("a new task is entered with %v, %v", since, err)
	}
	if since, _ = r.SinceUnder(ctx, "lead", 3, map[string]time.Time{"audit": at.Add(time.Hour)},
		nil); !since["audit"].UpTo.Equal(at) {
		t.Errorf("a known task is since %v, want the first entry %v", since["audit"].UpTo, at)
	}
	later := RunRequest{ID: "audit@2", Task: "audit", At: at.Add(2 * time.Hour), Lease: "lead", Term: 3}
	if _, err := r.Skip(ctx, later, nil); err != nil {
		t.Fatal(err)
	}
	if since, _ = r.SinceUnder(ctx, "", 0, map[string]time.Time{"audit": at}, nil); !since["audit"].UpTo.Equal(later.At) {
		t.Errorf("after the skip: %v, want %v", since["audit"].UpTo, later.At)
	}
	if enqueued, err := r.Enqueued(ctx, "audit@2"); enqueued || err != nil {
		t.Errorf("a skipped run was enqueued: %v, %v", enqueued, err)
	}
	run := RunRequest{Queue: "jobs", ID: "audit@3", Task: "audit", At: at.Add(3 * time.Hour), Lease: "lead", Term: 3}
	if _, _, err := r.Enqueue(ctx, run, queue.Outgoing{Body: "x"}); err != nil {
		t.Fatal(err)
	}
	if enqueued, err := r.Enqueued(ctx, "audit@3"); !enqueued || err != nil {
		t.Errorf("Enqueued = %v, %v", enqueued, err)
	}

	stale := map[string]error{}
	_, stale["since"] = r.SinceUnder(ctx, "lead", 2, map[string]time.Time{"audit": at}, nil)
	_, stale["skip"] = r.Skip(ctx, RunRequest{ID: "a", Task: "audit", At: at, Lease: "lead", Term: 4}, nil)
	for what, err := range stale {
		if !errors.Is(err, queue.ErrStaleTerm) {
			t.Errorf("%s of another term: %v", what, err)
		}
	}
	bad := map[string]error{}
	_, bad["half a fence"] = r.SinceUnder(ctx, "lead", 0, map[string]time.Time{"audit": at}, nil)
	_, bad["no task name"] = r.SinceUnder(ctx, "lead", 3, map[string]time.Time{"": at}, nil)
	_, bad["skip of no task"] = r.Skip(ctx, RunRequest{ID: "a", At: at}, nil)
	for what, err := range bad {
		if want := (&queue.Error{Code: queue.CodeInvalidParameterValue}); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A run is known with the path of its message only.
func TestEnqueuedTo(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	r := b.Registry()
	to := func(path string) queue.Outgoing {
		return queue.Outgoing{Body: "x",
			Attributes: []queue.Attribute{{Name: "beanstalk.sqsd.path", Type: "String", Value: path}}}
	}
	run, plain := runOf("work", "report", 0), runOf("work", "report", 1)
	for req, m := range map[RunRequest]queue.Outgoing{run: to("/report?full=1"), plain: {Body: "x"}} {
		if _, _, err := r.Enqueue(t.Context(), req, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, already, err := r.Enqueue(t.Context(), run, to("/other")); !already || err != nil {
		t.Fatalf("enqueued again: %v, %v", already, err)
	}
	for ask, want := range map[[2]string]bool{
		{run.ID, "/report?full=1"}: true, {run.ID, "/report"}: false, {run.ID, "/other"}: false, {run.ID, ""}: false,
		{plain.ID, "/report"}: false, {plain.ID, ""}: true, {"report@never", "/report"}: false,
	} {
		if got, err := r.EnqueuedTo(t.Context(), ask[0], ask[1]); got != want || err != nil {
			t.Errorf("EnqueuedTo(%q, %q) = %v, %v", ask[0], ask[1], got, err)
		}
	}
}

// Times before a task had its schedule are no times of that schedule.
func TestSinceUnderAnotherSchedule(t *testing.T) {
	t.Parallel()
	r, ctx := openTest(t, nil).Registry(), t.Context()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	hours := func(n int) time.Time { return at.Add(time.Duration(n) * time.Hour) }
	for i, step := range []struct {
		schedule       string
		at, upTo, from int
	}{
		{"", 0, 0, 0},              // as an older version enters it
		{"0 5 * * *", 1, 0, 0},     // which says nothing of a change
		{"0 5 * * *", 2, 0, 0},     // the same
		{"", 3, 0, 0},              // as an older version asks
		{"* * * * * UTC", 4, 4, 4}, // changed
		{"* * * * * UTC", 5, 4, 4},
		{"* * * * * UTC", 2, 4, 2}, // by a clock that was set back
		{"", 1, 4, 1},
		{"0 5 * * *", 3, 4, 3}, // changed back, by who knows it for longer: runs stay accounted for
		{"0 5 * * *", 6, 4, 3},
	} {
		since, err := r.SinceUnder(ctx, "", 0, map[string]time.Time{"audit": hours(step.at)},
			map[string]string{"audit": step.schedule})
		want := queue.TaskTimes{UpTo: hours(step.upTo), From: hours(step.from)}
		if err != nil || since["audit"] != want {
			t.Errorf("step %d: %v, %v; want %v", i, since["audit"], err, want)
		}
	}
	if _, err := r.Skip(ctx, RunRequest{ID: "audit@7", Task: "audit", At: hours(7)}, nil); err != nil {
		t.Fatal(err)
	}
	since, err := r.SinceUnder(ctx, "", 0, map[string]time.Time{"audit": hours(9)},
		map[string]string{"audit": "0 5 * * *"})
	if err != nil || !since["audit"].UpTo.Equal(hours(7)) {
		t.Errorf("after a skip the schedule is forgotten: %v, %v", since, err)
	}
}

// A file of an earlier version says nothing of from when its tasks exist, until one gets another schedule.
func TestTasksOfAnEarlierVersionHaveNoStart(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ask := func(b *Broker, hours int, schedule string) queue.TaskTimes {
		t.Helper()
		known, err := b.Registry().SinceUnder(t.Context(), "", 0,
			map[string]time.Time{"audit": at.Add(time.Duration(hours) * time.Hour)}, map[string]string{"audit": schedule})
		if err != nil {
			t.Fatal(err)
		}
		return known["audit"]
	}
	b := openDir(t, dir, nil)
	ask(b, 0, "0 5 * * *")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openConn(filepath.Join(dir, databaseName), "")
	if err == nil {
		err = errors.Join(c.script(`DROP TABLE task_starts`), c.close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b = openDir(t, dir, nil)
	defer b.Close()
	if got, want := ask(b, -1, "0 5 * * *"), (queue.TaskTimes{UpTo: at}); got != want {
		t.Errorf("a task of an earlier version: %v, want %v", got, want)
	}
	later := at.Add(time.Hour)
	if got, want := ask(b, 1, "* * * * *"), (queue.TaskTimes{UpTo: later, From: later}); got != want {
		t.Errorf("with another schedule: %v, want %v", got, want)
	}
}
