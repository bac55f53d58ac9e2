package registrytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

// Registry stores an environment's runs and pauses.
type Registry interface {
	Since(ctx context.Context, term int64, starts map[string]registry.Start) (map[string]queue.TaskTimes, error)
	Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error)
	Skip(ctx context.Context, term int64, runs []registry.Run) (map[string]registry.RunRecord, error)
	Known(ctx context.Context, id, path string) (bool, error)
	SetPaused(ctx context.Context, task, reason string, paused bool) error
	Paused(ctx context.Context) (map[string]string, error)
}

// Runs tests the registries that open returns, which must share their records and have a queue named jobs.
func Runs(t *testing.T, open func(t testing.TB, scope registry.Scope) Registry, leases LeaseStore) {
	t.Helper()
	run := time.Now().UnixNano()
	for i, c := range []struct {
		name  string
		check func(r *runsTest)
	}{
		{"times before the start of a schedule were never due", (*runsTest).earlierTimesWereNeverDue},
		{"a run is enqueued once", (*runsTest).enqueuesOnce},
		{"runs move the time of their task only forward", (*runsTest).timesMoveForward},
		{"a run is known with its path", (*runsTest).knowsPaths},
		{"a skipped run is not known", (*runsTest).skippedRunIsUnknown},
		{"skipping runs finds the enqueued ones", (*runsTest).skipFindsEnqueuedRuns},
		{"only the current term makes changes", (*runsTest).onlyCurrentTermWrites},
		{"environments are independent", (*runsTest).environmentsAreSeparate},
		{"pauses have reasons", (*runsTest).pausesHaveReasons},
		{"invalid names are refused", (*runsTest).refusesInvalidNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			scope := registry.Scope{Name: fmt.Sprintf("suite-%d-%d", run, i)}
			c.check(&runsTest{TB: t, scope: scope, open: open, leases: leases, registry: open(t, scope)})
		})
	}
}

