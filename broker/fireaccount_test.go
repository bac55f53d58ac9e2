package broker

import (
	"errors"
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
	if won, _, err := r.Swap(ctx, "lead", queue.Lease{}, queue.Lease{Version: "v1", Term: 3, Duration: time.Second}); !won || err != nil {
		t.Fatal(won, err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	since, err := r.Since(ctx, "lead", 3, map[string]time.Time{"audit": at})
	if err != nil || !since["audit"].Equal(at) {
		t.Fatalf("a new task is entered with %v, %v", since, err)
	}
	if since, _ = r.Since(ctx, "lead", 3, map[string]time.Time{"audit": at.Add(time.Hour)}); !since["audit"].Equal(at) {
		t.Errorf("a known task is since %v, want the first entry %v", since["audit"], at)
	}
	later := FireRequest{ID: "audit@2", Task: "audit", At: at.Add(2 * time.Hour), Lease: "lead", Term: 3}
	if err := r.Skip(ctx, later); err != nil {
		t.Fatal(err)
	}
	if since, _ = r.Since(ctx, "", 0, map[string]time.Time{"audit": at}); !since["audit"].Equal(later.At) {
		t.Errorf("after the skip: %v, want %v", since["audit"], later.At)
	}
	if fired, err := r.Fired(ctx, "audit@2"); fired || err != nil {
		t.Errorf("a skipped run was fired: %v, %v", fired, err)
	}
	fire := FireRequest{Queue: "jobs", ID: "audit@3", Task: "audit", At: at.Add(3 * time.Hour), Lease: "lead", Term: 3}
	if _, _, err := r.Fire(ctx, fire, queue.Outgoing{Body: "x"}); err != nil {
		t.Fatal(err)
	}
	if fired, err := r.Fired(ctx, "audit@3"); !fired || err != nil {
		t.Errorf("Fired = %v, %v", fired, err)
	}

	stale := map[string]error{}
	_, stale["since"] = r.Since(ctx, "lead", 2, map[string]time.Time{"audit": at})
	stale["skip"] = r.Skip(ctx, FireRequest{ID: "a", Task: "audit", At: at, Lease: "lead", Term: 4})
	for what, err := range stale {
		if !errors.Is(err, queue.ErrStaleTerm) {
			t.Errorf("%s of another term: %v", what, err)
		}
	}
	bad := map[string]error{}
	_, bad["half a fence"] = r.Since(ctx, "lead", 0, map[string]time.Time{"audit": at})
	_, bad["no task name"] = r.Since(ctx, "lead", 3, map[string]time.Time{"": at})
	bad["skip of no task"] = r.Skip(ctx, FireRequest{ID: "a", At: at})
	for what, err := range bad {
		if want := (&queue.Error{Code: queue.CodeInvalidParameterValue}); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
