package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tendril/internal/supervisor/procgroup"
	"tendril/internal/testing/testpeer"
)

type recorder struct {
	mu     sync.Mutex
	lines  []string
	killed []Killed
	exits  []Exited
	lost   int64
	gate   chan Gate
	failed chan *FailedError
}

func realSupervisor(t *testing.T, opts Options, procs ...Process) (*Supervisor, *recorder) {
	t.Helper()
	r := &recorder{gate: make(chan Gate, 100), failed: make(chan *FailedError, 10)}
	locked := func(f func()) { r.mu.Lock(); defer r.mu.Unlock(); f() }
	opts.Output = func(process, stream string, line []byte) {
		locked(func() { r.lines = append(r.lines, stream+" "+string(line)) })
	}
	opts.Events.Killed = func(e Killed) { locked(func() { r.killed = append(r.killed, e) }) }
	opts.Events.Exited = func(e Exited) { locked(func() { r.exits = append(r.exits, e) }) }
	opts.Events.LinesDropped = func(e LinesDropped) { locked(func() { r.lost = e.Total }) }
	opts.Events.Gate = func(e Gate) { r.gate <- e }
	gaveUp := opts.Events.GaveUp
	opts.Events.GaveUp = func(e GaveUp) { callIfSet(gaveUp, e); r.failed <- e.Err }
	for i := range procs {
		procs[i].OutputWait = cmp.Or(procs[i].OutputWait, hangGuard)
	}
	s, err := New(procs, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Stop(now); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return s, r
}

func (r *recorder) lineCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

func self(name, role string, w *observer) Process {
	return Process{Name: name, Argv: []string{os.Args[0]}, Env: childEnv(role, w.address())}
}

func start(t *testing.T, s *Supervisor) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, s *Supervisor) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.awaitOutput()
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := strconv.Atoi(testpeer.FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := self("web", "serve", w)
	p.Port = freePort(t)
	p.Env = append(p.Env, "PORT="+strconv.Itoa(p.Port))
	s, r := realSupervisor(t, Options{ReadyInterval: time.Millisecond}, p)
	start(t, s)
	if e := <-r.gate; !e.Open || !s.Ready() {
		t.Errorf("first gate event %+v, want open", e)
	}
	g := w.next()
	g.answers()
	if st := s.Status()[0]; st.PID != g.pid || st.State != Running || !st.Ready {
		t.Errorf("status %+v, want pid %d, running, ready", st, g.pid)
	}
	stop(t, s)
	g.awaitGone()
	if e := <-r.gate; e.Open {
		t.Errorf("second gate event %+v, want closed", e)
	}
	if len(r.killed) != 0 || r.exits[0].Exit.Signal != "SIGTERM" {
		t.Errorf("killed %v, exits %+v, want an end by TERM", r.killed, r.exits)
	}
	if PortTaken(p.Port) {
		t.Error("the port is still taken")
	}
}

func TestRealTermIgnored(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{Grace: 100 * time.Millisecond}, self("w", "ignore-term", w))
	start(t, s)
	g := w.next()
	stop(t, s)
	g.awaitGone()
	if len(r.killed) != 1 || r.exits[0].Exit.Signal != "SIGKILL" {
		t.Errorf("killed %v, exits %+v, want one KILL", r.killed, r.exits)
	}
	if ran := r.exits[0].Exit.Ran; ran < 100*time.Millisecond {
		t.Errorf("killed after %s, before its grace was over", ran)
	}
}

func TestRealGroupDiesWithItsLeader(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{}, self("w", "parent", w))
	start(t, s)
	one, two := w.next(), w.next()
	if one.role == two.role {
		t.Fatalf("%s and %s reported, want a parent and its child", one.role, two.role)
	}
	stop(t, s)
	one.awaitGone()
	two.awaitGone()
	if len(r.killed) != 0 {
		t.Errorf("killed %v, want TERM to be enough", r.killed)
	}
}

func TestRealCrashClearsTheGroup(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{RestartLimit: -1}, self("w", "parent", w))
	start(t, s)
	one, two := w.next(), w.next()
	leader, child := one, two
	if one.role != "parent" {
		leader, child = two, one
	}
	if err := syscall.Kill(leader.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-r.failed
	child.awaitGone()
	if !strings.Contains(err.Error(), "killed by SIGKILL") {
		t.Errorf("error %v", err)
	}
}

