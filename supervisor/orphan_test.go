package supervisor

import (
	"os"
	"os/exec"
	"testing"
)

// When a supervising process is killed, neither its children nor theirs live on,
// nor daemons of theirs.
func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for _, tie := range ties(t) {
		t.Run(tie, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				killSupervisor(t, tie)
			}
		})
	}
}

func killSupervisor(t *testing.T, tie string) {
	t.Helper()
	w := newWitness(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(childEnv("supervise", w.address()), "TIE="+tie)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	// Itself, its direct child, a program behind a shell, that one's child, and
	// one with two daemons.
	var guests []*guest
	for range 7 {
		guests = append(guests, w.next())
	}
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
