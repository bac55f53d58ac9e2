package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/supervisor/procgroup"
)

func outputOf(t *testing.T, p Process) []string {
	t.Helper()
	p.Name, p.Dir = "w", "/"
	p.Env = append(p.Env, "PATH=/usr/bin:/bin", "HOME=/wrong")
	s, r := realSupervisor(t, Options{RestartLimit: -1}, p)
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 0") {
		t.Fatalf("Run = %v, want status 0", err)
	}
	return r.lines
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can change the user")
	}
}

func TestRunAsAUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	const show = `id -u; id -g; id -G; echo "$HOME $USER $LOGNAME"`
	byName := []string{nobody.Uid, nobody.Gid, nobody.Gid, nobody.HomeDir + " nobody nobody"}
	tests := []struct {
		user string
		want []string
	}{
		{"nobody", byName},
		{nobody.Uid, byName},
		{"nobody:7", []string{nobody.Uid, "7", "7", nobody.HomeDir + " nobody nobody"}},
		{"54320:12345", []string{"54320", "12345", "12345", "/ 54320 54320"}},
	}
	for _, tt := range tests {
		t.Run(tt.user, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, line := range outputOf(t, Process{Shell: show, User: tt.user}) {
				got = append(got, strings.TrimPrefix(line, "stdout "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("as %s (-want +got):\n%s", tt.user, diff)
			}
		})
	}
}

func TestDaemonsOfAUserEnd(t *testing.T) {
	t.Parallel()
	needRoot(t)
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		// Another run of this test may have processes of the same user.
		seconds := 100_000_000 + 2*os.Getpid()
		if strings.HasSuffix(t.Name(), "mark") {
			seconds++
		}
		daemon := fmt.Sprint("sleep ", seconds)
		s, _ := realSupervisor(t, Options{RestartLimit: -1}, Process{
			Name: "w", Dir: "/", User: "54321:12345", Env: []string{"PATH=/usr/bin:/bin"},
			Shell: `setsid sh -c '` + daemon + ` &'; exit 4`,
		})
		if err := with(s).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 4") {
			t.Fatalf("Run = %v, want status 4", err)
		}
		for _, p := range processes() {
			line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
			if p.alive() && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), daemon) {
				t.Errorf("a process of the user is left: %+v", p)
			}
		}
	})
}

// In a container, root may not read other users' environments.
func TestEnvironmentIsReadAsItsOwner(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{"PATH=/usr/bin:/bin", procgroup.MarkVariable + "=abc"}
	id, err := identityOf("54323:12345")
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = procgroup.Attributes()
	cmd.SysProcAttr.Credential = id.credential()
	// Acting as another user may end the thread and, with it, the children started on it.
	var thread procgroup.Thread
	if thread.Do(func() { err = cmd.Start() }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		thread.Close()
	})
	env, _ := environAsOwner(cmd.Process.Pid)
	// The environment is briefly empty during exec.
	for deadline := time.Now().Add(hangGuard); time.Now().Before(deadline); {
		if hasEntry(env, procgroup.MarkVariable+"=abc") {
			break
		}
		<-time.After(10 * time.Millisecond)
		env, _ = environAsOwner(cmd.Process.Pid)
	}
	if !hasEntry(env, procgroup.MarkVariable+"=abc") {
		t.Errorf("environment %q, want the mark", env)
	}
	if env, err := environAsOwner(os.Getpid()); env != nil || !errors.Is(err, os.ErrPermission) {
		t.Errorf("what belongs to root is read as root anyway: %v", err)
	}
}

func TestUnprivilegedStartIsExplained(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cmd := spawn("unprivileged", nil)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		t.Fatalf("it says %q", lines)
	}
	for i, want := range []string{"only root can change the user", "setting the limit nofile to unlimited: tendril's own limit",
		"exit status 5"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("error %q, want %q in it", lines[i], want)
		}
	}
}

func TestIdentityErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no-such-user-here":   "user no-such-user-here not found",
		"54321":               "use uid:gid, for example 54321:54321",
		":5":                  "use a name, a number, or uid:gid",
		"root:":               "use a name, a number, or uid:gid",
		"0:no-such-group-xyz": "group no-such-group-xyz not found",
		"99999999999:1":       "user 99999999999 not found",
	} {
		if _, err := identityOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("identityOf(%q) = %v, want %q", text, err, want)
		}
	}
	own, err := identityOf(strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid()))
	if err != nil || !own.own {
		t.Errorf("identityOf(us) = %+v, %v", own, err)
	}
}

func TestLimitsHold(t *testing.T) {
	t.Parallel()
	for _, p := range []Process{
		{Shell: `echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -c) $(ulimit -f); [ -e /proc/self/fd/3 ] && echo leak; true`},
		{Argv: []string{"sh", "-c", `echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -c) $(ulimit -f)`}},
	} {
		p.Limits = map[string]string{"nofile": "64:128", "core": "0", "fsize": "1048576"}
		got := outputOf(t, p)
		if diff := cmp.Diff([]string{"stdout 64 128 0 2048"}, got); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
	}
}

func TestLimitsOfAUserHold(t *testing.T) {
	t.Parallel()
	needRoot(t)
	p := Process{Shell: `echo $(id -u) $(id -g) $(ulimit -Sn) $(ulimit -Hn)`, User: "54350:54351",
		Limits: map[string]string{"nofile": "64:128"}}
	if got := outputOf(t, p); len(got) != 1 || got[0] != "stdout 54350 54351 64 128" {
		t.Errorf("output %q", got)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		status, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if strings.Contains(string(status), "Uid:\t54350") {
			t.Errorf("thread %s is still the user", task.Name())
		}
	}
}

func TestALimitedProgramIsTheLeader(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := self("w", "idle", w)
	p.Limits = map[string]string{"core": "0"}
	s, _ := realSupervisor(t, Options{}, p)
	start(t, s)
	if g := w.next(); g.pid != s.Status()[0].PID {
		t.Errorf("pid %d reported, %d started", g.pid, s.Status()[0].PID)
	}
	stop(t, s)
}

func TestLimitErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, value, want string }{
		{"files", "1", "unknown limit: use as, core, cpu"},
		{"nofile", "many", "use a whole number or unlimited"},
		{"nofile", "-1", "use a whole number or unlimited"},
		{"nofile", "1:x", "nofile=1024:unlimited"},
		{"nofile", "9:8", "cannot be above the hard limit"},
		{"nofile", "unlimited:8", "cannot be above the hard limit"},
	} {
		_, err := New([]Process{{Name: "w", Shell: "true", Limits: map[string]string{tt.name: tt.value}}}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "process w: limit "+tt.name) ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
	got, err := parseLimits(map[string]string{"nofile": "5", "core": "unlimited", "as": "1:unlimited"})
	want := []rlimit{{"as", 1, unlimited}, {"core", unlimited, unlimited}, {"nofile", 5, 5}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rlimit{})); diff != "" || err != nil {
		t.Errorf("%v, limits (-want +got):\n%s", err, diff)
	}
}
