package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/supervisor"
)

type stepGroup struct {
	runner *stepRunner
	err    chan error
	left   *os.File
}

func newSteps(hurry context.Context, grace time.Duration) *stepRunner {
	settings := &config.Settings{AppGrace: grace}
	return &stepRunner{legacy: newLegacyPlatform(settings),
		opts: &Options{Hurry: hurry, Facts: noFacts{}, Settings: func() *config.Settings { return settings }}}
}

type noFacts struct{}

func (noFacts) Publish(int, *bundle.Bundle, *config.Settings) error { return nil }
func (noFacts) Serve(int) error                                     { return nil }
func (noFacts) Remove(int) error                                    { return nil }
func (noFacts) Environ(env []string, _ int, _ bool) []string        { return env }

func beginStep(t *testing.T, ctx, hurry context.Context, grace time.Duration, trap, script string) *stepGroup {
	t.Helper()
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := os.OpenFile(held, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The process left behind installs its signal handlers before it prints its PID. The step continues once the test
	// has read the PID, because a line that is read too late after the step's end is lost.
	const leave = `/bin/sh -c 'exec 3>"$0.held"; echo $$ >"$0"; exec sleep 1000' "$0" >/dev/null 2>&1 &
until [ -s "$0" ]; do sleep 0.01; done; cat "$0"; until [ -e "$0.read" ]; do sleep 0.01; done`
	p := supervisor.Process{Name: "step", Dir: dir, OutputWait: 10 * time.Millisecond, Argv: []string{"/bin/sh", "-c",
		trap + "\n" + strings.ReplaceAll(leave, "$0.held", held) + "\n" + script, filepath.Join(dir, "pid")},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	runner := newSteps(hurry, grace)
	g, lines := &stepGroup{runner: runner, err: make(chan error, 1), left: left}, make(chan string, 100)
	go func() {
		g.err <- runner.runStep(ctx, 1, &p, func(_ string, line []byte) { lines <- string(line) })
	}()
	pid, err := strconv.Atoi(<-lines)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pid.read"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		runner.stop()
		if !g.mustLoseAll(t) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		left.Close()
	})
	return g
}