func TestRealEndIsReportedBeforeTheChildIsGone(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := Process{Name: "w", Shell: os.Args[0] + " & wait", Env: childEnv("exit-when-told", w.address())}
	ended := make(chan Ended, 1)
	s, r := realSupervisor(t, Options{Grace: hangGuard, RestartLimit: -1, Events: Events{Ended: func(e Ended) {
		ended <- e
	}}}, p)
	start(t, s)
	g, leader := w.next(), s.Status()[0].PID
	if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.PID != leader || e.Process != "w" {
		t.Errorf("told %+v, want the end of process %d", e, leader)
	}
	if got := g.line(); got != "finishing" {
		t.Errorf("its child says %q", got)
	}
	fmt.Fprintln(g.conn, "go on")
	g.awaitGone()
	<-r.failed
	if len(r.exits) != 1 || r.exits[0].Exit.Signal != "SIGKILL" {
		t.Errorf("exits %+v, want one by KILL", r.exits)
	}
}

func TestRealProgramBehindAShellMayFinish(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := Process{Name: "w", Shell: os.Args[0] + " & wait", Env: childEnv("exit-when-told", w.address())}
	s, r := realSupervisor(t, Options{Grace: hangGuard}, p)
	start(t, s)
	g := w.next()
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	if got := g.line(); got != "finishing" {
		t.Errorf("it says %q", got)
	}
	if st := s.Status()[0]; st.State != Ending {
		t.Errorf("state %s while it finishes, want %s", st.State, Ending)
	}
	fmt.Fprintln(g.conn, "go on")
	g.awaitGone()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	s.awaitOutput()
	if diff := gocmp.Diff([]string{"stdout finished"}, r.lines); diff != "" || len(r.killed) != 0 {
		t.Errorf("killed %v, output (-want +got):\n%s", r.killed, diff)
	}
}

func TestRealSimpleShellLineIsTheProgram(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := Process{Name: "w", Shell: os.Args[0] + " -x 'a b'", Env: childEnv("idle", w.address())}
	s, _ := realSupervisor(t, Options{}, p)
	start(t, s)
	if g := w.next(); g.pid != s.Status()[0].PID {
		t.Errorf("pid %d reported, %d started: a shell stands between", g.pid, s.Status()[0].PID)
	}
	stop(t, s)
}

func TestRealStoppedProcessObeys(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{Grace: hangGuard}, self("w", "idle", w))
	start(t, s)
	g := w.next()
	if err := syscall.Kill(g.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	if len(r.killed) != 0 || r.exits[0].Exit.Signal != "SIGTERM" {
		t.Errorf("killed %v, exits %+v, want an end by TERM", r.killed, r.exits)
	}
}

func TestRealOutputHeldByAnother(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := self("w", "leave-child", w)
	p.OutputWait = waitDelay
	s, r := realSupervisor(t, Options{RestartLimit: -1}, p)
	s.newSystem = markedSystem
	start(t, s)
	leader, left := w.next(), w.next()
	if leader.role != "leave-child" {
		leader, left = left, leader
	}
	// A line that is read too late would be lost.
	for deadline := time.Now().Add(hangGuard); r.lineCount() == 0 && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	leader.conn.Close()
	err := <-r.failed
	stop(t, s)
	if err.Last.Code != 0 || err.Last.Err != nil {
		t.Errorf("it ended with %v, want status 0", err)
	}
	if diff := gocmp.Diff([]string{"stdout leaving"}, r.lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	left.answers()
	left.conn.Close()
}

func TestRealProcessGetsItsArgumentsEnvironmentAndFolder(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	// TestLimitsHold looks for a leaked file 3.
	if leak, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD, 100); err != nil {
		t.Fatal(err)
	} else {
		t.Cleanup(func() { unix.Close(leak) })
	}
	p := self("w", "show", w)
	p.Dir = t.TempDir()
	p.Argv = append(p.Argv, "one", "two words")
	s, r := realSupervisor(t, Options{RestartLimit: -1}, p)
	err := s.Run(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 5") {
		t.Errorf("Run = %v, want status 5", err)
	}
	var out, errs []string
	for _, line := range r.lines {
		if strings.HasPrefix(line, "stdout env "+procgroup.MarkVariable+"=") {
			continue // set if control groups are not available
		}
		if rest, ok := strings.CutPrefix(line, "stdout "); ok {
			out = append(out, rest)
		} else {
			errs = append(errs, line)
		}
	}
	want := []string{
		"env " + roleVariable + "=show", "env OBSERVER=" + w.address(),
		"dir " + p.Dir, "leader true",
	}
	if runtime.GOOS == "linux" {
		want = append(want, "fd 0", "fd 1", "fd 2")
	}
	if diff := gocmp.Diff(want, out); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"stderr args 3"}, errs); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

