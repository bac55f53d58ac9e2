package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
)

const roleVariable = "SUPERVISOR_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		status := play(role)
		if testing.CoverMode() != "" {
			syscall.Exit(status) // os.Exit would warn that GOCOVERDIR is not set
		}
		os.Exit(status)
	}
	goleak.VerifyTestMain(testpeer.Contained(m))
}

func play(role string) int {
	switch role {
	case "idle": // exits on SIGTERM
		return stay(role)
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		return stay(role)
	case "exit-when-told": // keeps running after SIGTERM until told to exit
		return finishSlowly()
	case "parent": // has a child in its process group
		if err := spawn("idle", nil).Start(); err != nil {
			return 1
		}
		return stay(role)
	case "leave-child": // exits when told, but its child keeps the output open
		return leave()
	case "daemonize": // has children outside its process group and session
		if err := daemonize(strings.Fields(os.Getenv("DAEMONS"))); err != nil {
			return 1
		}
		return stay(role)
	case "daemonize-and-exit": // like daemonize, but exits immediately
		if err := daemonize(strings.Fields(os.Getenv("DAEMONS"))); err != nil {
			return 1
		}
		return 3
	case "start-in-session": // starts the role in DAEMON in a new session and exits
		if err := spawn(os.Getenv("DAEMON"), &syscall.SysProcAttr{Setsid: true}).Start(); err != nil {
			return 1
		}
		return 0
	case "ignore-term-with-daemons": // ignores SIGTERM, as do its daemons
		signal.Ignore(syscall.SIGTERM)
		if err := daemonize([]string{"ignore-term", "ignore-term"}); err != nil {
			return 1
		}
		return stay(role)
	case "init": // supervises as process 1
		return reapMany()
	case "adopt": // adopts orphans without being process 1
		return adoptOne()
	case "unprivileged": // runs without root's privileges
		return unprivileged()
	case "logger": // fills a log file on a small disk
		return fillLog()
	case "show": // prints its arguments, environment and open files
		return show()
	case "flood":
		for i := range 20_000 {
			fmt.Println("line", i)
		}
		return 7
	case "kill-self":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		return stay(role)
	case "serve":
		ln, err := net.Listen("tcp4", "127.0.0.1:"+os.Getenv("PORT"))
		if err != nil {
			return 1
		}
		defer ln.Close()
		return stay(role)
	case "supervise": // supervises a process with a child
		return supervise()
	case "unguarded": // supervises without a guard
		return unguarded()
	}
	return 99
}

func spawn(role string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.SysProcAttr = attr
	return cmd
}

func report(role string) (net.Conn, error) {
	conn, err := net.Dial("tcp4", os.Getenv("OBSERVER"))
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s %d\n", role, os.Getpid())
	}
	return conn, err
}

func stay(role string) int {
	conn, err := report(role)
	if err != nil {
		return 1
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		fmt.Fprintln(conn, "here")
	}
	return 0
}

func finishSlowly() int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	conn, err := report("exit-when-told")
	if err != nil {
		return 1
	}
	reported := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		reported <- line
	}()
	select {
	case <-term:
	case <-reported:
		return 1
	}
	fmt.Fprintln(conn, "finishing")
	<-reported
	fmt.Println("finished")
	return 0
}

func show() int {
	for _, entry := range os.Environ() {
		fmt.Println("env", entry)
	}
	dir, _ := os.Getwd()
	fmt.Println("dir", dir)
	fmt.Println("leader", syscall.Getpgrp() == os.Getpid())
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		// These files of the Go runtime and of cgroup limits are not inherited.
		if err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/sys/") {
			fmt.Println("fd", fd.Name())
		}
	}
	fmt.Fprintln(os.Stderr, "args", len(os.Args))
	return 5
}

// leave starts a child without an environment, so that only a control group can find it.
func leave() int {
	child := exec.Command(os.Args[0])
	child.Env = childEnv("idle", os.Getenv("OBSERVER"))
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		return 1
	}
	fmt.Println("leaving")
	return stay("leave-child")
}

