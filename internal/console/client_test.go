package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/testing/testpeer"
	"tendril/queue"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/observe/health"
)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func dial(t *testing.T, opts *Options) *api.Client {
	t.Helper()
	c, _ := dialServer(t, opts, func(*http.Server) {})
	return c
}

func claim(t *testing.T, dir string) {
	t.Helper()
	release, err := api.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
}

var dialled sync.Map

func dataDirOf(c *api.Client) string {
	dir, _ := dialled.Load(c)
	return dir.(string)
}

func sendBare(t *testing.T, c *api.Client, method, path string) error {
	t.Helper()
	resp, err := http.DefaultClient.Do(hookRequest(t, c, method, path))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	refusal := &api.Error{Status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(refusal); err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	return refusal
}

func dialServer(t *testing.T, opts *Options, edit func(*http.Server)) (*api.Client, *httptest.Server) {
	t.Helper()
	opts.Token = api.NewToken()
	s := New(opts)
	srv := httptest.NewUnstartedServer(s)
	srv.Config = HTTPServer(s)
	edit(srv.Config)
	srv.Start()
	dir := t.TempDir()
	instance := sampleInstance()
	instance.Console = srv.Listener.Addr().String()
	claim(t, dir)
	if err := errors.Join(instance.Write(dir), api.WriteToken(dir, opts.Token)); err != nil {
		t.Fatal(err)
	}
	c, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	dialled.Store(c, dir)
	t.Cleanup(func() {
		dialled.Delete(c)
		c.Close()
		s.Close()
		srv.Close()
	})
	return c, srv
}

func TestClientSeesWhatTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	ds := &Deliveries{}
	ds.Record(api.Delivery{MessageID: "m1", Queue: "photos", Outcome: "failed", Status: 500, Reason: "HTTP 500",
		At: time.Unix(5, 0).UTC()})
	workers := []api.Worker{{Queue: "photos", Concurrency: 50, InWork: 2, GateReasons: []string{"app not ready"}}}
	c := dial(t, &Options{
		Environment: "photos", Version: "1.2.3", Deliveries: ds,
		Status: func() api.Status {
			return api.Status{State: api.StateRunning, Workers: workers,
				Queues: []api.Queue{{Name: "photos", URL: "https://sqs.test/1/photos"}},
				App:    []api.Process{{Name: "web", State: "running", PID: 7, Ready: true}}}
		},
		Probes: Probes{Ready: func() []health.Check { return []health.Check{{Name: "app", Detail: "not ready"}} }},
	})
	got, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := api.Status{
		Environment: "photos", Version: "1.2.3", PID: os.Getpid(), State: api.StateRunning, Backend: api.BackendSQS,
		Checks: []health.Check{{Name: "app", Detail: "not ready"}},
		Queues: []api.Queue{{Name: "photos", URL: "https://sqs.test/1/photos"}}, Workers: workers,
		App: []api.Process{{Name: "web", State: "running", PID: 7, Ready: true}},
		Problems: []api.Problem{{Queue: "photos", Reason: "HTTP 500", Count: 1, First: time.Unix(5, 0).UTC(),
			Last: time.Unix(5, 0).UTC(), LastMessageID: "m1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := live(t.Context(), c); err != nil {
		t.Errorf("Live: %v", err)
	}
	recent, err := c.Deliveries(t.Context(), 5)
	if err != nil || len(recent) != 1 || recent[0].MessageID != "m1" {
		t.Errorf("Deliveries = %v, %v", recent, err)
	}
}

func TestClientPausesAndResumes(t *testing.T) {
	t.Parallel()
	var said []string
	c := dial(t, &Options{Receiving: Receiving{
		Pause: func(_ context.Context, name string, why api.Reason, by string) (api.Paused, error) {
			said = append(said, fmt.Sprintf("pause %s %s %t %s", name, why.Reason, why.This, by))
			switch name {
			case "nobody":
				return api.Paused{}, errors.New("no worker")
			case "other":
				return api.Paused{}, queue.Errorf(queue.CodeQueueDoesNotExist, "this environment does not work on queue %q", name)
			}
			return api.Paused{Paused: true, Revision: 7}, nil
		},
		Resume: func(_ context.Context, name string, this bool) (api.Paused, error) {
			said = append(said, fmt.Sprintf("resume %s %t", name, this))
			return api.Paused{}, nil
		},
	}})
	ctx := t.Context()
	answer, err := c.Pause(ctx, "a b/c?d", api.Reason{Reason: "deploy"})
	_, err2 := c.Resume(ctx, "a b/c?d", api.Reason{})
	_, err3 := c.Pause(ctx, "", api.Reason{Reason: "night", This: true})
	_, err4 := c.Resume(ctx, "", api.Reason{This: true})
	if err := errors.Join(err, err2, err3, err4); err != nil || answer != (api.Paused{Paused: true, Revision: 7}) {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	want := []string{"pause a b/c?d deploy false owner", "resume a b/c?d false", "pause  night true owner", "resume  true"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = c.Pause(ctx, "other", api.Reason{})
	var refusal *api.Error
	if !errors.As(err, &refusal) || refusal.Status != 404 || !errors.Is(err, queue.ErrNoQueue) || refusal.Hint == "" {
		t.Errorf("pausing a foreign queue: %#v", err)
	}
	if _, err = c.Pause(ctx, "nobody", api.Reason{}); !errors.As(err, &refusal) || refusal.Status != http.StatusConflict {
		t.Errorf("a pause that cannot be: %#v", err)
	}
}

func TestClientThatOnlyReads(t *testing.T) {
	t.Parallel()
	opts := &Options{Status: func() api.Status { return api.Status{} }}
	opts.Receiving.Pause = func(context.Context, string, api.Reason, string) (api.Paused, error) {
		t.Error("paused")
		return api.Paused{}, nil
	}
	c := dial(t, opts)
	c.OnlyRead()
	if _, err := c.Pause(t.Context(), "jobs", api.Reason{}); !errors.Is(err, api.ErrOnlyReads) {
		t.Errorf("pause: %v", err)
	}
	if _, err := c.Deploy(t.Context(), "/"); !errors.Is(err, api.ErrOnlyReads) {
		t.Errorf("deploy: %v", err)
	}
	if _, err := c.Status(t.Context()); errors.Is(err, api.ErrOnlyReads) {
		t.Errorf("status: %v", err)
	}
}

func TestOutcomeOfAMessage(t *testing.T) {
	t.Parallel()
	ds := &Deliveries{}
	c := dial(t, &Options{Deliveries: ds})
	if _, known, err := c.Outcome(t.Context(), "m1", 0); known || err != nil {
		t.Errorf("Outcome before any delivery = %v, %v", known, err)
	}
	arrived := make(chan api.Delivery)
	go func() {
		d, known, err := c.Outcome(t.Context(), "m1", time.Minute)
		if !known || err != nil {
			t.Errorf("Outcome = %v, %v", known, err)
		}
		arrived <- d
	}()
	ds.Record(api.Delivery{MessageID: "m1", Outcome: "done", Status: 200})
	if d := <-arrived; d.Status != 200 {
		t.Errorf("outcome %+v", d)
	}
}

func TestWaitsForStoredMessagesEndOnceDrained(t *testing.T) {
	t.Parallel()
	b, drained, ds := newBroker(t), make(chan struct{}), &Deliveries{}
	ids := sendBodies(t, b, "jobs", "queued", "failed", "done")
	if n, err := b.DeleteMessages(t.Context(), "jobs", ids[2:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	c := dial(t, &Options{Deliveries: ds, Broker: b, Drained: drained, InWork: func(id string) (api.Delivery, bool) {
		return api.Delivery{MessageID: id, Outcome: api.InWork}, id == ids[0]
	}})
	type answer struct {
		d   api.Delivery
		err error
	}
	wait := func(id string) <-chan answer {
		answers := make(chan answer, 1)
		go func() { d, _, err := c.Outcome(t.Context(), id, time.Hour); answers <- answer{d, err} }()
		return answers
	}
	queued, failed, done, elsewhere := wait(ids[0]), wait(ids[1]), wait(ids[2]), wait("m1")
	ds.Record(api.Delivery{MessageID: ids[1], Outcome: "failed"})
	close(drained)
	if got := <-queued; !api.HasStatus(got.err, http.StatusConflict) || !strings.Contains(got.err.Error(), "still in its queue") {
		t.Errorf("the wait for a queued message ended with %+v", got)
	}
	if got := <-failed; got.err != nil || got.d.Outcome != "failed" {
		t.Errorf("the wait for a failed message ended with %+v", got)
	}
	ds.Record(api.Delivery{MessageID: ids[2], Outcome: "done"})
	ds.Record(api.Delivery{MessageID: "m1", Outcome: "done"})
	for name, other := range map[string]<-chan answer{"no longer stored": done, "stored elsewhere": elsewhere} {
		if got := <-other; got.err != nil || !got.d.Done() {
			t.Errorf("the wait for a message that is %s ended with %+v", name, got)
		}
	}
}

func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		s := New(&Options{Token: testToken, Deliveries: &Deliveries{}, Drain: func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}})
		start := time.Now()
		codes := make(chan int, 2)
		go func() { code, _ := exchange(t, s, get("/api/v1/messages/m1/outcome?wait=25s")); codes <- code }()
		go func() { code, _ := exchange(t, s, post("/api/v1/drain", `{"wait":"25s"}`)); codes <- code }()
		<-begun
		synctest.Wait()
		s.Close()
		s.Close()
		if got := <-codes + <-codes; got != 404+202 || time.Since(start) != 0 {
			t.Errorf("codes add up to %d after %v; want 404 and 202 at once", got, time.Since(start))
		}
	})
}

func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Deliveries: &Deliveries{}, Drain: func(context.Context) error { return nil }})
	for _, wait := range []string{"26s", "-1s", "x", "20"} {
		if code, body := exchange(t, s, get("/api/v1/messages/m1/outcome?wait="+wait)); code != 400 ||
			!strings.Contains(body["hint"].(string), "25s") {
			t.Errorf("outcome?wait=%s: %d %v", wait, code, body)
		}
		if code, body := exchange(t, s, post("/api/v1/drain", `{"wait":"`+wait+`"}`)); code != 400 {
			t.Errorf("drain %s: %d %v", wait, code, body)
		}
	}
	for _, limit := range []string{"0", "-1", "x", "10001"} {
		if code, _ := exchange(t, s, get("/api/v1/deliveries?limit="+limit)); code != 400 {
			t.Errorf("deliveries?limit=%s: %d", limit, code)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		drain func(ctx context.Context) error
		want  bool
		err   string
		late  bool
	}{
		{"finished", func(context.Context) error { return nil }, true, "", false},
		{"still going", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false, "", false},
		{"failed", func(context.Context) error { return errors.New("the disk is full") }, false, "the disk is full", false},
		{"late", func(context.Context) error {
			return &api.Error{Status: 500, Message: "2 deliveries were aborted", Late: true}
		}, false, "2 deliveries were aborted", true},
		{"wrapped", func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("draining: %w", ctx.Err())
		}, false, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			done, err := dial(t, &Options{Drain: c.drain}).Drain(t.Context(), time.Millisecond)
			if done != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("Drain = %v, %v; want %v, %q", done, err, c.want, c.err)
			}
			var refusal *api.Error
			if late := errors.As(err, &refusal) && refusal.Late; late != c.late {
				t.Errorf("Drain: late %v, want %v", late, c.late)
			}
		})
	}
}

func TestDialSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, change func(*api.Instance)) string {
		dir := t.TempDir()
		claim(t, dir)
		instance := sampleInstance()
		change(instance)
		if err := instance.Write(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if _, err := api.Dial(t.TempDir()); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := api.Dial(write(t, func(i *api.Instance) {
		i.Console = ""
	})); !errors.Is(err, api.ErrOff) || !strings.Contains(err.Error(), "photos") {
		t.Errorf("console off: %v", err)
	}
	c, err := api.Dial(write(t, func(i *api.Instance) { i.Console = "127.0.0.1:" + testpeer.FreePort(t) }))
	if err != nil {
		t.Fatal(err)
	}
	if err := live(t.Context(), c); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestClientDistinguishesForeignListeners(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{Drain: func(context.Context) error { return nil }})
	dir := dataDirOf(c)
	if err := api.WriteToken(dir, api.NewToken()); err != nil {
		t.Fatal(err)
	}
	other, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var refusal *api.Error
	if _, err := other.Drain(t.Context(), 0); !errors.As(err, &refusal) ||
		!strings.Contains(refusal.Hint, "another environment") {
		t.Errorf("with another token: %#v", err)
	}
	if err := os.Remove(filepath.Join(dir, api.TokenFile)); err != nil {
		t.Fatal(err)
	}
	without, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if _, err := without.Drain(t.Context(), 0); !errors.As(err, &refusal) || !strings.Contains(refusal.Hint, api.TokenFile) {
		t.Errorf("without a token: %#v", err)
	}
	c.Instance.PID = os.Getppid()
	if _, err := c.Status(t.Context()); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("the status of another process: %v", err)
	}
}

