package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// What is left behind has its own handling of signals, not the shell's, when it is told of.
	const leave = `/bin/sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" >/dev/null 2>&1 &
until [ -s "$0" ]; do sleep 0.01; done; cat "$0"`
	cmd := exec.Command("/bin/sh", "-c", trap+"\n"+leave+"\n"+script, filepath.Join(t.TempDir(), "pid"))
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

// A shell ends at once when it is asked to, and what it runs has the grace all the same.
func TestGroupMembersHaveTheGraceWhenTheirShellIsGone(t *testing.T) {
	t.Parallel()
	const child = `trap 'sleep 0.2; echo cleaned up; exit' TERM; echo ready; while :; do sleep 0.01; done`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	cmd := exec.Command("/bin/sh", "-c", "/bin/sh -c \"$0\"; exit 1", child)
	cmd.Stdout, cmd.WaitDelay = in, 10*time.Second
	said := make(chan string)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if said <- lines.Text(); lines.Text() == "ready" {
				cancel()
			}
		}
		close(said)
	}()
	go func() { _ = runGroup(ctx, t.Context(), cmd, time.Hour); in.Close() }()
	var all []string
	for line := range said {
		all = append(all, line)
	}
	if want := []string{"ready", "cleaned up"}; !slices.Equal(all, want) {
		t.Errorf("it said %q, want %q", all, want)
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
