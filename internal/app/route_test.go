package app

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

func TestRefusedTaskPathHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestBalancer()
		route := &Route{balancer: b, detector: newDetector(slog.New(slog.DiscardHandler)), queue: "jobs",
			open: func(address string) (*deliver.Client, error) {
				return deliver.NewClient(&deliver.Options{Target: address})
			}}
		m := &queue.Message{ID: "m", ReceiveCount: 1, Run: &queue.Run{Path: "http://elsewhere/", Task: "tidy"}}
		start := time.Now()
		r := mustAdd(t, b)
		post := func(c *deliver.Client, ctx context.Context, ms []*queue.Message) []queue.Result {
			if r.messages[delivered{"m", "jobs", "tidy"}] != 1 {
				t.Errorf("in work: %v", r.messages)
			}
			return postOne(c, ctx, ms)
		}
		result := route.deliverTo(t.Context(), r, []*queue.Message{m}, post, false)[0]
		if !result.Unsent || result.Outcome != queue.Failed || time.Since(start) > 0 {
			t.Errorf("after %v: %+v", time.Since(start), result)
		}
	})
}

func TestMessageThatWaitedForAReplicaIsNotSentIfItsQueueWasPausedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, quarantined := range map[string]bool{"serving replica": false, "replica for quarantined messages": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, m := newFakeLauncher(t, nil)
				if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
					t.Fatal(err)
				}
				var paused atomic.Bool
				route := &Route{balancer: m.balancer, detector: newDetector(slog.New(slog.DiscardHandler)),
					quarantine: &quarantine{replicas: m}, open: func(address string) (*deliver.Client, error) {
						return deliver.NewClient(&deliver.Options{Target: address, Paused: paused.Load})
					}}
				message := &queue.Message{ID: "m"}
				if quarantined {
					route.detector.crashed(from("jobs", message.ID, "other"), time.Now())
				}
				time.AfterFunc(time.Millisecond, func() { paused.Store(true) })
				start := time.Now()
				if r := route.Deliver(t.Context(), message); r.Reason != deliver.Paused().Reason || time.Since(start) == 0 {
					t.Errorf("after %s: %+v", time.Since(start), r)
				}
				if route.detector.isQuarantined(message.ID) != quarantined {
					t.Error("a message that was not sent left the quarantine")
				}
				route.quarantine.stop()
				if err := m.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestMessageQuarantinedAfterItsBatchWasFormedIsPostedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		route := &Route{balancer: m.balancer, detector: newDetector(slog.New(slog.DiscardHandler)),
			quarantine: &quarantine{replicas: m}, open: func(address string) (*deliver.Client, error) {
				return deliver.NewClient(&deliver.Options{Target: address})
			}}
		route.detector.crashed(from("jobs", "m", "other"), time.Now())
		var posted []*queue.Message
		results := route.deliver(t.Context(), []*queue.Message{{ID: "m"}, {ID: "n"}},
			func(_ *deliver.Client, _ context.Context, ms []*queue.Message) []queue.Result {
				posted = ms
				return make([]queue.Result, len(ms))
			})
		if len(posted) != 1 || posted[0].ID != "m" || len(results) != 1 {
			t.Errorf("posted %d messages, with %d results", len(posted), len(results))
		}
		route.quarantine.stop()
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestQuarantinedMessageIsNotSentToAReplacedVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		q := &quarantine{replicas: m}
		time.AfterFunc(time.Millisecond, func() { m.setVersion(versionOf(2, good)) })
		r := q.deliver(t.Context(), func(*replica) queue.Result {
			t.Error("the replaced version received the message")
			return queue.Result{}
		})
		if r.Outcome != queue.Postponed {
			t.Errorf("%+v", r)
		}
		q.stop()
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestProbeFollowsTheVersion(t *testing.T) {
	t.Parallel()
	b := newTestBalancer()
	b.port = 5000
	route := &Route{balancer: b}
	first, later := mustAdd(t, b), mustAdd(t, b)
	if first.address() != "http://localhost:5000" || later.address() == first.address() {
		t.Fatalf("the versions listen at %s and %s", first.address(), later.address())
	}
	if err := route.Probe(t.Context()); err == nil {
		t.Error("no replica is ready, and the probe passes")
	}
	b.replace([]*replica{first}, []*replica{later})
	later.setReady(true, "")
	if err := route.Probe(t.Context()); err != nil {
		t.Errorf("the later version is ready: %v", err)
	}
	later.setReady(false, "it fails its health check")
	if err := route.Probe(t.Context()); err == nil {
		t.Error("the later version is not ready, and the probe passes")
	}
}

func TestRouteDeliversBatches(t *testing.T) {
	t.Parallel()
	b := newTestBalancer()
	var mu sync.Mutex
	var posts []string
	r := mustAdd(t, b)
	inWork := map[delivered]int{}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		posts = append(posts, request.Header.Get("X-Tendril-Batch-Size"))
		r.mu.Lock()
		maps.Copy(inWork, r.messages)
		r.mu.Unlock()
		if len(posts) > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(app.Close)
	detector := newDetector(slog.New(slog.DiscardHandler))
	route := &Route{balancer: b, detector: detector, queue: "jobs", open: func(string) (*deliver.Client, error) {
		return deliver.NewClient(&deliver.Options{Target: app.URL, QueueARN: "arn:aws:sqs:us-east-2:123456789012:jobs"})
	}}
	t.Cleanup(route.Close)
	b.replace(nil, []*replica{r})
	r.setReady(true, "")
	ms := []*queue.Message{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	for i, result := range route.DeliverBatch(t.Context(), ms) {
		if result.Outcome != queue.Done || result.Process != r.name() {
			t.Errorf("message %d: %+v", i, result)
		}
	}
	if want := map[delivered]int{{"a", "jobs", ""}: 1, {"b", "jobs", ""}: 1, {"c", "jobs", ""}: 1}; !maps.Equal(inWork, want) {
		t.Errorf("in work during the delivery: %v", inWork)
	}
	r.mu.Lock()
	if len(r.messages) > 0 {
		t.Errorf("%v are in work after the answer", r.messages)
	}
	r.mu.Unlock()
	close(r.exited)
	for i, result := range route.DeliverBatch(t.Context(), ms) {
		if result.Outcome != queue.Failed || !strings.HasPrefix(result.Reason, "the app exited while processing this") {
			t.Errorf("message %d: %+v", i, result)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"3", "3"}; !slices.Equal(posts, want) {
		t.Errorf("batches of %q, want %q", posts, want)
	}
}
