package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"tendril/internal/registry"
	"tendril/internal/registry/registrytest"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func rewired(table *Table, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(table.api.get().Options(), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: transport}
	})
}

// oneAtATime serializes the calls of clients that share turn: moto, unlike DynamoDB, checks conditions without a lock.
func oneAtATime(table *Table, turn *sync.Mutex) *dynamodb.Client {
	return rewired(table, roundTrip(func(r *http.Request) (*http.Response, error) {
		turn.Lock()
		defer turn.Unlock()
		resp, err := table.service.exchanger.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, err
	}))
}

func TestTableOnForeignServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers start slowly: not with -short")
	}
	for _, c := range []struct {
		name    string
		start   func(testing.TB) (endpoint string)
		inTurns bool
		// lacks means that the server has neither transactions nor time to live.
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
				func(ctx context.Context) error { _, err := table.Read(ctx, registry.KindLease, "jobs"); return err },
				func(ctx context.Context) error {
					_, err := table.Swap(ctx, registry.Fence{}, tried("jobs/t@1", 0, 1))
					return err
				},
				table.Check,
			}
			fenced := func(ctx context.Context) error {
				_, err := table.Swap(ctx, registry.Fence{Lease: "jobs", Term: 1}, tried("jobs/t@1", 0, 1))
				return err
			}
			if !c.lacks {
				missing = append(missing, fenced)
			}
			t.Run("a missing table", func(t *testing.T) { wantRefusals(t, queue.CodeResourceNotFound, missing...) })
			t.Run("creation", func(t *testing.T) { createTwice(t, table) })
			leases := registry.NewLeases(table)
			t.Run("leases", func(t *testing.T) {
				registrytest.Leases(t, func(t testing.TB) registrytest.LeaseStore {
					return registry.NewLeases(f.open(t, "registry"))
				})
			})
			t.Run("an elector", func(t *testing.T) { changeLeader(t, table) })
			t.Run("unknown attributes", func(t *testing.T) { unknownAttributes(t, table) })
			if c.lacks {
				t.Run("what it lacks", func(t *testing.T) {
					wantRefusals(t, "UnknownOperationException", fenced, table.Expire)
				})
				return
			}
			t.Run("runs", func(t *testing.T) {
				registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
					return registry.NewSentRuns(table, scope, &countedSends{}, stored{leases, scope.Lease})
				}, leases)
			})
			t.Run("what is past its time", func(t *testing.T) { expires(t, table) })
			t.Run("tries of several terms", func(t *testing.T) { tries(t, table) })
			t.Run("rivals", func(t *testing.T) { rivals(t, table) })
			t.Run("a change whose reply was lost", func(t *testing.T) { lostReply(t, f.open(t, "registry"), table) })
		})
	}
}

type countedSends struct{ n int }

func (c *countedSends) Send(context.Context, string, queue.Outgoing) (queue.Sent, error) {
	c.n++
	return queue.Sent{ID: fmt.Sprint("message-", c.n)}, nil
}

type stored struct {
	leases *registry.Leases
	lease  string
}

func (s stored) Term() (int64, bool) {
	if s.lease == "" {
		return 0, true
	}
	l, err := s.leases.Read(context.Background(), s.lease)
	return l.Term, err == nil && !l.Released
}

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
		table.api = newClient(oneAtATime(table, &f.turn))
	}
	return table
}

func wantRefusals(t *testing.T, code string, calls ...func(context.Context) error) {
	t.Helper()
	for i, c := range calls {
		if err := c(t.Context()); !isCode(err, code) {
			t.Errorf("call %d: the error is %v, want %s", i, err, code)
		}
	}
}

