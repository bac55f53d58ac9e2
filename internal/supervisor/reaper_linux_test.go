package supervisor

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestProcessOneReapsOrphans(t *testing.T) {
	t.Parallel()
	orphans := "10000"
	if testing.Short() {
		orphans = "1000"
	}
	probe := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no process namespace can be made here: %v %s", err, out)
	}
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=init", "ORPHANS="+orphans)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "zombies 0 wrong 0" {
		t.Errorf("%s orphans: %v, %q, want no zombies and no wrong status", orphans, err, got)
	}
	t.Logf("%s orphans in %s", orphans, time.Since(began).Round(time.Millisecond))
}

func TestOrphansAreTakenIn(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	adopter := exec.Command(os.Args[0])
	adopter.Env = childEnv("adopt", w.address())
	out, err := adopter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := adopter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = adopter.Process.Kill()
		_ = adopter.Wait()
	})
	said := make(chan string, 10)
	go func() {
		var buf [100]byte
		for {
			n, err := out.Read(buf[:])
			if err != nil {
				close(said)
				return
			}
			said <- string(buf[:n])
		}
	}()
	orphan := w.next()
	if orphan.role != "idle" {
		orphan = w.next()
	}
	if got := <-said; !strings.HasPrefix(got, "adopted") {
		t.Errorf("it says %q, want the orphan adopted", got)
	}
	orphan.conn.Close()
	if got := <-said; !strings.HasPrefix(got, "reaped") {
		t.Errorf("it says %q, want the orphan reaped", got)
	}
}

func TestChildrenInWaitAreLeft(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "exit 7")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if p, ok := readProcess(cmd.Process.Pid); !ok || !p.alive() {
			break
		}
		<-time.After(time.Millisecond)
	}
	if !awaitedChildren()[cmd.Process.Pid] {
		t.Skip("SKIPPED: this system gives out no handles on processes")
	}
	if !reapOrphans() {
		t.Error("nothing was left, want our own child")
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("Wait = %v, status %d, want 7", err, cmd.ProcessState.ExitCode())
	}
	if awaitedChildren()[cmd.Process.Pid] {
		t.Error("a child that was waited for still counts")
	}
}

func TestHandledProcess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"pos:\t0\nflags:\t02000002\nPid:\t42\nNSpid:\t42\n": 42,
		"Pid:\t-1\n": 0, "Pid:\t0\n": 0, "Pid:\tx\n": 0, "pos:\t0\n": 0, "": 0,
	} {
		if pid, ok := handledProcess(text); ok != (want != 0) || ok && pid != want {
			t.Errorf("handledProcess(%q) = %d, %t, want %d", text, pid, ok, want)
		}
	}
}
