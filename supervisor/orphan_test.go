package supervisor

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// When a supervising process is killed, neither its children nor theirs live on.
func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for range 5 {
		w := newWitness(t)
		parent := exec.Command(os.Args[0])
		parent.Env = childEnv("supervise", w.address())
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		// Itself, its direct child, a program behind a shell, and that one's child.
		guests := []*guest{w.next(), w.next(), w.next(), w.next()}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, g := range guests {
			g.awaitGone()
		}
		if err := parent.Wait(); err == nil {
			t.Error("the supervisor was not killed")
		}
	}
}

// guarded starts a child in a group of its own and puts it under guard.
func guarded(t *testing.T, g *guard, w *witness) *guest {
	t.Helper()
	cmd := spawn("idle", &syscall.SysProcAttr{Setpgid: true})
	cmd.Env = append(cmd.Env, "WITNESS="+w.address())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	g.add(cmd.Process.Pid)
	return w.next()
}

// A service manager sends TERM to everything at once: the guard has to outlast
// that, or there would be none while we drain.
func TestGuardOutlastsTheSignalsThatStopAService(t *testing.T) {
	t.Parallel()
	var g guard
	child := guarded(t, &g, newWitness(t))
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := g.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	child.answers()
	g.close()
	child.awaitGone()
}

func TestGuardLeavesAloneWhatWasRemoved(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	var g guard
	kept, removed, last := guarded(t, &g, w), guarded(t, &g, w), guarded(t, &g, w)
	g.remove(removed.pid)
	g.close()
	kept.awaitGone()
	last.awaitGone()
	removed.answers()
}

// A guard that was killed is replaced at the next start, and the new one knows
// the groups of the old one.
func TestGuardIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	var g guard
	early, removed := guarded(t, &g, w), guarded(t, &g, w)
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	g.remove(removed.pid)
	late := guarded(t, &g, w)
	g.close()
	early.awaitGone()
	late.awaitGone()
	removed.answers()
}