func daemonize(roles []string) error {
	for _, role := range roles {
		between := spawn("start-in-session", &syscall.SysProcAttr{Setsid: true})
		between.Env = append(between.Env, "DAEMON="+role)
		if err := between.Run(); err != nil {
			return err
		}
	}
	return nil
}

func supervise() int {
	s, err := New([]Process{
		{Name: "direct", Argv: []string{os.Args[0]}, Env: childEnv("idle", os.Getenv("OBSERVER"))},
		{Name: "nested", Shell: os.Args[0] + " & wait", Env: childEnv("parent", os.Getenv("OBSERVER"))},
		{Name: "daemons", Argv: []string{os.Args[0]},
			Env: append(childEnv("daemonize", os.Getenv("OBSERVER")), "DAEMONS=idle ignore-term")},
	}, nil)
	if err != nil {
		return 1
	}
	if os.Getenv("TREE") == "mark" {
		s.newSystem = markedSystem
	}
	if err := s.Start(context.Background()); err != nil {
		return 2
	}
	return stay("supervise")
}

func unguarded() int {
	h := newHost()
	// A control group would remain, because no process is left to remove it.
	h.cgroups = cgroupFolder{}
	p := Process{Name: "direct", Argv: []string{os.Args[0]}, Env: childEnv("idle", os.Getenv("OBSERVER"))}
	if _, err := h.start(&p, nil); err != nil {
		return 1
	}
	if err := syscall.Kill(h.guard.PID(), syscall.SIGKILL); err != nil {
		return 2
	}
	return stay("unguarded")
}

func markedSystem() *system {
	h := newHost()
	h.cgroups = cgroupFolder{}
	return systemOn(h)
}

func childEnv(role, observer string) []string {
	return []string{roleVariable + "=" + role, "OBSERVER=" + observer}
}

type observer struct {
	t  *testing.T
	ln net.Listener
}

type reportingChild struct {
	t    *testing.T
	role string
	pid  int
	conn net.Conn
	in   *bufio.Reader
}

const hangGuard = time.Minute

func newObserver(t *testing.T) *observer {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &observer{t: t, ln: ln}
}

func (w *observer) address() string { return w.ln.Addr().String() }

func (w *observer) next() *reportingChild {
	w.t.Helper()
	if err := w.ln.(*net.TCPListener).SetDeadline(time.Now().Add(hangGuard)); err != nil {
		w.t.Fatal(err)
	}
	conn, err := w.ln.Accept()
	if err != nil {
		w.t.Fatalf("no child reported: %v", err)
	}
	w.t.Cleanup(func() { conn.Close() })
	g := &reportingChild{t: w.t, conn: conn, in: bufio.NewReader(conn)}
	if _, err := fmt.Sscanf(g.line(), "%s %d", &g.role, &g.pid); err != nil {
		w.t.Fatalf("a child's report: %v", err)
	}
	return g
}

func (g *reportingChild) line() string {
	g.t.Helper()
	if err := g.conn.SetReadDeadline(time.Now().Add(hangGuard)); err != nil {
		g.t.Fatal(err)
	}
	line, err := g.in.ReadString('\n')
	if err != nil {
		g.t.Fatalf("%s (pid %d) is gone: %v", g.role, g.pid, err)
	}
	return strings.TrimSpace(line)
}

func (g *reportingChild) answers() {
	g.t.Helper()
	fmt.Fprintln(g.conn, "are you there?")
	if got := g.line(); got != "here" {
		g.t.Errorf("%s answers %q", g.role, got)
	}
}

func (g *reportingChild) awaitGone() {
	g.t.Helper()
	if err := g.conn.SetReadDeadline(time.Now().Add(hangGuard)); err != nil {
		g.t.Fatal(err)
	}
	if b, err := g.in.ReadByte(); err == nil {
		g.t.Errorf("%s (pid %d) sent %q instead of ending", g.role, g.pid, b)
	} else if os.IsTimeout(err) {
		g.t.Fatalf("%s (pid %d) is still alive", g.role, g.pid)
	}
}
