package sqsapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/broker"
	"tendril/internal/cron/leader"
	"tendril/internal/registry"
	"tendril/internal/registry/registrytest"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

var _ leader.Store = (*RegistryClient)(nil)

type runs interface {
	leader.Store
	registrytest.Registry
}

type local struct {
	*registry.Leases
	*registry.Runs
}

func clientTo(t testing.TB, url string) *RegistryClient {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return NewRegistryClient(url, registry.Scope{}, Identity{}, &http.Client{Transport: transport})
}

func newRegistry(t testing.TB) (*RegistryClient, *broker.Broker) {
	t.Helper()
	b := newBroker(t, nil)
	for name, attrs := range map[string]map[string]string{"jobs": nil, "steps.fifo": {"FifoQueue": "true"}} {
		if err := b.CreateQueue(t.Context(), name, attrs, nil); err != nil {
			t.Fatal(err)
		}
	}
	return clientTo(t, newServer(t, New(b, nil))), b
}

func answering(t testing.TB, status int, contentType, body string) (*RegistryClient, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", r.URL.String())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return clientTo(t, s.URL), &calls
}

func TestRegistryClientIsARegistry(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil)
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	server := newServer(t, New(b, nil))
	c := clientTo(t, server)
	registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return c })
	registrytest.Runs(t, func(t testing.TB, scope registry.Scope) registrytest.Registry {
		scoped := clientTo(t, server)
		scoped.scope = scope
		return scoped
	}, c)
}

