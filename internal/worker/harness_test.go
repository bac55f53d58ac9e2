package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
	"tendril/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

var errRefusedConnection = errors.New("connection refused")

type post struct {
	id, receipt string
	receives    int
	start, end  time.Time
	outcome     queue.Outcome
	left        time.Duration
}

type testApp struct {
	handle func(ctx context.Context, m *queue.Message) queue.Result
	fake   *queuetest.Fake

	mu      sync.Mutex
	down    bool
	probes  []time.Time
	posts   []post
	now     map[string]int
	working int
	most    int
	asks    int // deliveries that made no attempt
	twice   int // deliveries that started while the same message was being delivered
}

func done(d time.Duration) func(context.Context, *queue.Message) queue.Result {
	return func(ctx context.Context, _ *queue.Message) queue.Result {
		if !sleep(ctx, d) {
			return queue.Result{Reason: "cut off", Err: ctx.Err()}
		}
		return queue.Result{Outcome: queue.Done, Status: 200}
	}
}

func failed(ctx context.Context, _ *queue.Message) queue.Result {
	return queue.Result{Outcome: queue.Failed, Status: 500, Reason: "HTTP 500"}
}

func (a *testApp) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	a.mu.Lock()
	if a.down {
		a.mu.Unlock()
		return queue.Result{Outcome: queue.Unreached, Reason: "connection refused", Err: errRefusedConnection}
	}
	if a.now == nil {
		a.now = map[string]int{}
	}
	if a.now[m.ID] > 0 {
		a.twice++
	}
	a.now[m.ID]++
	a.working++
	a.most = max(a.most, a.working)
	handle := a.handle
	p := post{id: m.ID, receipt: m.ReceiptHandle, receives: m.ReceiveCount, start: time.Now()}
	a.mu.Unlock()
	if a.fake != nil {
		state, _ := a.fake.Message(m.ID)
		p.left = time.Until(state.VisibleAt)
	}

	res := queue.Result{Outcome: queue.Done, Status: 200}
	if handle != nil {
		res = handle(ctx, m)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now[m.ID]--
	a.working--
	if res.Outcome == queue.Postponed || res.Outcome == queue.Throttled {
		a.asks++
		return res
	}
	p.end, p.outcome = time.Now(), res.Outcome
	a.posts = append(a.posts, p)
	return res
}

func (a *testApp) Probe(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes = append(a.probes, time.Now())
	if a.down {
		return errRefusedConnection
	}
	return nil
}

func (a *testApp) setDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

func (a *testApp) seen() []post {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]post(nil), a.posts...)
}

func (a *testApp) byID() map[string][]post {
	m := map[string][]post{}
	for _, p := range a.seen() {
		m[p.id] = append(m[p.id], p)
	}
	return m
}

type harness struct {
	t     *testing.T
	fake  *queuetest.Fake
	app   *testApp
	w     *Worker
	drain context.CancelFunc
	abort context.CancelFunc
	ended chan error
}

func start(t *testing.T, fake *queuetest.Fake, app *testApp, opts *Options) *harness {
	t.Helper()
	r := prepare(t, fake, app, opts)
	r.run()
	return r
}

func prepare(t *testing.T, fake *queuetest.Fake, app *testApp, opts *Options) *harness {
	app.fake = fake
	return &harness{t: t, fake: fake, app: app, w: New(fake, app, opts), ended: make(chan error, 1)}
}

func (r *harness) run() {
	receive, drain := context.WithCancel(r.t.Context())
	work, abort := context.WithCancel(r.t.Context())
	r.drain, r.abort = drain, abort
	go func() { r.ended <- r.w.Run(receive, work) }()
}

func (r *harness) stop() {
	r.t.Helper()
	r.drain()
	err := <-r.ended
	r.abort()
	if err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

func (r *harness) send(n int, group string) []string {
	r.t.Helper()
	return send(r.t, r.fake, n, group)
}

func send(t *testing.T, fake *queuetest.Fake, n int, group string) []string {
	t.Helper()
	var ids []string
	for len(ids) < n {
		var out []queue.Outgoing
		for len(out) < min(n-len(ids), queue.MaxBatch) {
			out = append(out, queue.Outgoing{Body: fmt.Sprintf("body %d", len(ids)+len(out)), GroupID: group})
		}
		sent, err := fake.Send(context.Background(), out)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sent {
			if s.Err != nil {
				t.Fatal(s.Err)
			}
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (r *harness) place(place queuetest.FakePlace, want int) {
	r.t.Helper()
	if got := r.fake.Count(place); got != want {
		r.t.Errorf("%d messages are %s, want %d", got, place, want)
	}
}

// after sleeps, then waits until all goroutines are blocked.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func ptr[T any](v T) *T { return &v }

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
