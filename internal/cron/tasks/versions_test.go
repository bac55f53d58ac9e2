package tasks

import (
	"context"
	"net/http/httptest"
	"testing"

	"tendril/broker"
	"tendril/internal/sqsapi"
)

// TestVersionsAreClaimedByOneInstance: whichever registry the instances share, one of them has the claim on a version
// and the others do not; whoever has nobody to agree with is alone.
func TestVersionsAreClaimedByOneInstance(t *testing.T) {
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
	claim := func(m *Manager, version string) (held bool) {
		t.Helper()
		c, alone, err := ClaimVersion(t.Context(), m, version)
		if err != nil || alone {
			t.Fatalf("%v, alone %t", err, alone)
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
	if !claim(client, "1") || claim(other, "1") || !claim(other, "2") || claim(client, "2") {
		t.Error("the instances do not take turns by version")
	}
	if first, again := claim(owner, "3"), claim(owner, "3"); !first || !again || claim(client, "3") {
		t.Error("the instance of the queue repeats a version, and the others do not")
	}
	for name, m := range map[string]*Manager{"declared the only one": open(RegistryOptions{Local: true, QueueURL: url}),
		"without a registry": open(RegistryOptions{QueueURL: "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"})} {
		if c, alone, err := ClaimVersion(t.Context(), m, "1"); c != nil || !alone || err != nil {
			t.Errorf("%s: claim %v, alone %t, %v", name, c, alone, err)
		}
	}
}