type runsTest struct {
	testing.TB
	scope    registry.Scope
	open     func(t testing.TB, scope registry.Scope) Registry
	leases   LeaseStore
	registry Registry

	checkedTerms int
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func hours(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }

// Run returns a run scheduled n hours after noon.
func Run(task string, n int) registry.Run {
	at := hours(n)
	return registry.Run{Task: task, ScheduledAt: at, DueAt: at, ID: task + "@" + at.Format(time.RFC3339), Path: "/" + task,
		Queue: "jobs", Message: queue.Outgoing{Body: "x", Attributes: []queue.Attribute{
			{Name: queue.AttributePath, Type: "String", Value: "/" + task}}}}
}

func (r *runsTest) since(term int64, task string, start registry.Start) (queue.TaskTimes, error) {
	known, err := r.registry.Since(context.Background(), term, map[string]registry.Start{task: start})
	return known[task], err
}

func (r *runsTest) wantTimes(step int, start registry.Start, want queue.TaskTimes) {
	r.Helper()
	got, err := r.since(0, "audit", start)
	if err != nil || got != want {
		r.Errorf("step %d: %v, %v; want %v", step, got, err, want)
	}
}

func (r *runsTest) enqueue(run registry.Run) registry.EnqueueResult {
	r.Helper()
	result, err := r.registry.Enqueue(context.Background(), 0, run)
	if err != nil {
		r.Fatalf("Enqueue %s: %v", run.ID, err)
	}
	return result
}

func (r *runsTest) earlierTimesWereNeverDue() {
	for i, step := range []struct {
		schedule       string
		at, upTo, from int
	}{
		{"", 0, 0, 0}, // from an earlier version
		{"0 5 * * *", 1, 0, 0},
		{"0 5 * * *", 2, 0, 0},
		{"", 3, 0, 0}, // from an earlier version
		{"* * * * * UTC", 4, 4, 4},
		{"* * * * * UTC", 5, 4, 4},
		{"* * * * * UTC", 2, 4, 2}, // the clock was set back
		{"", 1, 4, 1},
		{"0 5 * * *", 3, 4, 3}, // an instance with the old schedule; runs stay accounted for
		{"0 5 * * *", 6, 4, 3},
	} {
		r.wantTimes(i, registry.Start{At: hours(step.at), Schedule: step.schedule},
			queue.TaskTimes{UpTo: hours(step.upTo), From: hours(step.from)})
	}
}

func (r *runsTest) enqueuesOnce() {
	first := r.enqueue(Run("audit", 0))
	again := r.enqueue(Run("audit", 0))
	if first.Already || first.Sent.ID == "" || !again.Already || again.Sent.ID != first.Sent.ID {
		r.Errorf("enqueued as %+v, then %+v", first, again)
	}
}

func (r *runsTest) timesMoveForward() {
	manual := Run("audit", 9)
	manual.Manual = true
	for i, step := range []struct {
		run  registry.Run
		upTo int
	}{{Run("audit", 1), 1}, {Run("audit", 3), 3}, {Run("audit", 2), 3}, {manual, 3}} {
		r.enqueue(step.run)
		r.wantTimes(i, registry.Start{At: hours(-1)}, queue.TaskTimes{UpTo: hours(step.upTo)})
	}
}

func (r *runsTest) knowsPaths() {
	run := Run("audit", 0)
	r.enqueue(run)
	other := run
	other.Path = "/other"
	r.enqueue(other)
	for path, want := range map[string]bool{"/audit": true, "/other": false, "/audit?x=1": false, "": false,
		"/other\n/audit": false} {
		if got, err := r.registry.Known(context.Background(), run.ID, path); got != want || err != nil {
			r.Errorf("Known with path %q: %v, %v", path, got, err)
		}
	}
}

func (r *runsTest) skippedRunIsUnknown() {
	run := Run("audit", 0)
	if _, err := r.registry.Skip(context.Background(), 0, []registry.Run{run}); err != nil {
		r.Fatal(err)
	}
	for _, id := range []string{run.ID, "never"} {
		if known, err := r.registry.Known(context.Background(), id, run.Path); known || err != nil {
			r.Errorf("Known %s: %v, %v", id, known, err)
		}
	}
}

func (r *runsTest) skipFindsEnqueuedRuns() {
	all := []registry.Run{Run("audit", 1), Run("audit", 2), Run("audit", 3)}
	sent := r.enqueue(all[0]).Sent.ID
	for range 2 {
		found, err := r.registry.Skip(context.Background(), 0, all)
		if first := found[all[0].ID]; err != nil || first.MessageID != sent || !first.Settled {
			r.Errorf("the run enqueued as %s was found as %+v, %v", sent, first, err)
		}
		if second, ok := found[all[1].ID]; ok {
			r.Errorf("a run that was never enqueued was found as %+v", second)
		}
	}
	got, err := r.since(0, "audit", registry.Start{At: hours(0), Schedule: "0 5 * * *"})
	if err != nil || !got.UpTo.Equal(hours(3)) {
		r.Errorf("UpTo is %v, want %v: %v", got.UpTo, hours(3), err)
	}
}

func (r *runsTest) writeLease(name string, term int64, released bool) {
	r.Helper()
	old, err := r.leases.Read(context.Background(), name)
	if err != nil {
		r.Fatal(err)
	}
	next := queue.Lease{Owner: "test", Version: fmt.Sprintf("%d-%v", term, released), Term: term, Duration: time.Second,
		Released: released}
	if won, _, err := r.leases.Swap(context.Background(), name, old, next); !won || err != nil {
		r.Fatalf("Swap: %v, %v", won, err)
	}
}

func (r *runsTest) onlyCurrentTermWrites() {
	lease := r.scope.Name + "-lead"
	r.registry = r.open(r.TB, registry.Scope{Name: r.scope.Name, Lease: lease})
	r.checkTerm("no lease was ever written", 1, true)
	r.writeLease(lease, 1, false)
	r.checkTerm("the holder", 1, false)
	r.checkTerm("a future term", 2, true)
	r.writeLease(lease, 2, false)
	r.checkTerm("the previous holder", 1, true)
	r.checkTerm("the next holder", 2, false)
	if _, err := r.registry.Enqueue(context.Background(), 1, Run("report", 2)); !errors.Is(err, queue.ErrStaleTerm) {
		r.Errorf("the previous holder enqueued its run again: %v", err)
	}
	if again, err := r.registry.Enqueue(context.Background(), 2, Run("report", 2)); !again.Already || err != nil {
		r.Errorf("the next holder enqueued a run again: %+v, %v", again, err)
	}
	r.writeLease(lease, 2, true)
	r.checkTerm("a released lease", 2, true)

	manual := Run("report", 100)
	manual.Manual = true
	r.enqueue(manual)
}

func (r *runsTest) checkTerm(what string, term int64, stale bool) {
	r.Helper()
	r.checkedTerms++
	n := r.checkedTerms
	errs := map[string]error{}
	_, errs["Since"] = r.since(term, "audit", registry.Start{At: hours(0), Schedule: "0 5 * * *"})
	_, errs["Skip"] = r.registry.Skip(context.Background(), term, []registry.Run{Run("audit", n), Run("audit", n+1)})
	_, errs["Enqueue"] = r.registry.Enqueue(context.Background(), term, Run("report", n))
	for call, err := range errs {
		if errors.Is(err, queue.ErrStaleTerm) != stale || !stale && err != nil {
			r.Errorf("%s: %s returned %v", what, call, err)
		}
	}
}

func (r *runsTest) environmentsAreSeparate() {
	other := r.open(r.TB, registry.Scope{Name: r.scope.Name + "-other"})
	r.enqueue(Run("audit", 1))
	if err := r.registry.SetPaused(context.Background(), "audit", "", true); err != nil {
		r.Fatal(err)
	}
	since, err := other.Since(context.Background(), 0, map[string]registry.Start{"audit": {At: hours(0)}})
	if err != nil || !since["audit"].UpTo.Equal(hours(0)) {
		r.Errorf("the other environment's task: %v, %v", since, err)
	}
	if paused, err := other.Paused(context.Background()); len(paused) > 0 || err != nil {
		r.Errorf("the other environment's pauses: %v, %v", paused, err)
	}
	if result, err := other.Enqueue(context.Background(), 0, Run("audit", 1)); result.Already || err != nil {
		r.Errorf("the other environment's run: %+v, %v", result, err)
	}
}

func (r *runsTest) pausesHaveReasons() {
	second := r.open(r.TB, r.scope)
	for i, step := range []struct {
		task, reason string
		paused       bool
		want         map[string]string
	}{
		{"mail", "never was", false, map[string]string{}},
		{"mail", "the provider is down \u00fc", true, map[string]string{"mail": "the provider is down \u00fc"}},
		{"id", "", true, map[string]string{"mail": "the provider is down \u00fc", "id": ""}},
		{"mail", "another reason", true, map[string]string{"mail": "another reason", "id": ""}},
		{"mail", "", false, map[string]string{"id": ""}},
		{"id", "", false, map[string]string{}},
	} {
		if err := r.registry.SetPaused(context.Background(), step.task, step.reason, step.paused); err != nil {
			r.Fatal(err)
		}
		for _, reader := range []Registry{r.registry, second} {
			if got, err := reader.Paused(context.Background()); err != nil || got == nil || !maps.Equal(got, step.want) {
				r.Errorf("step %d: paused %v, %v; want %v", i, got, err, step.want)
			}
		}
	}
}

func (r *runsTest) refusesInvalidNames() {
	noID := Run("audit", 0)
	noTime := Run("audit", 0)
	noTask := Run("audit", 0)
	noID.ID = "\x00"
	noTime.ScheduledAt = time.Time{}
	noTask.Task = "\x00"
	for name, run := range map[string]registry.Run{"id": noID, "time": noTime, "task": noTask} {
		if _, err := r.registry.Enqueue(context.Background(), 0, run); err == nil {
			r.Errorf("a run without a valid %s was enqueued", name)
		}
	}

	if err := r.registry.SetPaused(context.Background(), "audit", "\x01", true); err == nil {
		r.Error("a pause with a reason that cannot be stored was kept")
	}
	if _, err := r.since(0, "\x00", registry.Start{At: noon}); err == nil {
		r.Error("a task with a name that cannot be stored was entered")
	}
}