func TestRealEmptyEnvironment(t *testing.T) {
	t.Parallel()
	s, r := realSupervisor(t, Options{RestartLimit: -1}, Process{Name: "w", Argv: []string{"env"}})
	if err := s.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "exit status 0") {
		t.Errorf("Run = %v, want status 0", err)
	}
	for _, line := range r.lines {
		if !strings.HasPrefix(line, "stdout "+procgroup.MarkVariable+"=") {
			t.Errorf("it was given %q", line)
		}
	}
}

func TestRealFloodIsDrained(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{RestartLimit: -1, LinesPerSecond: 100}, self("w", "flood", w))
	if err := s.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "exit status 7") {
		t.Errorf("Run = %v, want status 7", err)
	}
	if r.lost == 0 || int64(len(r.lines))+r.lost != 20_000 {
		t.Errorf("%d lines and %d lost, want 20000 together, and some lost", len(r.lines), r.lost)
	}
}

func TestRealSignalIsNamed(t *testing.T) {
	t.Parallel()
	s, _ := realSupervisor(t, Options{RestartLimit: -1}, self("w", "kill-self", newObserver(t)))
	if err := s.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "killed by SIGKILL") {
		t.Errorf("Run = %v, want the signal", err)
	}
}

func TestRealMissingPrograms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		proc Process
		want string
	}{
		{"program", Process{Argv: []string{"no-such-program-here"}},
			`process w: program "no-such-program-here" not found in PATH`},
		{"shell line", Process{Shell: "no-such-program-here --flag"},
			`exit status 127: program "no-such-program-here" not found in PATH`},
		{"not executable", Process{Shell: "/etc/passwd"},
			"exit status 126: /etc/passwd is not an executable file: try chmod +x"},
		{"part of a shell line", Process{Shell: "true && no-such-program-here"}, "exit status 127 (command not found)"},
		{"folder", Process{Shell: "true", Dir: "/no/such/folder"},
			"process w: cannot enter its working directory /no/such/folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.proc.Name = "w"
			s, _ := realSupervisor(t, Options{}, tt.proc)
			if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRealPortTakenByForeignListener(t *testing.T) {
	t.Parallel()
	foreign, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	visits := make(chan int)
	go func() {
		n := 0
		for {
			conn, err := foreign.Accept()
			if err != nil {
				visits <- n
				return
			}
			conn.Close()
			n++
		}
	}()
	p := self("web", "serve", newObserver(t))
	p.Port = foreign.Addr().(*net.TCPAddr).Port
	var port *PortError
	for range 10 {
		s, r := realSupervisor(t, Options{}, p)
		if err := s.Run(t.Context()); !errors.As(err, &port) || port.Port != p.Port {
			t.Fatalf("Run = %v, want a PortError", err)
		}
		if len(r.exits) != 0 || len(r.gate) != 0 {
			t.Errorf("exits %v, %d gate events, want nothing to have run", r.exits, len(r.gate))
		}
		// A process that another test is starting holds a copy of the listener until its exec, and may be named.
		if port.Holder == "" || strings.Contains(port.Holder, strconv.Itoa(os.Getpid())) {
			break
		}
	}
	if port.Holder != "" && !strings.Contains(port.Holder, strconv.Itoa(os.Getpid())) {
		t.Errorf("holder %q, want this process", port.Holder)
	}
	foreign.Close()
	if n := <-visits; runtime.GOOS == "linux" && n != 0 {
		t.Errorf("the foreign listener got %d connections", n)
	}
}
