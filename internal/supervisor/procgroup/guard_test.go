package procgroup

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

type child struct {
	t *testing.T
	Leader
	ended chan struct{}
}

func guarded(t *testing.T, g *Guard) *child {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, Leader: Leader{Cmd: cmd}, ended: make(chan struct{})}
	go func() { c.Await(); close(c.ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.PID(), syscall.SIGKILL)
		<-c.ended
		_ = c.Reap()
	})
	g.Add(c.PID(), "")
	return c
}

func (c *child) mustEnd() {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		c.t.Errorf("process %d is still alive", c.PID())
	}
}

func (c *child) mustLive() {
	c.t.Helper()
	select {
	case <-c.ended:
		c.t.Errorf("process %d is dead", c.PID())
	default:
	}
}

func kill(t *testing.T, g *Guard) {
	t.Helper()
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = g.cmd.Wait() // also closes the pipe
}

func TestGuardOutlastsTheSignalsThatStopAService(t *testing.T) {
	t.Parallel()
	var g Guard
	c := guarded(t, &g)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(g.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	c.mustLive()
	g.Close()
	c.mustEnd()
	if g.PID() != 0 {
		t.Errorf("process %d is the guard after its end", g.PID())
	}
}

func TestGuardDoesNotKillRemovedGroups(t *testing.T) {
	t.Parallel()
	var g Guard
	kept, removed, last := guarded(t, &g), guarded(t, &g), guarded(t, &g)
	g.Remove(removed.PID(), "")
	g.Close()
	kept.mustEnd()
	last.mustEnd()
	removed.mustLive()
}

func TestGuardIsReplaced(t *testing.T) {
	t.Parallel()
	var g Guard
	early, removed := guarded(t, &g), guarded(t, &g)
	kill(t, &g)
	g.Remove(removed.PID(), "")
	late := guarded(t, &g)
	g.Close()
	early.mustEnd()
	late.mustEnd()
	removed.mustLive()
}

func TestGuardWatchesBefore(t *testing.T) {
	t.Parallel()
	var g Guard
	defer g.Close()
	g.Watch()
	first := g.PID()
	if g.Watch(); first == 0 || g.PID() != first {
		t.Errorf("the guard is process %d, and was %d", g.PID(), first)
	}
	kill(t, &g)
	if g.Watch(); g.PID() == 0 || g.PID() == first {
		t.Errorf("the guard is process %d, and was %d, which is dead", g.PID(), first)
	}
	g.Remove(1<<30, "")
}