func createTwice(t *testing.T, table *Table) {
	for range 2 {
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

func lead(t testing.TB, table *Table, name string, term int64, released bool) {
	t.Helper()
	leases := registry.NewLeases(table)
	old, err := leases.Read(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	next := queue.Lease{Owner: "test", Version: fmt.Sprintf("%d-%v", term, released), Term: term, Duration: time.Second,
		Released: released}
	if won, _, err := leases.Swap(context.Background(), name, old, next); !won || err != nil {
		t.Fatalf("Swap: %v, %v", won, err)
	}
}

func tries(t *testing.T, table *Table) {
	try := func(before, term int64, changed, stale bool) {
		t.Helper()
		change := tried("tries/t@1", before, term)
		if before > 0 {
			change.Old = change.Old.With(registry.Fields{"term": term - 1})
		}
		got, err := table.Swap(t.Context(), registry.Fence{Lease: "tries", Term: term}, change)
		if errors.Is(err, queue.ErrStaleTerm) != stale || err != nil && !stale {
			t.Errorf("try %d in term %d: %v, stale %v", before+1, term, err, stale)
		} else if err == nil && registry.Same(got[0], change.Next) != changed {
			t.Errorf("try %d in term %d: %+v is stored", before+1, term, got)
		}
	}
	try(0, 1, false, true)
	lead(t, table, "tries", 1, false)
	try(0, 2, false, true)
	try(1, 1, false, false)
	try(0, 1, true, false)
	try(0, 1, true, false)
	lead(t, table, "tries", 1, true)
	try(1, 1, false, true)
	lead(t, table, "tries", 2, false)
	try(0, 2, false, false)
	try(1, 2, true, false)
	lead(t, table, "tries", 3, false)
	try(1, 3, false, false)
	try(0, 2, false, true)
}

func unknownAttributes(t *testing.T, table *Table) {
	absent := registry.Record{Kind: registry.KindTask, Key: "unknown/t"}
	swap := func(old, next registry.Record) {
		t.Helper()
		stored, err := table.Swap(t.Context(), registry.Fence{}, registry.Change{Old: old, Next: next})
		if err != nil || !registry.Same(stored[0], next) {
			t.Fatalf("Swap: %+v, %v", stored, err)
		}
	}
	newer := absent.With(registry.Fields{"last_ms": int64(1), "later": "kept"})
	swap(absent, newer)
	runs := registry.NewSentRuns(table, registry.Scope{Name: "unknown"}, nil, nil)
	if _, err := runs.Since(t.Context(), 0, map[string]registry.Start{"t": {At: time.UnixMilli(5), Schedule: "daily"}}); err != nil {
		t.Fatal(err)
	}
	got, err := table.Read(t.Context(), registry.KindTask, "unknown/t")
	if want := newer.With(registry.Fields{"schedule": "daily"}); err != nil || !registry.Same(got[0], want) {
		t.Errorf("stored is %+v, %v; want %+v", got, err, want)
	}
}

func rivals(t *testing.T, table *Table) {
	const terms = 6
	ctx := context.Background()
	lead(t, table, "rivals", 1, false)
	var all sync.WaitGroup
	var mu sync.Mutex
	over := int64(0)
	claimers := map[string]int64{}
	claim := func(term int64, id string, try int) {
		mu.Lock()
		before := over
		mu.Unlock()
		key := "rivals/" + id
		found, err := table.Read(ctx, registry.KindRun, key)
		if err != nil {
			t.Error(err)
			return
		}
		if n, _ := found[0].Fields["tries"].(int64); n != int64(try)-1 {
			return
		}
		next := found[0].With(registry.Fields{"tries": int64(try), "term": term})
		record, err := table.Swap(ctx, registry.Fence{Lease: "rivals", Term: term}, registry.Change{Old: found[0], Next: next})
		if err != nil && !errors.Is(err, queue.ErrStaleTerm) && !isCode(err, queue.CodeRequestThrottled) {
			t.Error(err)
		}
		if err != nil || !registry.Same(record[0], next) {
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

func lostReply(t *testing.T, lossy, table *Table) {
	lead(t, table, "lossy", 1, false)
	first := true
	lossy.api = newClient(rewired(lossy, roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		resp, err := lossy.service.exchanger.RoundTrip(r)
		if first && err == nil {
			first = false
			resp.Body.Close()
			return nil, errors.New("connection reset by the test")
		}
		return resp, err
	})))
	change, fence := tried("lossy/t@1", 0, 1), registry.Fence{Lease: "lossy", Term: 1}
	if _, err := lossy.Swap(t.Context(), fence, change); !isCode(err, queue.CodeUnreachable) {
		t.Errorf("the change whose reply was lost: %v", err)
	}
	stored, err := lossy.Swap(t.Context(), fence, change)
	if err != nil || !registry.Same(stored[0], change.Next) {
		t.Errorf("its repeat: %+v, %v", stored, err)
	}
}
