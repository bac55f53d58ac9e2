package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"tendril/internal/cron/leader/leadertest"
	"tendril/internal/cron/periodic"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// rewired returns the table's client on another transport.
func rewired(table *Table, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(table.api.get().Options(), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: transport}
	})
}

// oneAtATime returns a client whose calls take turns with all others of the
// same turn. moto's threads look at
// conditions and write without a lock between, so that there, and not on
// DynamoDB, a condition holds nothing when another call comes in the middle. The
// order of the calls is left to chance all the same.
func oneAtATime(table *Table, turn *sync.Mutex) *dynamodb.Client {
	return rewired(table, roundTrip(func(r *http.Request) (*http.Response, error) {
		turn.Lock()
		defer turn.Unlock()
		resp, err := table.transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		// The call is over when its answer was read.
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, err
	}))
}

// TestTableOnForeignServers runs against servers of DynamoDB that nobody here wrote.
func TestTableOnForeignServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers start slowly: not with -short")
	}
	for _, c := range []struct {
		name  string
		start func(testing.TB) (endpoint string)
		// inTurns makes one call at a time.
		inTurns bool
		// lacks: there are no transactions, which runs need, and no time to live.
		lacks bool
	}{
		{name: "moto", start: func(t testing.TB) string { return testpeer.Moto(t, "dynamodb") }, inTurns: true},
		{name: "MiniStack", start: testpeer.MiniStack},
		{name: "dynalite", start: testpeer.Dynalite, lacks: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &foreignDynamoDB{endpoint: c.start(t), inTurns: c.inTurns}
			table := f.open(t, "registry")
			missing := []func(context.Context) error{
				func(ctx context.Context) error { _, err := table.Read(ctx, "jobs"); return err },
				func(ctx context.Context) error {
					_, _, err := table.Swap(ctx, "jobs", queue.Lease{}, queue.Lease{Version: "a"})
					return err
				},
				table.Check,
			}
			claim := func(ctx context.Context) error {
				_, err := table.Runs("jobs").Claim(ctx, 1, periodic.ScheduledRun{ID: "t@1", Task: "t"}, 1)
				return err
			}
			if !c.lacks {
				missing = append(missing, claim)
			}
			t.Run("a missing table", func(t *testing.T) { wantRefusals(t, queue.CodeResourceNotFound, missing...) })
			t.Run("creation", func(t *testing.T) { createTwice(t, table) })
			t.Run("leases", func(t *testing.T) {
				leadertest.Run(t, func(t testing.TB) leadertest.Store { return f.open(t, "registry") })
			})
			t.Run("an elector", func(t *testing.T) { changeLeader(t, table) })
			t.Run("schedules of tasks", func(t *testing.T) { schedules(t, table) })
			t.Run("pauses", func(t *testing.T) { pauses(t, table) })
			if c.lacks {
				t.Run("what it lacks", func(t *testing.T) {
					wantRefusals(t, "UnknownOperationException", claim, table.Expire)
				})
				return
			}
			t.Run("what is past its time", func(t *testing.T) { expires(t, table) })
			t.Run("runs", func(t *testing.T) { claims(t, table) })
			t.Run("runs of the only instance", func(t *testing.T) { localClaims(t, table) })
			t.Run("paths of runs", func(t *testing.T) { paths(t, table) })
			t.Run("rivals", func(t *testing.T) { rivals(t, table) })
			t.Run("a claim whose reply was lost", func(t *testing.T) { lostClaim(t, f.open(t, "registry"), table) })
		})
	}
}

// foreignDynamoDB is a server of DynamoDB.
type foreignDynamoDB struct {
	endpoint string
	inTurns  bool
	turn     sync.Mutex
}

