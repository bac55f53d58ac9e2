package tasks

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/broker"
	"tendril/internal/sqsapi"
)

func TestVersionsAreDoneByOneInstance(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	server := httptest.NewServer(sqsapi.New(b, nil))
	t.Cleanup(server.Close)
	url := server.URL + "/000000000000/jobs"
	open := func(o RegistryOptions) *Manager {
		o.Queue = "jobs"
		m := New(Options{Registry: o, Stopping: make(chan struct{})})
		t.Cleanup(func() {
			if err := m.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	acquire := func(m *Manager, version string) (held bool) {
		t.Helper()
		c, err := AcquireVersion(t.Context(), m, version)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			return false
		}
		if err := c.Finish(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		return true
	}
	owner, client, other := open(RegistryOptions{Broker: b}), open(RegistryOptions{QueueURL: url}),
		open(RegistryOptions{QueueURL: url})
	if !acquire(client, "1") || acquire(other, "1") || !acquire(other, "2") || acquire(client, "2") {
		t.Error("the instances do not take turns by version")
	}
	if first, again := acquire(owner, "3"), acquire(owner, "3"); !first || !again || acquire(client, "3") {
		t.Error("the instance of the queue repeats a version, and the others do not")
	}
	for name, m := range map[string]*Manager{"declared the only one": open(RegistryOptions{Local: true, QueueURL: url}),
		"without a registry": open(RegistryOptions{QueueURL: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"})} {
		if c, err := AcquireVersion(t.Context(), m, "1"); c != nil || !errors.Is(err, ErrNoRegistry) {
			t.Errorf("%s: work %v, %v", name, c, err)
		}
	}
}

func TestLeasesNameTheMissingToken(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	server := httptest.NewServer(sqsapi.New(b, &sqsapi.Options{RegistryToken: "0123456789abcdef"}))
	t.Cleanup(server.Close)
	m := New(Options{Registry: RegistryOptions{Queue: "jobs", QueueURL: server.URL + "/000000000000/jobs"}})
	leases, decided, err := m.Election().Leases(t.Context())
	if leases != nil || decided || err == nil || !strings.Contains(err.Error(), "set TENDRIL_REGISTRY_TOKEN") {
		t.Errorf("without the token: %v, %t, %v", leases, decided, err)
	}
	server.Close()
	if _, decided, err = m.Election().Leases(t.Context()); decided || err != nil {
		t.Errorf("without the server: %t, %v", decided, err)
	}
}