func (s *stepGroup) leftAlive() bool {
	s.left.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := s.left.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func (s *stepGroup) mustLoseAll(t *testing.T) (lost bool) {
	t.Helper()
	s.left.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := s.left.Read(make([]byte, 1))
	if err != io.EOF {
		t.Errorf("what it started is still alive: %v", err)
	}
	return err == io.EOF
}

// The plan also contains the Procfile's processes, which stepRunner does not run.
func TestStepsRunInTwoParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hooks := ".platform/hooks/"
	for name, text := range map[string]string{"Procfile": "web: exit 1\n", "Buildfile": "make: true\n",
		hooks + "prebuild/a.sh": "#!/bin/sh\n", hooks + "predeploy/b.sh": "#!/bin/sh\n",
		hooks + "postdeploy/c.sh": "#!/bin/sh\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var begun []string
	s := newSteps(t.Context(), time.Second)
	s.begins = func(step string) { begun = append(begun, step) }
	s.opts.Log = slog.New(slog.DiscardHandler)
	s.opts.Environ = func(*bundle.Bundle, int) []string { return os.Environ() }
	s.opts.Output = func(string, string, []byte) {}
	s.opts.Draining = make(chan struct{})
	defer s.stop()
	for _, c := range []struct {
		after bool
		want  []string
	}{
		{false, []string{hooks + "prebuild/a.sh", "make", hooks + "predeploy/b.sh"}},
		{true, []string{hooks + "postdeploy/c.sh"}},
	} {
		begun = nil
		if err := s.run(t.Context(), version{bundle: b}, c.after); err != nil || !slices.Equal(begun, c.want) {
			t.Errorf("after the start %t: %q, %v; want %q", c.after, begun, err, c.want)
		}
	}
}

func TestAFailedStepNamesItsFileOnce(t *testing.T) {
	t.Parallel()
	s := newSteps(t.Context(), time.Second)
	s.opts.Log = slog.New(slog.DiscardHandler)
	s.opts.Environ = func(*bundle.Bundle, int) []string { return os.Environ() }
	s.opts.Output = func(string, string, []byte) {}
	defer s.stop()
	const hook = ".platform/hooks/predeploy/a.sh"
	for want, step := range map[string]bundle.Step{
		"the predeploy step " + hook + " failed after ":  {Phase: "predeploy", Name: hook, File: hook},
		"Buildfile:2: the build step make failed after ": {Phase: "build", Name: "make", File: "Buildfile", Line: 2},
		"Buildfile: the build step make failed after ":   {Phase: "build", Name: "make", File: "Buildfile"},
	} {
		step.Shell = "exit 7"
		err := s.runOne(t.Context(), version{}, &step)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": exit status 7") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestDroppedLinesOfAStepAreReported(t *testing.T) {
	t.Parallel()
	s := newSteps(t.Context(), time.Second)
	s.opts.Log = slog.New(slog.DiscardHandler)
	s.opts.Environ = func(*bundle.Bundle, int) []string { return os.Environ() }
	defer s.stop()
	blocked := make(chan struct{})
	s.opts.Output = func(string, string, []byte) { <-blocked }
	var dropped []supervisor.LinesDropped
	s.opts.Counters.LinesDropped = func(e supervisor.LinesDropped) {
		if dropped = append(dropped, e); len(dropped) == 1 {
			close(blocked)
		}
	}

	step := bundle.Step{Phase: "appdeploy pre", Name: "a.sh", Shell: "i=0; while [ $i -lt 600 ]; do echo $i; i=$((i+1)); done"}
	if err := s.runOne(t.Context(), version{}, &step); err != nil {
		t.Fatal(err)
	}
	if len(dropped) == 0 || dropped[0].Process != "appdeploy pre" || dropped[0].TooFast {
		t.Errorf("reported: %+v", dropped)
	}
}

func TestGroupMayLeaveSomethingBehind(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"exit 0", "sleep 5 & exit 0", "exit 7"} {
		g := beginStep(t, t.Context(), context.Background(), time.Minute, "", script)
		if err := <-g.err; (err != nil) != (script == "exit 7") || err != nil && err.Error() != "exit status 7" {
			t.Errorf("%s: %v", script, err)
		}
		if !g.leftAlive() {
			t.Errorf("%s: what it left behind is gone", script)
		}
	}
}

func TestGroupGetsTERM(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := beginStep(t, ctx, t.Context(), time.Hour, "trap 'exit 3' TERM", "while :; do sleep 0.01; done")
	cancel()
	if err := <-g.err; err == nil || err.Error() != "exit status 3" {
		t.Errorf("it ended with %v, want its own exit status 3", err)
	}
	g.mustLoseAll(t)
	if err := g.runner.runStep(ctx, 1, &supervisor.Process{Shell: "true"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestGroupMembersHaveTheGraceWhenTheirShellIsGone(t *testing.T) {
	t.Parallel()
	const child = `trap 'sleep 0.2; echo cleaned up; exit' TERM; echo ready; while :; do sleep 0.01; done`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := supervisor.Process{Name: "step", Argv: []string{"/bin/sh", "-c", "/bin/sh -c \"$0\"; exit 1", child},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, OutputWait: time.Minute}
	lines := make(chan string, 100)
	s := newSteps(t.Context(), time.Hour)
	defer s.stop()
	_ = s.runStep(ctx, 1, &p, func(stream string, line []byte) {
		if stream == "stdout" {
			lines <- string(line)
		}
		if string(line) == "ready" {
			cancel()
		}
	})
	for _, want := range []string{"ready", "cleaned up"} {
		select {
		case got := <-lines:
			if got != want {
				t.Errorf("it said %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it did not say %q", want)
		}
	}
	if len(lines) > 0 {
		t.Errorf("it also said %q", <-lines)
	}
}

func TestGroupThatDoesNotListenIsKilled(t *testing.T) {
	t.Parallel()
	hurried, hurry := context.WithCancel(t.Context())
	hurry()
	for _, c := range []struct {
		hurry context.Context
		grace time.Duration
	}{{t.Context(), time.Millisecond}, {hurried, time.Hour}} {
		ctx, cancel := context.WithCancel(t.Context())
		g := beginStep(t, ctx, c.hurry, c.grace, "trap '' TERM", "while :; do sleep 0.01; done")
		cancel()
		if err := <-g.err; err == nil || err.Error() != "killed by SIGKILL" {
			t.Errorf("it ended with %v, want KILL", err)
		}
		g.mustLoseAll(t)
	}
}

// The process has left the process group and changed its environment.
func TestProcessesLeftByAFailedVersionAreStopped(t *testing.T) {
	t.Parallel()
	s := newSteps(context.Background(), time.Minute)
	defer s.stop()
	dir := t.TempDir()
	const daemon = `trap 'echo TERM >"$0.term"; exit' TERM; touch "$0.up"; while :; do sleep 0.01; done`
	for version, name := range map[int]string{1: "kept", 2: "failed"} {
		path := filepath.Join(dir, name)
		p := supervisor.Process{Name: "step", Env: []string{"PATH=" + os.Getenv("PATH")}, Argv: []string{"/bin/sh", "-c",
			`setsid /bin/sh -c "$0" "$1" >/dev/null 2>&1 & until [ -e "$1.up" ]; do sleep 0.01; done`, daemon, path}}
		if err := s.runStep(t.Context(), version, &p, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.endLeftBehind(version{number: 2}.isNumber)
	for name, want := range map[string]bool{"kept": false, "failed": true} {
		if _, err := os.Stat(filepath.Join(dir, name+".term")); (err == nil) != want {
			t.Errorf("%s: got TERM %t, want %t", name, err == nil, want)
		}
	}
	s.stop()
	if _, err := os.Stat(filepath.Join(dir, "kept.term")); err != nil {
		t.Error("what was kept got no TERM at the stop:", err)
	}
}
