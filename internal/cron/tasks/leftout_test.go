package tasks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/cron/periodic"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

// TestLeftOutRunsAreLookedFor: whichever registry, to leave runs out tells which of
// them were enqueued, and accounts for all.
func TestLeftOutRunsAreLookedFor(t *testing.T) {
	table := newTable(t)
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sqsapi.New(b, nil))
	t.Cleanup(server.Close)
	served := EmbeddedRuns{registry: sqsapi.NewRegistryClient(server.URL, sqsapi.Identity{},
		&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}), prefix: "served/"}
	memory, local := newMemoryRuns(), table.LocalRuns("periodic:jobs")
	for name, r := range map[string]struct {
		runs  periodic.Registry
		store periodic.Store // nil where sending and noting are one
	}{
		"embedded": {EmbeddedRuns{registry: b.Registry(), prefix: "periodic:jobs/"}, nil},
		"served":   {served, nil},
		"memory":   {periodic.NewClaims(memory, &flakySender{}, localLeader{}), memory},
		"table":    {periodic.NewClaims(local, &flakySender{}, localLeader{}), local},
	} {
		ctx, runs := t.Context(), threeRuns()
		sent, err := r.runs.Enqueue(ctx, 1, runs[0])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.store != nil { // an earlier leader ended after this
			if _, err := r.store.Claim(ctx, 0, runs[1], 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		found, err := r.runs.Skip(ctx, 1, runs)
		first, second := found[runs[0].ID], found[runs[1].ID]
		if err != nil || first.MessageID != sent.Sent.ID || !first.Settled {
			t.Errorf("%s: the run that was enqueued as %s was found as %+v, %v", name, sent.Sent.ID, first, err)
		}
		if claimed := second.Tries == 1 && !second.Settled; claimed != (r.store != nil) {
			t.Errorf("%s: the second run was found as %+v", name, second)
		}
		if third, ok := found[runs[2].ID]; ok {
			t.Errorf("%s: a run that nobody knows was found as %+v", name, third)
		}
		since, err := r.runs.Since(ctx, 1, map[string]periodic.Start{"audit": {At: runs[0].ScheduledAt}})
		if err != nil || !since["audit"].UpTo.Equal(runs[2].ScheduledAt) {
			t.Errorf("%s: accounted for up to %v, %v", name, since["audit"].UpTo, err)
		}
		again, err := r.runs.Skip(ctx, 1, runs) // as after a lost answer
		if err != nil || again[runs[0].ID].MessageID != sent.Sent.ID {
			t.Errorf("%s: left out again: %+v, %v", name, again, err)
		}
	}
}

// threeRuns are neighbours of one task.
func threeRuns() (runs []periodic.ScheduledRun) {
	at := time.Date(2026, 3, 22, 23, 10, 0, 0, time.UTC)
	for range 3 {
		f := periodic.ScheduledRun{ID: "audit@" + at.Format(time.RFC3339), Task: "audit", ScheduledAt: at, DueAt: at,
			Queue: "jobs"}
		f.Path, f.Message = "/audit", runMessage("/audit")
		runs, at = append(runs, f), at.Add(time.Minute)
	}
	return runs
}

// TestSkipIsRefusedInAnotherTerm: who was deposed learns nothing that it could tell.
func TestSkipIsRefusedInAnotherTerm(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	ctx := context.Background()
	if won, _, err := b.Registry().Swap(ctx, "l", queue.Lease{},
		queue.Lease{Version: "v", Term: 2, Duration: time.Second}); !won || err != nil {
		t.Fatal(won, err)
	}
	f := EmbeddedRuns{registry: b.Registry(), prefix: "periodic:jobs/", lease: "l"}
	if found, err := f.Skip(ctx, 1, threeRuns()); err == nil || len(found) > 0 {
		t.Errorf("in a term that is over: %v, %v", found, err)
	}
	if _, err := f.Skip(ctx, 2, threeRuns()); err != nil {
		t.Errorf("in the current term: %v", err)
	}
}
