package app

import (
	"testing"

	"tendril/internal/supervisor"
)

// A new replica also avoids the addresses of replicas that do not listen yet.
func TestReplicasHaveDifferentAddresses(t *testing.T) {
	t.Parallel()
	b := newBalancer(5000, supervisor.FreePort)
	for port := 20_000; port < 30_000; port += 2 { // half of the ports
		b.replicas = append(b.replicas, newReplica(b, version{}, port, port))
	}
	seen := map[string]bool{}
	for range 30 {
		r := mustAdd(t, b)
		if seen[r.address()] {
			t.Errorf("%s is given to a second replica", r.address())
		}
		seen[r.address()] = true
	}
	if !seen["http://localhost:5000"] {
		t.Error("no replica has the port of the settings")
	}
}
