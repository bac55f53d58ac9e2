package environment

import (
	"testing"

	"tendril/config"
	"tendril/supervisor"
)

// newTestCopy returns a copy of an app that does not run, in an environment of its own.
func newTestCopy(t *testing.T) *appCopy {
	t.Helper()
	cfg, err := config.Load(config.Sources{Flags: map[string]string{"data-dir": "/nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Config: cfg, Logger: discard()})
	if err := e.openTelemetry(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.pid, _ = newTestPIDFile(t)
	return &appCopy{e: e, number: 1, work: map[string]int{}, died: make(chan struct{}), failed: make(chan struct{})}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestDeathOfACopyIsKnownAtOnce: a delivery waits only a moment for it, and what the
// app started may take the whole grace to end.
func TestDeathOfACopyIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	c := newTestCopy(t)
	events := c.e.appEvents(c)
	c.wasReady()
	exit := supervisor.Exit{Code: 9}
	died := c.begin("poison")
	events.Ended(supervisor.Ended{Process: "web", PID: 7})
	if !isDone(died) || !c.e.finder.Quarantined("poison") {
		t.Error("the end of the process is not known before what it started is gone")
	}
	c.end("poison")
	innocent := c.begin("innocent") // taken meanwhile
	events.Exited(supervisor.Exited{Process: "web", PID: 7, Exit: exit})
	if isDone(innocent) || c.e.finder.Quarantined("innocent") || c.e.finder.Status().Poison != 1 {
		t.Error("one end counts twice")
	}
	if !c.excused("web", exit) {
		t.Error("the end is not excused")
	}
	c.end("innocent")
	events.Ended(supervisor.Ended{Process: "web", PID: 8})
	events.Exited(supervisor.Exited{Process: "web", PID: 8, Exit: exit})
	if c.excused("web", exit) {
		t.Error("an end with nothing in work is excused")
	}
}

// TestACopyThatNeverWasReadySaysHowItEnded, which is known only when it is cleared away.
func TestACopyThatNeverWasReadySaysHowItEnded(t *testing.T) {
	t.Parallel()
	c := newTestCopy(t)
	events := c.e.appEvents(c)
	for range hopeless {
		if isDone(c.Failed()) {
			t.Fatal("it was given up too early")
		}
		events.Ended(supervisor.Ended{Process: "web", PID: 7})
		events.Exited(supervisor.Exited{Process: "web", PID: 7, Exit: supervisor.Exit{Code: 3}})
	}
	if !isDone(c.Failed()) || c.Err().Error() != "web ended 3 times before it was ready: exit status 3" {
		t.Errorf("given up %t: %v", isDone(c.Failed()), c.Err())
	}
}