func (f *foreignDynamoDB) open(t testing.TB, name string) *Table {
	t.Helper()
	table, err := OpenTable(context.Background(), name, &Options{Region: "eu-west-1", Endpoint: f.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if f.inTurns {
		table.api = hold(oneAtATime(table, &f.turn))
	}
	return table
}

// wantRefusals makes calls that must be refused with the code.
func wantRefusals(t *testing.T, code string, calls ...func(context.Context) error) {
	t.Helper()
	for i, c := range calls {
		if err := c(t.Context()); !isCode(err, code) {
			t.Errorf("call %d: the error is %v, want %s", i, err, code)
		}
	}
}

func createTwice(t *testing.T, table *Table) {
	for range 2 { // the second finds it there
		if err := table.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func expires(t *testing.T, table *Table) {
	for want := range 2 {
		if yes, _, err := table.Expires(t.Context()); yes != (want == 1) || err != nil {
			t.Errorf("after %d calls of Expire: %v, %v", want, yes, err)
		}
		if err := table.Expire(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// lead makes a new leader of term known to the table.
func lead(t testing.TB, table *Table, name string, term int64, released bool) {
	t.Helper()
	old, err := table.Read(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	next := queue.Lease{Owner: "test", Version: fmt.Sprintf("%d-%v", term, released), Term: term, Duration: time.Second,
		Released: released}
	if won, _, err := table.Swap(context.Background(), name, old, next); !won || err != nil {
		t.Fatalf("Swap: %v, %v", won, err)
	}
}

func claims(t *testing.T, table *Table) {
	ctx := context.Background()
	f := table.Runs("claims")
	at := time.UnixMilli(1_700_000_000_000).UTC()
	report := periodic.ScheduledRun{ID: "report@1", Task: "report", ScheduledAt: at}
	claim := func(term int64, try int, want periodic.Claim, stale bool) {
		t.Helper()
		got, err := f.Claim(ctx, term, report, try)
		if got != want || errors.Is(err, queue.ErrStaleTerm) != stale || err != nil && !stale {
			t.Errorf("Claim of try %d by term %d: %+v, %v, want %+v, stale %v", try, term, got, err, want, stale)
		}
	}
	claim(1, 1, periodic.Claim{}, true) // no lease was ever written
	lead(t, table, "claims", 1, false)
	claim(2, 1, periodic.Claim{}, true)
	claim(1, 2, periodic.Claim{}, false) // there is no first try
	first := periodic.Claim{Tries: 1, Term: 1}
	claim(1, 1, first, false)
	claim(1, 1, first, false) // a repeat, as after a lost reply
	lead(t, table, "claims", 1, true)
	claim(1, 2, periodic.Claim{}, true) // given back
	lead(t, table, "claims", 2, false)
	claim(1, 2, periodic.Claim{}, true)
	claim(2, 1, first, false) // term 1 claimed and never marked: the window for a duplicate
	claim(2, 2, periodic.Claim{Tries: 2, Term: 2}, false)
	lead(t, table, "claims", 3, false)
	claim(3, 2, periodic.Claim{Tries: 2, Term: 2}, false)   // a try has one claimer
	for _, id := range []string{"message-1", "message-2"} { // the second changes nothing
		if err := f.Mark(ctx, 1, report, id); err != nil { // sent is sent, also in an old term
			t.Error(err)
		}
	}
	settled := periodic.Claim{Tries: 2, Term: 2, Settled: true, MessageID: "message-1"}
	claim(3, 3, settled, false)
	claim(3, 1, settled, false)
	claim(2, 3, periodic.Claim{}, true)
	leaveOut(t, f, at)

	manual := periodic.ScheduledRun{ID: "report@1 by hand", Task: "report", ScheduledAt: at.Add(time.Hour), Manual: true}
	if got, err := f.Claim(ctx, 0, manual, 1); err != nil || got != (periodic.Claim{Tries: 1}) {
		t.Errorf("Claim by hand: %+v, %v", got, err)
	}
	if err := f.Mark(ctx, 0, manual, "message-9"); err != nil {
		t.Error(err)
	}
	before := periodic.ScheduledRun{ID: "report@0", Task: "report", ScheduledAt: at.Add(-time.Hour)}
	if err := f.Mark(ctx, 3, before, "message-0"); err != nil {
		t.Error(err)
	}
	from := map[string]periodic.Start{"report": {At: at.Add(time.Minute)}, "new": {At: at.Add(time.Second)}}
	for range 3 {
		since, err := f.Since(ctx, 3, from)
		// Who entered report did not tell from when on it exists, as an earlier version.
		want := map[string]queue.TaskTimes{"report": {UpTo: at.UTC()},
			"new": {UpTo: at.Add(time.Second).UTC(), From: at.Add(time.Second).UTC()}}
		if err != nil || !maps.Equal(since, want) {
			t.Errorf("Since: %v, %v, want %v", since, err, want)
		}
		from["new"] = periodic.Start{At: at.Add(time.Hour)} // it is known by now
		from["report"] = periodic.Start{At: at.Add(-time.Minute), Schedule: "0 5 * * *"}
	}
	other := map[string]periodic.Start{"report": {At: at.Add(time.Minute)}}
	since, err := table.Runs("another").Since(ctx, 3, other)
	if err != nil || !since["report"].UpTo.Equal(at.Add(time.Minute)) {
		t.Errorf("another lease's runs: %v, %v", since, err)
	}
}

// localClaims claims in a term of which no lease was ever written. What another process claimed
// in the same term is another's.
func localClaims(t *testing.T, table *Table) {
	ctx := context.Background()
	f, later := table.LocalRuns("unfenced"), table.LocalRuns("unfenced")
	run := periodic.ScheduledRun{ID: "t@1", Task: "t", ScheduledAt: time.UnixMilli(1_700_000_000_000)}
	if got, err := f.Claim(ctx, 7, run, 1); err != nil || got != (periodic.Claim{Tries: 1, Term: 7}) {
		t.Errorf("Claim: %+v, %v", got, err)
	}
	if got, err := later.Claim(ctx, 7, run, 1); err != nil || got != (periodic.Claim{Tries: 1}) {
		t.Errorf("Claim of what an earlier process claimed: %+v, %v", got, err)
	}
	if err := later.Mark(ctx, 8, run, ""); err != nil {
		t.Errorf("leaving out: %v", err)
	}
	if got, err := f.Claim(ctx, 9, run, 2); err != nil || !got.Settled {
		t.Errorf("Claim of what was left out: %+v, %v", got, err)
	}
	if _, err := table.Runs("unfenced").Claim(ctx, 9, run, 2); !errors.Is(err, queue.ErrStaleTerm) {
		t.Errorf("Claim within the fence: %v", err)
	}
}

// paths are part of what is known of a run.
func paths(t *testing.T, table *Table) {
	ctx := context.Background()
	f := table.Runs("paths")
	// One without a path is a record of an older version.
	for id, path := range map[string]string{"t@1": "/t?full=1", "t@2": ""} {
		run := periodic.ScheduledRun{ID: id, Task: "t", ScheduledAt: time.UnixMilli(1_700_000_000_000), Path: path}
		if _, err := f.Claim(ctx, 0, run, 1); err != nil {
			t.Fatal(err)
		}
		if err := f.Mark(ctx, 0, run, "message-"+id); err != nil {
			t.Fatal(err)
		}
	}
	leftOut := periodic.ScheduledRun{ID: "t@3", Task: "t", ScheduledAt: time.UnixMilli(1_700_000_000_000), Path: "/t"}
	if err := f.Mark(ctx, 0, leftOut, ""); err != nil {
		t.Fatal(err)
	}
	for ask, want := range map[[2]string]bool{
		{"t@1", "/t?full=1"}: true, {"t@1", "/t"}: false, {"t@1", ""}: false, {"t@2", "/any"}: true,
		{"t@3", "/t"}: false, // left out: there is no message
		{"t@4", "/t"}: false,
	} {
		if got, err := f.Known(ctx, ask[0], ask[1]); got != want || err != nil {
			t.Errorf("Known(%q, %q) = %v, %v", ask[0], ask[1], got, err)
		}
	}
}

// schedules of tasks change: times before that are no times of the new one.
func schedules(t *testing.T, table *Table) {
	ctx := context.Background()
	f, at := table.Runs("schedules"), time.UnixMilli(1_700_000_000_000).UTC()
	hours := func(n int) time.Time { return at.Add(time.Duration(n) * time.Hour) }
	for i, step := range []struct {
		schedule       string
		at, upTo, from int
	}{
		{"", 0, 0, 0}, // as an older version enters it
		{"0 5 * * *", 1, 0, 0},
		{"0 5 * * *", 2, 0, 0},
		{"", 3, 0, 0}, // as an older version asks
		{"* * * * * UTC", 4, 4, 4},
		{"* * * * * UTC", 5, 4, 4},
		{"* * * * * UTC", 2, 4, 2}, // by a clock that was set back
		{"", 1, 4, 1},
		{"0 5 * * *", 3, 4, 3}, // changed back, by who knows it for longer: runs stay accounted for
		{"0 5 * * *", 6, 4, 3},
	} {
		known, err := f.Since(ctx, 1, map[string]periodic.Start{"audit": {At: hours(step.at), Schedule: step.schedule}})
		want := queue.TaskTimes{UpTo: hours(step.upTo), From: hours(step.from)}
		if err != nil || known["audit"] != want {
			t.Errorf("step %d: %v, %v; want %v", i, known["audit"], err, want)
		}
	}
}

// leaveOut settles a run without sending it, which only the current term may.
func leaveOut(t *testing.T, f *Runs, at time.Time) {
	t.Helper()
	ctx := context.Background()
	skipped := periodic.ScheduledRun{ID: "skipped@1", Task: "skipped", ScheduledAt: at}
	if err := f.Mark(ctx, 2, skipped, ""); !errors.Is(err, queue.ErrStaleTerm) {
		t.Errorf("leaving out in an old term: %v", err)
	}
	if err := f.Mark(ctx, 3, skipped, ""); err != nil {
		t.Error(err)
	}
	if got, err := f.Claim(ctx, 3, skipped, 1); err != nil || !got.Settled || got.MessageID != "" {
		t.Errorf("Claim of what was left out: %+v, %v", got, err)
	}
}

// rivals claim the tries of the same runs at once, each in the term that it
// thinks it has, while the lease goes from one to the next: no claim succeeds
// in a term that was over before it began, and no try has two claimers.
func rivals(t *testing.T, table *Table) {
	const terms = 6
	ctx := context.Background()
	f := table.Runs("rivals")
	lead(t, table, "rivals", 1, false)
	var all sync.WaitGroup
	var mu sync.Mutex
	over := int64(0)               // terms up to here are over
	claimers := map[string]int64{} // by run and try
	claim := func(term int64, id string, try int) {
		mu.Lock()
		before := over
		mu.Unlock()
		record, err := f.Claim(ctx, term, periodic.ScheduledRun{ID: id, Task: "t"}, try)
		if err != nil && !errors.Is(err, queue.ErrStaleTerm) && !isCode(err, queue.CodeRequestThrottled) {
			t.Error(err)
		}
		if err != nil || record.Term != term || record.Tries != try {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if claimer := claimers[fmt.Sprint(id, try)]; claimer != 0 && claimer != term {
			t.Errorf("try %d of %s was claimed by terms %d and %d", try, id, claimer, term)
		} else if claimer == 0 && term <= before {
			t.Errorf("term %d claimed try %d of %s after it was over", term, try, id)
		}
		claimers[fmt.Sprint(id, try)] = term
	}
	for term := int64(1); term <= terms; term++ {
		for n := range 3 {
			all.Go(func() {
				for try := range 8 {
					claim(term, fmt.Sprint("t@", n), try+1)
				}
			})
		}
	}
	for term := int64(2); term <= terms; term++ {
		lead(t, table, "rivals", term, false)
		mu.Lock()
		over = term - 1
		mu.Unlock()
	}
	all.Wait()
	if len(claimers) == 0 {
		t.Error("nothing was claimed at all")
	}
}

// pauses are seen by all who share the lease, and by nobody else.
func pauses(t *testing.T, table *Table) {
	ctx := context.Background()
	one, two, other := table.Runs("shop"), table.Runs("shop"), table.Runs("shed")
	read := func(f *Runs, want map[string]string) {
		t.Helper()
		if got, err := f.Paused(ctx); err != nil || !maps.Equal(got, want) {
			t.Errorf("paused: %v, %v; want %v", got, err, want)
		}
	}
	set := func(task, reason string, paused bool) {
		t.Helper()
		if err := one.SetPaused(ctx, task, reason, paused); err != nil {
			t.Fatal(err)
		}
	}
	read(two, map[string]string{})
	set("mail", "", false)
	set("mail", "the provider is down", true)
	set("id", "", true)
	read(two, map[string]string{"mail": "the provider is down", "id": ""})
	read(other, map[string]string{})
	set("mail", "", false)
	read(two, map[string]string{"id": ""})
}

// lostClaim claims through a transport that loses the first reply.
func lostClaim(t *testing.T, lossy, table *Table) {
	lead(t, table, "lossy", 1, false)
	first := true
	lossy.api = hold(rewired(lossy, roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		resp, err := lossy.transport.RoundTrip(r)
		if first && err == nil {
			first = false
			resp.Body.Close()
			return nil, errors.New("connection reset by the test")
		}
		return resp, err
	})))
	f, run := lossy.Runs("lossy"), periodic.ScheduledRun{ID: "t@1", Task: "t"}
	if record, err := f.Claim(context.Background(), 1, run, 1); record != (periodic.Claim{}) ||
		!isCode(err, queue.CodeUnreachable) {
		t.Errorf("the claim whose reply was lost: %+v, %v", record, err)
	}
	record, err := f.Claim(context.Background(), 1, run, 1)
	if record != (periodic.Claim{Tries: 1, Term: 1}) || err != nil {
		t.Errorf("its repeat: %+v, %v", record, err)
	}
}