// Earlier clients do not compare the path.
func TestRegistryClientKnowsRunsOfAnyPath(t *testing.T) {
	t.Parallel()
	c, _ := newRegistry(t)
	run := registrytest.Run("sweep", 1)
	for _, want := range []bool{false, true} {
		out, err := ask[enqueuedResponse](t.Context(), c, "Fired", enqueuedRequest{ID: run.ID})
		if err != nil || out.Enqueued != want {
			t.Errorf("with any path: %v, %v; want %v", out.Enqueued, err, want)
		}
		if _, err := c.Enqueue(t.Context(), 0, run); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRegistryClientEnqueues(t *testing.T) {
	t.Parallel()
	c, b := newRegistry(t)
	delay, at := time.Duration(0), time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	attributes := []queue.Attribute{
		{Name: "beanstalk.sqsd.path", Type: "String", Value: "/a?b=c&d=<e>"},
		{Name: "blob", Type: "Binary.png", Value: "\x00\xff\n"},
		{Name: "n", Type: "Number", Value: "1"},
	}
	for name, m := range map[string]queue.Outgoing{
		"jobs":       {Body: "Zürich \u2028 <&>", Attributes: attributes, Delay: &delay, TraceHeader: "Root=1"},
		"steps.fifo": {Body: "x", Attributes: attributes, GroupID: "g", DedupID: "d"},
	} {
		run := registry.Run{Queue: name, ID: name + "@1", Task: name, ScheduledAt: at, Message: m}
		first, err := c.Enqueue(t.Context(), 0, run)
		sent := first.Sent
		if first.Already || err != nil || (sent.SequenceNumber != "") != (m.GroupID != "") {
			t.Fatalf("%s: enqueued %+v, %v", name, first, err)
		}
		got, err := b.Queue(name).Receive(t.Context(), queue.ReceiveRequest{Max: 10})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: received %v, %v", name, got, err)
		}
		back := queue.Outgoing{
			Body: got[0].Body, Attributes: got[0].Attributes, Delay: m.Delay,
			GroupID: got[0].GroupID, DedupID: got[0].DedupID, TraceHeader: got[0].TraceHeader,
		}
		if diff := cmp.Diff(m, back); diff != "" || got[0].ID != sent.ID {
			t.Errorf("%s: message %s, sent as %s: %s", name, got[0].ID, sent.ID, diff)
		}
		if again, err := c.Enqueue(t.Context(), 0, run); again.Sent != sent || !again.Already || err != nil {
			t.Errorf("%s: enqueued again %+v, %v", name, again, err)
		}
	}
}

func TestRegistryClientRefusals(t *testing.T) {
	t.Parallel()
	c, b := newRegistry(t)
	c.scope.Lease = "tasks"
	here := local{registry.NewLeases(b.Registry()), registry.NewRuns(b.Registry(), c.scope)}
	enqueue := func(term int64, change func(run *registry.Run)) func(r runs) error {
		run := registry.Run{Queue: "jobs", ID: "a@1", Task: "a", ScheduledAt: time.Unix(1, 0), Message: queue.Outgoing{Body: "x"}}
		change(&run)
		return func(r runs) error {
			_, err := r.Enqueue(t.Context(), term, run)
			return err
		}
	}
	for name, c2 := range map[string]struct {
		try  func(r runs) error
		code string
	}{
		"stale":    {enqueue(3, func(*registry.Run) {}), queue.CodeStaleTerm},
		"no id":    {enqueue(0, func(r *registry.Run) { r.ID = "" }), queue.CodeInvalidParameterValue},
		"no body":  {enqueue(0, func(r *registry.Run) { r.Message.Body = "" }), queue.CodeMissingRequiredParameter},
		"bad body": {enqueue(0, func(r *registry.Run) { r.Message.Body = "\x01" }), queue.CodeInvalidMessageContents},
		"no queue": {enqueue(0, func(r *registry.Run) { r.Queue = "other" }), queue.CodeQueueDoesNotExist},
		"version": {func(r runs) error {
			_, _, err := r.Swap(t.Context(), "l", queue.Lease{}, queue.Lease{})
			return err
		}, queue.CodeInvalidParameterValue},
		"name": {func(r runs) error { _, err := r.Read(t.Context(), ""); return err }, queue.CodeInvalidParameterValue},
		"task": {func(r runs) error { return r.SetPaused(t.Context(), "", "", true) }, queue.CodeInvalidParameterValue},
	} {
		here, there := c2.try(here), c2.try(c)
		if !errors.Is(there, &queue.Error{Code: c2.code}) || here == nil || here.Error() != there.Error() {
			t.Errorf("%s: %v over HTTP, %v in the process; want %s", name, there, here, c2.code)
		}
	}
	noTime := enqueue(0, func(r *registry.Run) { r.ScheduledAt = time.Time{} })(c)
	if !errors.Is(noTime, &queue.Error{Code: queue.CodeMissingRequiredParameter}) {
		t.Errorf("no time: %v", noTime)
	}
}

// JSON would silently change some text.
func TestRegistryClientSendsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	c, calls := answering(t, 200, jsonType, `{"MessageId":"m","Already":false}`)
	part := 1500 * time.Millisecond
	twice := []queue.Attribute{{Name: "a", Type: "String", Value: "1"}, {Name: "a", Type: "String", Value: "2"}}
	for name, m := range map[string]queue.Outgoing{
		"body":            {Body: "\xff"},
		"group":           {Body: "x", GroupID: "\xff"},
		"attribute value": {Body: "x", Attributes: []queue.Attribute{{Name: "a", Type: "String", Value: "\xff"}}},
		"attribute name":  {Body: "x", Attributes: []queue.Attribute{{Name: "\xff", Type: "Binary", Value: "1"}}},
		"attribute twice": {Body: "x", Attributes: twice},
		"delay":           {Body: "x", Delay: &part},
	} {
		run := registry.Run{Queue: "jobs", ID: "a", ScheduledAt: time.Unix(1, 0), Message: m}
		if _, err := c.Enqueue(t.Context(), 0, run); err == nil {
			t.Errorf("%s: sent", name)
		}
	}
	if _, _, err := c.Swap(t.Context(), "l", queue.Lease{}, queue.Lease{Version: "v", Owner: "\xff"}); err == nil {
		t.Error("owner: sent")
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	c, _ := newRegistry(t)
	if ok, err := c.Probe(t.Context()); !ok || err != nil {
		t.Errorf("a registry: %v, %v", ok, err)
	}
	for name, other := range map[string]struct {
		status            int
		contentType, body string
		unknown           bool // it may be a registry
	}{
		"an SQS server": {400, jsonType, `{"__type":"com.amazonaws.sqs#UnknownOperationException","message":""}`,
			false},
		"Amazon, unsigned": {403, jsonType,
			`{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException"}`, false},
		"an address": {400, jsonType,
			`{"__type":"com.amazonaws.sqs#InvalidAddress","message":"The address is not valid"}`, false},
		"a queue": {400, jsonType, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"}`, false},
		"XML": {400, "text/xml",
			`<ErrorResponse><Error><Code>InvalidAction</Code></Error></ErrorResponse>`, false},
		"a server that likes all": {200, jsonType, `{}`, false},
		"a page":                  {200, "text/html", `<html>`, false},
		"nothing there":           {404, "text/plain", `404 page not found`, false},
		"a redirect":              {302, "text/plain", ``, false},
		"a redirect that repeats": {307, "text/plain", ``, false},
		"not implemented":         {501, jsonType, `{"__type":"InternalFailure","message":"not yet implemented"}`, false},
		"a proxy":                 {502, "text/html", `<html>bad gateway`, true},
		"a store that failed":     {503, jsonType, `{"__type":"com.amazonaws.sqs#StorageFailed","message":"The disk"}`, true},
		"a guard":                 {403, jsonType, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"host"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, calls := answering(t, other.status, other.contentType, other.body)
			if ok, err := c.Probe(t.Context()); ok || (err != nil) != other.unknown {
				t.Errorf("%v, %v", ok, err)
			}
			if _, err := c.Read(t.Context(), "tasks"); err == nil {
				t.Error("a lease was read")
			}
			if won, _, err := c.Swap(t.Context(), "tasks", queue.Lease{}, queue.Lease{Version: "a"}); won || err == nil {
				t.Error("a lease was written")
			}
			if _, err := c.Enqueue(t.Context(), 0, registrytest.Run("audit", 0)); err == nil {
				t.Error("a run was made")
			}
			if n := calls.Load(); n != 4 {
				t.Errorf("%d requests for 4 calls", n)
			}
		})
	}
}

func TestRegistryCallOnAClosedConnectionIsRepeated(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	var first atomic.Value
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n > 1 && first.Load() == r.RemoteAddr {
			panic(http.ErrAbortHandler) // as if the connection had been closed before
		}
		first.CompareAndSwap(nil, r.RemoteAddr)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c := clientTo(t, s.URL)
	next := queue.Lease{Version: "a", Owner: "o", Term: 1, Duration: time.Second}
	if _, err := c.Read(t.Context(), "tasks"); err != nil {
		t.Fatal(err)
	}
	if won, _, err := c.Swap(t.Context(), "tasks", queue.Lease{}, next); !won || err != nil {
		t.Errorf("%v, %v", won, err)
	}
}

func TestRegistryClientSignsOnlyHeadersThatItSends(t *testing.T) {
	t.Parallel()
	var signed, received http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = r.Header
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	sign := func(r *http.Request, _ []byte) error { signed = r.Header.Clone(); return nil }
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	c := NewRegistryClient(s.URL, registry.Scope{}, Identity{Sign: sign}, &http.Client{Transport: transport})
	if _, err := c.Read(t.Context(), "l"); err == nil {
		t.Error("no error")
	}
	if len(signed) == 0 {
		t.Error("nothing was signed")
	}
	for name := range signed {
		if received[name] == nil {
			t.Errorf("%s was signed, and not sent", name)
		}
	}
}

func TestRegistryAnswerOfAnotherFormIsNoResult(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, jsonType, `{"Won":true,"Current":{"Owner":5}}`)
	if won, current, err := c.Swap(t.Context(), "l", queue.Lease{}, queue.Lease{Version: "v"}); won || err == nil {
		t.Errorf("%v, %+v, %v", won, current, err)
	}
}

