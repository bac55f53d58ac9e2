package supervisor

import (
	"os"
	"os/exec"
	"testing"
)

func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for _, kind := range treeKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				killSupervisor(t, kind)
			}
		})
	}
}

func killSupervisor(t *testing.T, kind string) {
	t.Helper()
	w := newObserver(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(childEnv("supervise", w.address()), "TREE="+kind)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	// A supervisor, its child, a program behind a shell, that program's child, and one with two daemons.
	var children []*reportingChild
	for range 7 {
		children = append(children, w.next())
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, g := range children {
		g.awaitGone()
	}
	if err := parent.Wait(); err == nil {
		t.Error("the supervisor was not killed")
	}
}
