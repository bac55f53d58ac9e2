package app

import (
	"net"
	"strconv"
	"testing"

	"tendril/internal/supervisor"
	"tendril/internal/testing/testpeer"
)

func TestReplicasHaveDifferentAddresses(t *testing.T) {
	t.Parallel()
	settings := testpeer.FreePort(t)
	configured, err := strconv.Atoi(settings)
	if err != nil {
		t.Fatal(err)
	}
	b := newBalancer(configured, supervisor.FreePort)
	for port := 20_000; port < 30_000; port += 2 {
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
	if !seen["http://localhost:"+settings] {
		t.Error("no replica has the port of the settings")
	}
}

func TestReplicaAvoidsAPortThatAnotherProgramTook(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	configured := other.Addr().(*net.TCPAddr).Port
	b := newBalancer(configured, supervisor.FreePort)
	first, second := mustAdd(t, b), mustAdd(t, b)
	b.remove(first)
	third := mustAdd(t, b)
	if first.port != configured || second.port == configured || third.port == configured {
		t.Errorf("the replicas have the ports %d, %d and %d; only the first should report that %d is in use",
			first.port, second.port, third.port, configured)
	}
}