func TestRegistryClientCodes(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 503, jsonType, `{"__type":"com.amazonaws.sqs#StorageFailed","message":"The disk"}`)
	if _, err := c.Read(t.Context(), "l"); !errors.Is(err, &queue.Error{Code: queue.CodeStorageFailed}) ||
		err.Error() != "The disk" {
		t.Errorf("a store that failed: %v", err)
	}
	c, _ = answering(t, 502, "text/html", `<html>`)
	if _, err := c.Read(t.Context(), "l"); !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("a proxy: %v", err)
	}
	c, _ = answering(t, 404, "text/html", `<html>`)
	if _, err := c.Read(t.Context(), "l"); !errors.Is(err, &queue.Error{Code: queue.CodeUnsupportedOperation}) {
		t.Errorf("something else: %v", err)
	}
}

func TestRegistryClientWithoutAServer(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]string{
		"http://user:secret@127.0.0.1:" + testpeer.FreePort(t): queue.CodeUnreachable,
		"127.0.0.1:9324": queue.CodeInvalidAddress,
		"":               queue.CodeInvalidAddress,
		"%":              queue.CodeInvalidAddress,
		"ftp://host":     queue.CodeUnreachable,
	} {
		ok, err := clientTo(t, url).Probe(t.Context())
		if ok || !errors.Is(err, &queue.Error{Code: code}) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v; want %s", url, ok, err, code)
		}
	}
}

func TestRegistryClientEndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	}))
	t.Cleanup(s.Close)
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := clientTo(t, s.URL).Read(ctx, "tasks")
	if !errors.Is(err, context.Canceled) || !errors.Is(err, queue.ErrUnreachable) {
		t.Errorf("answered %v", err)
	}
}
