package supervisor

import (
	"context"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func treeKinds(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: what leaves its process group is found on Linux only")
	}
	k := newCgroupTree(findCgroups())
	if k == nil {
		t.Log("SKIPPED with control groups: none can be made here")
		return []string{"mark"}
	}
	k.release()
	return []string{"cgroup", "mark"}
}

func eachTreeKind(t *testing.T, f func(t *testing.T, with func(*Supervisor) *Supervisor)) {
	t.Helper()
	for _, kind := range treeKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, func(s *Supervisor) *Supervisor {
				if kind == "mark" {
					s.newSystem = markedSystem
				}
				return s
			})
		})
	}
}

func daemonizer(role string, w *observer, daemons ...string) Process {
	p := self("web", role, w)
	p.Env = append(p.Env, "DAEMONS="+strings.Join(daemons, " "))
	return p
}

func bystander(t *testing.T) *reportingChild {
	t.Helper()
	w := newObserver(t)
	second := spawn("idle", &syscall.SysProcAttr{Setsid: true})
	second.Env = childEnv("idle", w.address())
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	g := w.next()
	t.Cleanup(func() {
		_ = second.Process.Kill()
		_ = second.Wait()
	})
	return g
}

func TestDaemonsEndWithTheirProcess(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w, second := newObserver(t), bystander(t)
		s, r := realSupervisor(t, Options{Grace: hangGuard}, daemonizer("daemonize", w, "idle", "idle"))
		start(t, with(s))
		children := []*reportingChild{w.next(), w.next(), w.next()}
		stop(t, s)
		for _, g := range children {
			g.awaitGone()
		}
		if len(r.killed) != 0 {
			t.Errorf("killed %v, want TERM to be enough for daemons too", r.killed)
		}
		second.answers()
	})
}

func TestDaemonsThatIgnoreTermAreKilled(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w, second := newObserver(t), bystander(t)
		hurry, hurryNow := context.WithCancel(t.Context())
		s, r := realSupervisor(t, Options{Grace: hangGuard, Hurry: hurry, Events: Events{
			Ended: func(Ended) { hurryNow() }, // only the daemons are left
		}}, daemonizer("daemonize", w, "ignore-term", "idle", "ignore-term"))
		start(t, with(s))
		children := []*reportingChild{w.next(), w.next(), w.next(), w.next()}
		stop(t, s)
		for _, g := range children {
			g.awaitGone()
		}
		if len(r.killed) != 1 || r.killed[0].Reason != "the stop could not wait for processes that it started" {
			t.Errorf("killed %v, want the daemons to be killed for themselves", r.killed)
		}
		second.answers()
	})
}

func TestDaemonsOfACrashedProcessAreCleared(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w := newObserver(t)
		s, _ := realSupervisor(t, Options{RestartLimit: -1, Grace: time.Second}, daemonizer("daemonize-and-exit", w, "ignore-term"))
		if err := with(s).Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "exit status 3") &&
			!strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("Run = %v, want status 3", err)
		}
		w.ln.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(time.Millisecond))
		if conn, err := w.ln.Accept(); err == nil {
			g := &reportingChild{t: t, conn: conn}
			defer conn.Close()
			if err := conn.SetReadDeadline(time.Now().Add(hangGuard)); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 100)
			for {
				if _, err := g.conn.Read(buf); err != nil {
					break
				}
			}
		}
	})
}

func TestEndOfOneLeavesTheDaemonsOfAnother(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		wa, wb := newObserver(t), newObserver(t)
		a, b := daemonizer("daemonize", wa, "idle"), daemonizer("daemonize", wb, "idle")
		b.Name = "clock"
		s, _ := realSupervisor(t, Options{Grace: hangGuard, RestartMin: time.Millisecond}, a, b)
		start(t, with(s))
		old := []*reportingChild{wa.next(), wa.next()}
		others := []*reportingChild{wb.next(), wb.next()}
		if err := syscall.Kill(s.Status()[0].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for _, g := range old {
			g.awaitGone()
		}
		for _, g := range others {
			g.answers()
		}
		again := []*reportingChild{wa.next(), wa.next()}
		for _, g := range again {
			g.answers()
		}
		if st := s.Status(); st[0].Restarts != 1 || st[1].Restarts != 0 {
			t.Errorf("restarts %d and %d, want 1 and 0", st[0].Restarts, st[1].Restarts)
		}
	})
}
