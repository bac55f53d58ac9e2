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
	c := NewRegistryClient(server.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	ctx, at := t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if since, err := c.Since(ctx, "", 0, map[string]time.Time{"audit": at}); err != nil || !since["audit"].Equal(at) {
		t.Fatalf("Since = %v, %v", since, err)
	}
	if err := c.Skip(ctx, broker.FireRequest{ID: "audit@1", Task: "audit", At: at.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if since, err := c.Since(ctx, "", 0, map[string]time.Time{"audit": at}); err != nil || !since["audit"].Equal(at.Add(time.Hour)) {
		t.Errorf("after Skip: %v, %v", since, err)
	}
	if fired, err := c.Fired(ctx, "audit@1"); fired || err != nil {
		t.Errorf("Fired = %v, %v", fired, err)
	}
	if _, err := c.Since(ctx, "lead", 7, map[string]time.Time{"audit": at}); !errors.Is(err, queue.ErrStaleTerm) {
		t.Errorf("Since of another term: %v", err)
	}
	if err := c.Skip(ctx, broker.FireRequest{ID: "x", At: at}); err == nil {
		t.Error("a skip of no task was accepted")
	}
}
