package tasks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cron/periodic"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// newTable is a registry's table on moto.
func newTable(t *testing.T) *aws.Table {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": testpeer.Moto(t, "dynamodb"), "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	table, err := aws.OpenTable(t.Context(), "registry", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if err := table.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return table
}

// runMessage is the message of a scheduled run to a path.
func runMessage(path string) queue.Outgoing {
	return queue.Outgoing{Body: "elasticbeanstalk scheduled job", Attributes: []queue.Attribute{
		{Name: queue.AttributePath, Type: "String", Value: path},
		{Name: queue.AttributeTime, Type: "String", Value: "2026-03-22 23:10:00 UTC"},
		{Name: queue.AttributeTask, Type: "String", Value: "audit"},
	}}
}

// TestTimeToLiveWithoutPermission: who may not look says nothing, and who may
// not set it says so and goes on.
func TestTimeToLiveWithoutPermission(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"said Amazon"}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	table, err := aws.OpenTable(t.Context(), "registry", &aws.Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	for create, want := range map[bool]string{false: "level=DEBUG", true: "level=WARN"} {
		var log strings.Builder
		expireRecords(t.Context(), table, "registry", create,
			slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) ||
			!strings.Contains(got, "said Amazon") {
			t.Errorf("with registry-create=%v: %s", create, got)
		}
	}
}

// flakySender loses the answers of its first sends.
type flakySender struct{ lose, sends int }

func (s *flakySender) Send(context.Context, string, queue.Outgoing) (queue.Sent, error) {
	if s.sends++; s.sends <= s.lose {
		return queue.Sent{}, errors.New("connection reset by the test")
	}
	return queue.Sent{ID: "m-" + string(rune('0'+s.sends))}, nil
}

// TestClaimsOfALocalLeaderAfterARestart: a claim that one process left unsettled does not belong
// to another after a restart, though both have the term 1: the next one makes the
// next try, and what is settled stays so.
func TestClaimsOfALocalLeaderAfterARestart(t *testing.T) {
	table := newTable(t)
	ctx, sender := t.Context(), &flakySender{lose: 1}
	f := periodic.ScheduledRun{ID: "audit@1", Task: "audit", ScheduledAt: time.Now().Add(-10 * time.Minute), Queue: "jobs"}
	f.DueAt = f.ScheduledAt
	process := func() periodic.Registry {
		return periodic.NewClaims(table.LocalRuns("periodic:jobs"), sender, localLeader{})
	}
	if _, err := process().Enqueue(ctx, 1, f); err == nil {
		t.Fatal("the answer was lost, and it is enqueued")
	}
	second, err := process().Enqueue(ctx, 1, f)
	if err != nil || second.Already || !second.Resent || second.Sent.ID != "m-2" {
		t.Errorf("after a restart: %+v, %v; want it sent again, and told so", second, err)
	}
	third, err := process().Enqueue(ctx, 1, f)
	if err != nil || !third.Already || third.Sent.ID != "m-2" || sender.sends != 2 {
		t.Errorf("after another: %+v, %v with %d sends; want it settled", third, err, sender.sends)
	}

	// A FIFO queue forgets after 5 minutes that it knows the run.
	f.ID, f.Queue, sender.lose = "audit@2", "jobs.fifo", 3
	if _, err := process().Enqueue(ctx, 1, f); err == nil {
		t.Fatal("the answer was lost, and it is enqueued")
	}
	if _, err := process().Enqueue(ctx, 1, f); !errors.Is(err, periodic.ErrUncertain) || sender.sends != 3 {
		t.Errorf("on FIFO after a restart: %v with %d sends; want it left as it is", err, sender.sends)
	}

	// Runs by hand have no term.
	f.ID, f.Queue, f.Manual = "audit@3#A", "jobs", true
	if by, err := process().Enqueue(ctx, 0, f); err != nil || by.Sent.ID == "" || by.Resent {
		t.Errorf("by hand: %+v, %v", by, err)
	}
}

// TestARunIsKnownWithItsPathOnly: each registry that keeps paths knows a run by its own only,
// as it enqueued it.
func TestARunIsKnownWithItsPathOnly(t *testing.T) {
	table := newTable(t)
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	f := periodic.ScheduledRun{ID: "audit@2026-03-22T23:10:00Z", Task: "audit",
		ScheduledAt: time.Date(2026, 3, 22, 23, 10, 0, 0, time.UTC), Queue: "jobs"}
	f.Path, f.Message = "/audit", runMessage("/audit")
	embedded, memory, local := EmbeddedRuns{registry: b.Registry(), prefix: "periodic:jobs/"}, newMemoryRuns(),
		table.LocalRuns("periodic:jobs")
	for name, r := range map[string]struct {
		runs  periodic.Registry
		known func(context.Context, string, string) (bool, error)
	}{
		"embedded": {embedded, embedded.Known},
		"memory":   {periodic.NewClaims(memory, &flakySender{}, localLeader{}), memory.Known},
		"table":    {periodic.NewClaims(local, &flakySender{}, localLeader{}), local.Known},
	} {
		if _, err := r.runs.Enqueue(t.Context(), 1, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := New(Options{})
		m.registry.found.Store(&registry{known: r.known})
		for path, want := range map[string]bool{"/audit": true, "/admin": false, "/audit?x=1": false,
			"/admin\n/audit": false} {
			if known, err := m.Known(t.Context(), f.ID, path); known != want || err != nil {
				t.Errorf("%s: a run with the path %q is known: %v, %v", name, path, known, err)
			}
		}
	}
}

// TestTheEmbeddedRegistryKnowsSchedules: a task that had another schedule before a restart is not
// made up for at times of the new one.
func TestTheEmbeddedRegistryKnowsSchedules(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	runs := EmbeddedRuns{registry: b.Registry(), prefix: "periodic:jobs/"}
	for _, step := range []struct {
		what, schedule string
		at, upTo, from time.Duration
	}{
		{"a new task", "0 5 * * * UTC", 0, 0, 0},
		{"a restart", "0 5 * * * UTC", time.Hour, 0, 0},
		{"another schedule", "* * * * * UTC", 2 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		{"a restart after that", "* * * * * UTC", 3 * time.Hour, 2 * time.Hour, 2 * time.Hour},
		{"a clock set back", "* * * * * UTC", time.Hour, 2 * time.Hour, time.Hour},
	} {
		since, err := runs.Since(t.Context(), 1, map[string]periodic.Start{"audit": {At: at.Add(step.at),
			Schedule: step.schedule}})
		want := queue.TaskTimes{UpTo: at.Add(step.upTo), From: at.Add(step.from)}
		if err != nil || since["audit"] != want {
			t.Errorf("%s: %v, %v; want %v", step.what, since["audit"], err, want)
		}
	}
}
