package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/config"
	"tendril/logging"
	"tendril/periodic"
	"tendril/queue"
)

// lonePlace is a queue jobs on moto, its URL, and a registry's table.
func lonePlace(t *testing.T) (table *aws.Table, queueURL string) {
	t.Helper()
	c := startCloud(t)
	table, err := aws.OpenTable(t.Context(), "registry", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table, makeQueue(t, c, 0)
}

// TestLoneInstanceWithATable: what is declared the only instance enqueues its
// tasks also where a table is named, though no lease was ever written there,
// and what it enqueued is not enqueued again after a restart.
func TestLoneInstanceWithATable(t *testing.T) {
	table, queueURL := lonePlace(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	runs, file := table.Runs("periodic:jobs"), filepath.Join(t.TempDir(), "cron.yaml")
	cron := "version: 1\ncron:\n"
	enqueued := regexp.MustCompile(`fire_id=(\S+)`)
	seen := map[string]int{}
	// An earlier process accounted for each task up to three minutes ago. That
	// of the second start tells that it is at work on the table.
	for _, task := range []string{"audit", "mail"} {
		if _, err := runs.Since(t.Context(), 0, map[string]time.Time{task: time.Now().Add(-3 * time.Minute)}); err != nil {
			t.Fatal(err)
		}
		cron += fmt.Sprintf("  - {name: %s, url: /a, schedule: \"* * * * *\", missed: all, grace: 1h}\n", task)
		if err := os.WriteFile(file, []byte(cron), 0o600); err != nil {
			t.Fatal(err)
		}
		r := run(t, map[string]string{"queue-url": queueURL, "target": app.URL, "registry-table": "registry",
			"leader": "local", "cron": file}, nil)
		eventually(t, "the runs of "+task+" that were missed", func() bool {
			return strings.Count(r.log.String(), "task "+task+" is enqueued for") >= 3
		})
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		for _, m := range enqueued.FindAllStringSubmatch(r.log.String(), -1) {
			if seen[m[1]]++; seen[m[1]] > 1 {
				t.Errorf("the run %s was enqueued again", m[1])
			}
		}
		if strings.Contains(r.log.String(), "the registry refuses its tasks") {
			t.Error("a term was refused where none is checked")
		}
	}
}

// TestTimeToLiveOfAnExistingTable: --registry-create sets it also where the
// table was there before; else its lack is told, and what to do.
func TestTimeToLiveOfAnExistingTable(t *testing.T) {
	table, queueURL := lonePlace(t)
	file := filepath.Join(t.TempDir(), "cron.yaml")
	if err := os.WriteFile(file, []byte("version: 1\ncron:\n  - {name: audit, url: /a, schedule: \"@yearly\"}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const advice = "aws dynamodb update-time-to-live --table-name registry --time-to-live-specification " +
		"Enabled=true,AttributeName=expires"
	for _, step := range []struct {
		create     string
		told, then bool
	}{{"false", true, false}, {"true", false, true}, {"false", false, true}} {
		r := run(t, map[string]string{
			"queue-url": queueURL, "target": "http://127.0.0.1:1", "registry-table": "registry",
			"registry-create": step.create, "leader": "local", "cron": file,
		}, nil)
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		if told := strings.Count(r.log.String(), advice); told > 1 || (told == 1) != step.told {
			t.Errorf("with registry-create=%s: it was told %d times\n%s", step.create, told, r.log)
		}
		if yes, _, err := table.Expires(t.Context()); yes != step.then || err != nil {
			t.Errorf("with registry-create=%s: on %v, %v", step.create, yes, err)
		}
	}
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
	for create, want := range map[bool]string{false: `"level":"DEBUG"`, true: `"level":"WARN"`} {
		log := &safeBuffer{}
		e := &Environment{s: &config.Settings{RegistryTable: "registry", RegistryCreate: create}}
		e.report = &report{logging.New(logging.Options{Out: log, Level: slog.LevelDebug})}
		e.expireRecords(t.Context(), table)
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

// TestLoneClaimsOverRestarts: a claim that one process left unsettled is no
// other's after a restart, though both have the term 1: the next one makes the
// next try, and what is settled stays so.
func TestLoneClaimsOverRestarts(t *testing.T) {
	table, _ := lonePlace(t)
	ctx, sender := t.Context(), &flakySender{lose: 1}
	f := periodic.ScheduledRun{ID: "audit@1", Task: "audit", ScheduledAt: time.Now().Add(-10 * time.Minute), Queue: "jobs"}
	f.DueAt = f.ScheduledAt
	process := func() periodic.Registry {
		return periodic.NewClaims(loneStore(table.Runs("periodic:jobs")), sender, alone{})
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

// refusing is a registry for which every term is over.
type refusing struct{ periodic.Registry }

func (refusing) Enqueue(context.Context, int64, periodic.ScheduledRun) (periodic.EnqueueResult, error) {
	return periodic.EnqueueResult{}, queue.ErrStaleTerm
}

func (refusing) Skip(context.Context, int64, []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	return nil, queue.ErrStaleTerm
}

type leads struct {
	alone
	term int64
}

func (l *leads) Term() (int64, bool) { return l.term, l.term != 0 }

// TestRefusedTermIsTold: who leads by all that it knows tells once in each term
// that the registry sees it otherwise; who was deposed says nothing.
func TestRefusedTermIsTold(t *testing.T) {
	t.Parallel()
	log, ctx := &safeBuffer{}, t.Context()
	e := &Environment{report: &report{logging.New(logging.Options{Out: log})}}
	lead := &leads{term: 4}
	r := e.watchTerm(refusing{}, lead)
	for _, step := range []struct {
		term, leads int64
		want        int // lines so far
	}{{4, 4, 1}, {4, 4, 1}, {4, 0, 1}, {4, 5, 1}, {5, 5, 2}, {0, 5, 2}} {
		lead.term = step.leads
		if _, err := r.Enqueue(ctx, step.term, periodic.ScheduledRun{}); !errors.Is(err, queue.ErrStaleTerm) {
			t.Errorf("Enqueue: %v", err)
		}
		if _, err := r.Skip(ctx, step.term, nil); !errors.Is(err, queue.ErrStaleTerm) {
			t.Errorf("Skip: %v", err)
		}
		if got := strings.Count(log.String(), "the registry refuses its tasks"); got != step.want {
			t.Errorf("after %+v it was told %d times\n%s", step, got, log)
		}
	}
}

// TestTrustInPaths: each registry that keeps paths knows a run by its own only,
// as it enqueued it.
func TestTrustInPaths(t *testing.T) {
	table, _ := lonePlace(t)
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
	f.Message = queue.Outgoing{Body: "x", Attributes: []queue.Attribute{
		{Name: queue.AttributePath, Type: "String", Value: "/audit"}}}
	embedded, memory, lone := fenced{registry: b.Registry(), own: "periodic:jobs/"}, newMemoryStore(),
		loneStore(table.Runs("periodic:jobs"))
	for name, r := range map[string]struct {
		runs  periodic.Registry
		known func(context.Context, string, string) (bool, error)
	}{
		"embedded": {embedded, embedded.known},
		"memory":   {periodic.NewClaims(memory, &flakySender{}, alone{}), memory.known},
		"table":    {periodic.NewClaims(lone, &flakySender{}, alone{}), lone.known},
	} {
		if _, err := r.runs.Enqueue(t.Context(), 1, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e := new(Environment)
		e.agreed.Store(&registry{known: r.known})
		for path, want := range map[string]bool{"/audit": true, "/admin": false, "/audit?x=1": false,
			"/admin\n/audit": false} {
			if known, err := e.knownRun(t.Context(), f.ID, path); known != want || err != nil {
				t.Errorf("%s: a run with the path %q is known: %v, %v", name, path, known, err)
			}
		}
	}
}

// TestScheduleChangedOverARestart: what was due by a schedule that was not in
// force then is not made up for.
func TestScheduleChangedOverARestart(t *testing.T) {
	table, queueURL := lonePlace(t)
	runs, file := table.Runs("periodic:jobs"), filepath.Join(t.TempDir(), "cron.yaml")
	before := map[string]time.Time{"audit": time.Now().Add(-3 * time.Minute), "mail": time.Now().Add(-3 * time.Minute)}
	if _, err := runs.SinceUnder(t.Context(), 0, before,
		map[string]string{"audit": "0 5 * * * UTC", "mail": "* * * * * UTC"}); err != nil {
		t.Fatal(err)
	}
	const task = "  - {name: %s, url: /a, schedule: \"* * * * *\", missed: all, grace: 1h}\n"
	if err := os.WriteFile(file, []byte("version: 1\ncron:\n"+fmt.Sprintf(task, "audit")+fmt.Sprintf(task, "mail")),
		0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now().UTC().Truncate(time.Second)
	r := run(t, map[string]string{"queue-url": queueURL, "target": "http://127.0.0.1:1", "registry-table": "registry",
		"leader": "local", "cron": file}, nil)
	eventually(t, "the runs of the task that stayed as it was", func() bool {
		return strings.Count(r.log.String(), "task mail is enqueued for") >= 3
	})
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	for _, m := range regexp.MustCompile(`fire_id=audit@(\S+)`).FindAllStringSubmatch(r.log.String(), -1) {
		if at, err := time.Parse(time.RFC3339, m[1]); err != nil || at.Before(start) {
			t.Errorf("a run of %s was made up for, when the task had another schedule", m[1])
		}
	}
}

// TestScheduleKeeper: the registry of an embedded queue learns of schedules when
// it is asked, and after a reload.
func TestScheduleKeeper(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	process := func(schedule *string) *scheduleKeeper {
		f := fenced{registry: b.Registry(), own: "periodic:jobs/"}
		return &scheduleKeeper{Registry: f, lead: alone{}, since: f.sinceUnder, inForce: func() map[string]string {
			return map[string]string{"audit": *schedule}
		}}
	}
	ask := func(what string, k *scheduleKeeper, from, want time.Time) {
		t.Helper()
		since, err := k.Since(t.Context(), 1, map[string]time.Time{"audit": from})
		if err != nil || !since["audit"].Equal(want) {
			t.Errorf("%s: since %v, %v; want %v", what, since["audit"], err, want)
		}
	}
	daily, minutely := "0 5 * * * UTC", "* * * * * UTC"
	first := process(&daily)
	ask("a new task", first, at, at)
	ask("a restart", process(&daily), at.Add(time.Hour), at)
	first.keep(t.Context(), at.Add(time.Hour))
	ask("no reload", first, at.Add(time.Hour), at)
	ask("a restart with another schedule", process(&minutely), at.Add(2*time.Hour), at.Add(2*time.Hour))
	daily = minutely + " by a reload"
	first.keep(t.Context(), at.Add(3*time.Hour))
	first.keep(t.Context(), at.Add(4*time.Hour))
	ask("a restart after a reload", process(&daily), at.Add(5*time.Hour), at.Add(3*time.Hour))
}
