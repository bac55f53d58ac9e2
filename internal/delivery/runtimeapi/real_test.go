package runtimeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/queue"
)

func TestRealProcess(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	lines := map[string][]string{}
	p := newRealPool(t, "function", nil, Options{Output: func(instance int, stream string, line []byte) {
		mu.Lock()
		defer mu.Unlock()
		lines[stream] = append(lines[stream], string(line))
	}})
	if a := invoke(t, p, "print"); string(a.Payload) != "did print" {
		t.Errorf("%+v", a)
	}
	wantError(t, invoke(t, p, "crash"), "Runtime.ExitError", "signal: killed")
	if a := invoke(t, p, "again"); string(a.Payload) != "did again" {
		t.Errorf("%+v", a)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"a line", `and \x1b[31mred`}; !slices.Equal(lines["stdout"], want) {
		t.Errorf("stdout %q, want %q", lines["stdout"], want)
	}
	cut := strings.Repeat("x", 16<<10) + " ... (10 bytes cut)"
	if want := []string{cut, "no end"}; !slices.Equal(lines["stderr"], want) {
		t.Errorf("stderr %q, want %q", lines["stderr"], want)
	}
}

func TestRealEnvironment(t *testing.T) {
	t.Parallel()
	p := newRealPool(t, "function", nil,
		Options{Name: "mine", Env: []string{"AWS_REGION=eu-north-1", "COLOR=red"}})
	var env []string
	if err := json.Unmarshal(invoke(t, p, "environment").Payload, &env); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(p.set.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"AWS_LAMBDA_FUNCTION_NAME=mine",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", "AWS_REGION=eu-north-1",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "LAMBDA_TASK_ROOT=" + p.set.Dir, "cwd=" + dir, "COLOR=red", "TZ=:UTC"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		t.Error("our own environment was inherited")
	}
}

func TestRealConcurrency(t *testing.T) {
	t.Parallel()
	const n = 4
	w := newObserver(t)
	p := newRealPool(t, "function", w, Options{Instances: n})
	var calls sync.WaitGroup
	for range n + 1 {
		calls.Go(func() { invoke(t, p, "meet") })
	}
	pids := map[int]bool{}
	var together []*reportingChild
	for range n {
		g := w.meet()
		pids[g.pid] = true
		together = append(together, g)
	}
	if len(pids) != n {
		t.Errorf("%d processes at once, want %d", len(pids), n)
	}
	for _, g := range together {
		g.conn.Write([]byte("x"))
	}
	last := w.meet()
	if !pids[last.pid] {
		t.Error("there was a fifth process")
	}
	last.conn.Write([]byte("x"))
	calls.Wait()
}

func TestRealTimeLimit(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"function", "deaf", "wrapped"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			limit := 5 * time.Second
			for !reachesTimeLimit(t, role, limit) {
				if limit *= 2; limit > 2*time.Minute {
					t.Fatalf("not all processes started within %s", limit/2)
				}
			}
		})
	}
}

// reachesTimeLimit returns false if the limit was too short for all processes to start.
func reachesTimeLimit(t *testing.T, role string, limit time.Duration) bool {
	t.Helper()
	w := newObserver(t)
	p := newRealPool(t, role, w, Options{Timeout: limit})
	answer := make(chan queue.Invocation, 1)
	go func() {
		answer <- invoke(t, p, "hang")
		w.ln.Close()
	}()
	var children []*reportingChild
	for len(children) < 3 {
		g := w.tryMeet()
		if g == nil {
			return false
		}
		children = append(children, g)
	}

	wantError(t, <-answer, "Sandbox.Timedout", fmt.Sprintf("Task timed out after %.2f seconds", limit.Seconds()))
	for _, g := range children {
		g.awaitGone()
	}
	if a := invoke(t, p, "go on"); string(a.Payload) != "did go on" {
		t.Errorf("%+v", a)
	}
	return true
}

func TestRealDeathLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	p := newRealPool(t, "function", w, Options{})
	answer := make(chan queue.Invocation)
	go func() { answer <- invoke(t, p, "leave") }()
	children := []*reportingChild{w.meet(), w.meet(), w.meet()}
	for _, g := range children {
		g.conn.Write([]byte("x"))
	}
	wantError(t, <-answer, "Runtime.ExitError", "exit status 3")
	for _, g := range children {
		g.awaitGone()
	}
}

func TestRealStopLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"function", "deaf", "wrapped"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := newObserver(t)
			p := newRealPool(t, role, w, Options{Grace: 100 * time.Millisecond})
			invoke(t, p, "family")
			children := []*reportingChild{w.meet(), w.meet(), w.meet()}
			if err := p.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			for _, g := range children {
				g.awaitGone()
			}
		})
	}
}

func TestKilledPoolLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for range 3 {
		w := newObserver(t)
		parent := exec.Command(os.Args[0])
		parent.Env = functionEnv("pool", w.ln.Addr().String())
		stdout, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		children := []*reportingChild{w.meet(), w.meet(), w.meet()}
		if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "running\n" {
			t.Fatal(line, err)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, g := range children {
			g.awaitGone()
		}
		if err := parent.Wait(); err == nil {
			t.Error("the pool was not killed")
		}
	}
}