func TestClientReadsWhatOthersAnswer(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"/livez": "not JSON"}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/queues" {
			w.WriteHeader(http.StatusTeapot)
		}
		io.WriteString(w, answers[r.URL.Path])
	}))
	defer srv.Close()
	dir := t.TempDir()
	claim(t, dir)
	instance := sampleInstance()
	instance.Console = srv.Listener.Addr().String()
	if err := instance.Write(dir); err != nil {
		t.Fatal(err)
	}
	c, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "decoding the response") {
		t.Errorf("an empty answer: %v", err)
	}
	if _, err := c.Queues(t.Context()); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("a foreign status: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := live(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled question: %v", err)
	}
}

func live(ctx context.Context, c *api.Client) error {
	_, err := c.Status(ctx)
	return err
}

func sampleInstance() *api.Instance {
	return &api.Instance{
		PID: os.Getpid(), Version: "1.2.3", Environment: "photos", Endpoint: "http://127.0.0.1:9324",
		Region: "us-east-1", AccountID: "000000000000",
		Queues: []api.InstanceQueue{
			{Name: "photos", URL: "http://127.0.0.1:9324/000000000000/photos", DeadLetterQueue: "photos-dead", Embedded: true},
		},
		StartedAt: time.Unix(1_700_000_000, 0).UTC(),
	}
}
