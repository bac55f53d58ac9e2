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

// A TERM to everything at once, as a service manager sends it, still leaves the
// guard in place; a guard that is killed is replaced at the next start.
func TestGuard(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	var g guard
	group := func() *guest {
		cmd := spawn("idle", &syscall.SysProcAttr{Setpgid: true})
		cmd.Env = append(cmd.Env, "WITNESS="+w.address())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() })
		g.add(cmd.Process.Pid)
		return w.next()
	}
	kept, removed := group(), group()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := g.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	first := g.cmd.Process.Pid
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	late := group()
	if g.cmd.Process.Pid == first {
		t.Fatal("the killed guard was not replaced")
	}
	g.remove(removed.pid)
	if len(g.live) != 2 {
		t.Errorf("%d groups under guard, want 2", len(g.live))
	}
	g.close()
	kept.awaitGone()
	late.awaitGone()
	removed.answers()
	if err := syscall.Kill(removed.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
