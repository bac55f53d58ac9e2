package environment

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepGroup is a command that runGroup runs, which leaves a process behind.
type stepGroup struct {
	err  chan error
	left *os.File // is at its end when that process is gone
}

func beginStep(t *testing.T, ctx, hurry context.Context, grace time.Duration, trap, script string) *stepGroup {
	t.Helper()
	left, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	cmd := exec.Command("/bin/sh", "-c", trap+"\nsleep 1000 >/dev/null 2>&1 & echo $!\n"+script)
	cmd.Stdout, cmd.WaitDelay, cmd.ExtraFiles = in, 10*time.Millisecond, []*os.File{held}
	g := &stepGroup{err: make(chan error, 1), left: left}
	go func() { g.err <- runGroup(ctx, hurry, cmd, grace) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err := errors.Join(err, convErr, held.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.leftAlive() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		left.Close()
	})
	return g
}

// leftAlive reports whether what the command left behind still runs.
func (g *stepGroup) leftAlive() bool {
	g.left.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := g.left.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func (g *stepGroup) mustLoseAll(t *testing.T) {
	t.Helper()
	g.left.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := g.left.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("what it started is still alive: %v", err)
	}
}

// What a command leaves behind when it ends by itself goes on, and its hold on the
// output is not waited for.
func TestGroupMayLeaveSomethingBehind(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"exit 0", "sleep 1000 & exit 0", "exit 7"} {
		g := beginStep(t, t.Context(), t.Context(), time.Minute, "", script)
		err := <-g.err
		var exit *exec.ExitError
		if errors.As(err, &exit) != (script == "exit 7") || exit == nil && err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if !g.leftAlive() {
			t.Errorf("%s: what it left behind is gone", script)
		}
	}
}

func TestGroupIsAskedToEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := beginStep(t, ctx, t.Context(), time.Hour, "trap 'exit 3' TERM", "while :; do sleep 0.01; done")
	cancel()
	var exit *exec.ExitError
	if err := <-g.err; !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v, want its own exit status 3", err)
	}
	g.mustLoseAll(t)
	if err := runGroup(ctx, t.Context(), exec.Command("/bin/true"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// A group that does not listen is killed after its grace, or at once in a hurry.
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
		var exit *exec.ExitError
		if err := <-g.err; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v, want KILL", err)
		}
		g.mustLoseAll(t)
	}
}
