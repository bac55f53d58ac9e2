package sqsapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tendril/broker"
	"tendril/queue"
)

func TestAccountOverTheWire(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	server := httptest.NewServer(New(b, nil))
	t.Cleanup(server.Close)
	c := NewRegistryClient(server.URL, Identity{}, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	ctx, at := t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if since, err := c.SinceUnder(ctx, "", 0, map[string]time.Time{"audit": at}, nil); err != nil ||
		!since["audit"].UpTo.Equal(at) {
		t.Fatalf("Since = %v, %v", since, err)
	}
	if _, err := c.Skip(ctx, broker.RunRequest{ID: "audit@1", Task: "audit", At: at.Add(time.Hour)}, nil); err != nil {
		t.Fatal(err)
	}
	if since, err := c.SinceUnder(ctx, "", 0, map[string]time.Time{"audit": at}, nil); err != nil ||
		!since["audit"].UpTo.Equal(at.Add(time.Hour)) {
		t.Errorf("after Skip: %v, %v", since, err)
	}
	if enqueued, err := c.EnqueuedTo(ctx, "audit@1", "/"); enqueued || err != nil {
		t.Errorf("EnqueuedTo = %v, %v", enqueued, err)
	}
	if err := b.CreateQueue(ctx, "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	run := broker.RunRequest{Queue: "jobs", ID: "sweep@1", Task: "sweep", At: at}
	path := []queue.Attribute{{Name: "beanstalk.sqsd.path", Type: "String", Value: "/sweep"}}
	if _, _, err := c.Enqueue(ctx, run, queue.Outgoing{Body: "x", Attributes: path}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/sweep": true, "/wipe": false} {
		if enqueued, err := c.EnqueuedTo(ctx, "sweep@1", path); enqueued != want || err != nil {
			t.Errorf("EnqueuedTo %s = %v, %v", path, enqueued, err)
		}
	}
	// as a client asks that compares none
	anyPath, err := ask[enqueuedResponse](ctx, c, "Fired", enqueuedRequest{ID: "sweep@1"})
	if err != nil || !anyPath.Enqueued {
		t.Errorf("Enqueued with any path: %v", err)
	}
	for schedule, want := range map[string]time.Time{"0 5 * * *": at, "* * * * *": at.Add(time.Minute)} {
		if _, err := c.SinceUnder(ctx, "", 0, map[string]time.Time{"sweep": at},
			map[string]string{"sweep": "0 5 * * *"}); err != nil {
			t.Fatal(err)
		}
		since, err := c.SinceUnder(ctx, "", 0, map[string]time.Time{"sweep": at.Add(time.Minute)},
			map[string]string{"sweep": schedule})
		if err != nil || schedule == "0 5 * * *" && since["sweep"].UpTo.Before(want) || schedule == "* * * * *" &&
			!since["sweep"].UpTo.Equal(want) {
			t.Errorf("SinceUnder %s: %v, %v, want %v", schedule, since, err, want)
		}
	}
	if _, err := c.SinceUnder(ctx, "lead", 7, map[string]time.Time{"audit": at}, nil); !errors.Is(err,
		queue.ErrStaleTerm) {
		t.Errorf("Since of another term: %v", err)
	}
	if _, err := c.Skip(ctx, broker.RunRequest{ID: "x", At: at}, nil); err == nil {
		t.Error("a skip of no task was accepted")
	}
}
