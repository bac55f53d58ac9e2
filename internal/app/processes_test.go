package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"tendril/internal/config"
	"tendril/internal/supervisor"
)

func newTestProcesses(t *testing.T) (*processLauncher, *replica) {
	t.Helper()
	settings := &config.Settings{}
	opts := &Options{Settings: func() *config.Settings { return settings }, Log: slog.New(slog.DiscardHandler), Hurry: context.Background(),
		Counters: supervisor.Events{Exited: func(supervisor.Exited) {}}}
	pid, _ := newTestPIDFile(t)
	return &processLauncher{opts: opts, detector: newDetector(opts.Log), pid: pid}, mustAdd(t, newTestBalancer())
}

func isDone(r <-chan struct{}) bool {
	select {
	case <-r:
		return true
	default:
		return false
	}
}

func TestExitOfAReplicaIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	s, r := newTestProcesses(t)
	events := s.events(r)
	r.setReady(true, "")
	exit := supervisor.Exit{Code: 9}
	died := r.begin(delivered{id: "poison"})
	events.Ended(supervisor.Ended{Process: "web", PID: 7})
	if !isDone(died) || !s.detector.isQuarantined("poison") {
		t.Error("the end of the process is not known before what it started is gone")
	}
	r.end(delivered{id: "poison"})
	innocent := r.begin(delivered{id: "innocent"})
	events.Exited(supervisor.Exited{Process: "web", PID: 7, Exit: exit})
	if isDone(innocent) || s.detector.isQuarantined("innocent") || s.detector.poison().Poison != 1 {
		t.Error("one end counts twice")
	}
	if !s.excused(r) {
		t.Error("the end is not excused")
	}
	r.end(delivered{id: "innocent"})
	events.Ended(supervisor.Ended{Process: "web", PID: 8})
	events.Exited(supervisor.Exited{Process: "web", PID: 8, Exit: exit})
	if s.excused(r) {
		t.Error("an end with nothing in work is excused")
	}
}

func TestReplicaThatNeverWasReadySaysHowItEnded(t *testing.T) {
	t.Parallel()
	s, r := newTestProcesses(t)
	events := s.events(r)
	for range maxEarlyExits {
		if r.err() != nil {
			t.Fatal("it was abandoned too early")
		}
		events.Ended(supervisor.Ended{Process: "web", PID: 7})
		events.Exited(supervisor.Exited{Process: "web", PID: 7, Exit: supervisor.Exit{Code: 3}})
	}
	if r.err() == nil || r.err().Error() != "web exited 3 times before it was ready: exit status 3" {
		t.Errorf("given up: %v", r.err())
	}
}

func TestHealthCheckOfTheOwnApp(t *testing.T) {
	t.Parallel()
	for _, check := range []string{"HTTP:5000/health", "HTTP:9483/health", "TCP:80", ""} {
		want := supervisor.Check{Port: 20001, Path: "/health"}
		if !strings.HasPrefix(check, "HTTP") {
			want.Path = ""
		}
		if got, err := checkOf(check, 20001); err != nil || got != want {
			t.Errorf("--healthcheck %q: %+v, %v, want %+v", check, got, err, want)
		}
	}
}
