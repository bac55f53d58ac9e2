package aws

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"tendril/leader/leadertest"
	"tendril/queue"
)

// rewired returns the table's client on another transport.
func rewired(table *Table, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(table.api.Options(), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: transport} })
}

// TestAgainstAForeignDynamoDB runs against moto's: a well-known stand-in for
// Amazon that nobody here wrote.
func TestAgainstAForeignDynamoDB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := startMoto(t)
	open := func(t testing.TB, name string) *Table {
		t.Helper()
		table, err := OpenTable(context.Background(), name, &TableOptions{Region: "eu-west-1", Endpoint: endpoint})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Close)
		return table
	}
	ctx := context.Background()
	table := open(t, "registry")
	t.Run("a missing table", func(t *testing.T) {
		_, _, err := table.Swap(ctx, "jobs", queue.Lease{}, queue.Lease{Version: "a"})
		_, readErr := table.Read(ctx, "jobs")
		_, claimErr := table.Fires("jobs").Claim(ctx, "t@1", "t", time.Now(), 1)
		for _, err := range []error{err, readErr, claimErr, table.Check(ctx)} {
			if !isCode(err, queue.CodeResourceNotFound) {
				t.Errorf("the error is %v", err)
			}
		}
	})
	t.Run("creation", func(t *testing.T) {
		for range 2 { // the second finds it there
			if err := table.Create(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Check(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("leases", func(t *testing.T) {
		leadertest.Run(t, func(t testing.TB) leadertest.Store { return open(t, "registry") })
	})
	t.Run("an elector", func(t *testing.T) { handOver(t, table) })
	t.Run("fires", func(t *testing.T) { claims(t, table) })
	t.Run("rivals", func(t *testing.T) { rivals(t, table) })
	t.Run("a claim whose reply was lost", func(t *testing.T) { lostClaim(t, open(t, "registry"), table) })
}

// lead makes a new leader of term known to the table.
func lead(t testing.TB, table *Table, name string, term int64, released bool) {
	t.Helper()
	old, err := table.Read(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	next := queue.Lease{Owner: "test", Version: fmt.Sprintf("%d-%v", term, released), Term: term, Duration: time.Second, Released: released}
	if won, _, err := table.Swap(context.Background(), name, old, next); !won || err != nil {
		t.Fatalf("Swap: %v, %v", won, err)
	}
}

// fireWish is one claim of a script and what is to come of it.
type fireWish struct {
	term    int64
	claimed bool
	stale   bool
}

func claims(t *testing.T, table *Table) {
	ctx := context.Background()
	f := table.Fires("claims")
	at := time.UnixMilli(1_700_000_000_000).UTC()
	claim := func(wish fireWish) {
		t.Helper()
		claimed, err := f.Claim(ctx, "report@1", "report", at, wish.term)
		if claimed != wish.claimed || errors.Is(err, queue.ErrStaleTerm) != wish.stale || err != nil && !wish.stale {
			t.Errorf("Claim by term %d: %v, %v, want %+v", wish.term, claimed, err, wish)
		}
	}
	claim(fireWish{term: 1, stale: true}) // no lease was ever written
	lead(t, table, "claims", 1, false)
	claim(fireWish{term: 2, stale: true})
	claim(fireWish{term: 1, claimed: true})
	claim(fireWish{term: 1, claimed: true}) // a repeat, as after a lost reply
	lead(t, table, "claims", 1, true)
	claim(fireWish{term: 1, stale: true}) // given back
	lead(t, table, "claims", 2, false)
	claim(fireWish{term: 1, stale: true})
	if last, err := f.Last(ctx, []string{"report"}); err != nil || len(last) != 0 {
		t.Errorf("Last before a mark: %v, %v", last, err)
	}
	claim(fireWish{term: 2, claimed: true}) // claimed by term 1, never marked: the window for a duplicate
	for range 2 {
		if err := f.Mark(ctx, "report@1", "report", at, "message-1"); err != nil {
			t.Error(err)
		}
	}
	claim(fireWish{term: 2})
	lead(t, table, "claims", 3, false)
	claim(fireWish{term: 3})
	claim(fireWish{term: 2, stale: true})

	if err := f.Mark(ctx, "report@0", "report", at.Add(-time.Hour), "message-0"); err != nil {
		t.Error(err)
	}
	if err := f.Mark(ctx, "now@9", "", at.Add(time.Hour), "message-9"); err != nil {
		t.Error(err)
	}
	last, err := f.Last(ctx, []string{"report", "other", "report"})
	if err != nil || len(last) != 1 || !last["report"].Equal(at) {
		t.Errorf("Last: %v, %v, want report at %s alone", last, err, at)
	}
	if last, err := table.Fires("another").Last(ctx, []string{"report"}); err != nil || len(last) != 0 {
		t.Errorf("another lease's fires: %v, %v", last, err)
	}
}

// rivals claim the same fires at once, each in the term that it thinks it has,
// while the lease goes from one to the next: of each fire, the claims that
// succeed are of the terms that were current, in the order of the terms.
func rivals(t *testing.T, table *Table) {
	const terms = 6
	ctx := context.Background()
	f := table.Fires("rivals")
	lead(t, table, "rivals", 1, false)
	var all sync.WaitGroup
	var mu sync.Mutex
	over := int64(0) // terms up to here were over before the claim began
	for term := int64(1); term <= terms; term++ {
		for n := range 3 {
			all.Go(func() {
				for range 8 {
					mu.Lock()
					before := over
					mu.Unlock()
					claimed, err := f.Claim(ctx, fmt.Sprint("t@", n), "t", time.Now(), term)
					if claimed && term <= before {
						t.Errorf("term %d claimed after it was over", term)
					}
					if err != nil && !errors.Is(err, queue.ErrStaleTerm) && !isCode(err, queue.CodeRequestThrottled) {
						t.Error(err)
					}
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
}

// lostClaim claims through a transport that loses the first reply.
func lostClaim(t *testing.T, lossy, table *Table) {
	lead(t, table, "lossy", 1, false)
	first := true
	lossy.api = rewired(lossy, roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		resp, err := lossy.transport.RoundTrip(r)
		if first && err == nil {
			first = false
			resp.Body.Close()
			return nil, errors.New("connection reset by the test")
		}
		return resp, err
	}))
	f := lossy.Fires("lossy")
	if claimed, err := f.Claim(context.Background(), "t@1", "t", time.Now(), 1); claimed || !isCode(err, queue.CodeUnreachable) {
		t.Errorf("the claim whose reply was lost: %v, %v", claimed, err)
	}
	if claimed, err := f.Claim(context.Background(), "t@1", "t", time.Now(), 1); !claimed || err != nil {
		t.Errorf("its repeat: %v, %v", claimed, err)
	}
}

var motoListens = regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)

// startMoto starts moto on a free port, or skips the test.
func startMoto(t *testing.T) (endpoint string) {
	t.Helper()
	python := cmp.Or(os.Getenv("TENDRIL_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import moto.server, moto.dynamodb.models").CombinedOutput(); err != nil {
		complain := t.Skipf
		if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
			complain = t.Fatalf
		}
		complain("NOT TESTED against a foreign DynamoDB: %s has no moto with dynamodb (%v: %.200s). "+
			"Install it with: python3 -m venv venv && venv/bin/pip install 'moto[server,dynamodb]'; then set TENDRIL_PYTHON=venv/bin/python", python, err, out)
	}
	moto := exec.Command(python, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0")
	moto.Env = append(os.Environ(), "PYTHONUNBUFFERED=1", "NO_COLOR=1")
	stderr, err := moto.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := moto.Start(); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string, 1), make(chan struct{})
	go func() { // reads on, so that moto never waits for us
		defer close(ended)
		defer close(found)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := motoListens.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = moto.Process.Kill() // it is gone, or goes now
		<-ended
		_ = moto.Wait() // the kill is its exit status
	})
	endpoint, ok := <-found
	if !ok {
		t.Fatal("moto ended before it was listening")
	}
	return endpoint
}
