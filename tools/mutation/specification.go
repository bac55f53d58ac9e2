package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

type trial struct {
	root, dir, overlay string
	binaries           map[string]string
}

type judgement struct {
	outcome outcome
	said    string
	took    time.Duration
}

func trySpecification(ctx context.Context, root string, rows []string, w io.Writer) error {
	began := time.Now()
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, sentences, err := newTrial(root, dir, rows)
	if err != nil {
		return err
	}

	if err := t.buildTendril(ctx); err != nil {
		return err
	}
	if err := t.buildTests(ctx, sentences); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "specification: built with %d changes, %s\n", len(sentences), time.Since(began).Round(time.Second))
	judged := t.judgeAll(ctx, sentences)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return report(w, sentences, judged, time.Since(began))
}

func newTrial(root, dir string, rows []string) (*trial, []*sentence, error) {
	sentences, files, err := prepare(root, rows)
	if err != nil {
		return nil, nil, err
	}
	overlay, err := overlaySentences(files, len(sentences)+sentences[len(sentences)-1].id, dir)
	return &trial{root: root, dir: dir, overlay: overlay, binaries: map[string]string{}}, sentences, err
}

func (t *trial) buildTendril(ctx context.Context) error {
	return t.goCommand(ctx, "build", "-overlay", t.overlay, "-o", filepath.Join(t.dir, "tendril"), "./cmd/tendril")
}

func (t *trial) buildTests(ctx context.Context, sentences []*sentence) error {
	for _, s := range sentences {
		folder := s.testName().folder
		if t.binaries[folder] != "" {
			continue
		}
		t.binaries[folder] = filepath.Join(t.dir, strings.ReplaceAll(folder, "/", "-")+".test")
		if err := t.goCommand(ctx, "test", "-c", "-overlay", t.overlay, "-o", t.binaries[folder], "./"+folder); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) goCommand(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = t.root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (t *trial) judgeAll(ctx context.Context, sentences []*sentence) []judgement {
	judged := make([]judgement, len(sentences))
	unchanged := t.unchanged(ctx, sentences)
	each(len(sentences), func(i int) {
		s := sentences[i]
		start := time.Now()
		before := unchanged[s.testName().whole()]
		if before.outcome == killed { // another subtest may have failed
			before = t.timed(ctx, s.testName())
		}
		if before.outcome == survived {
			judged[i] = t.run(ctx, s.id, s.testName(), allowed(before.took))
		} else {
			judged[i] = judgement{outcome: unexecuted, said: "without a change: " + before.said}
		}
		judged[i].took = time.Since(start)
		fmt.Fprintf(os.Stderr, "%-4s %-12s %5.1fs %s: %s\n", s.Row, judged[i].outcome, judged[i].took.Seconds(), s.Test,
			judged[i].said)
	})
	return judged
}

// unchanged runs the tests without a change. One that fails or is skipped then cannot judge changes.
func (t *trial) unchanged(ctx context.Context, sentences []*sentence) map[testName]judgement {
	results := map[testName]judgement{}
	var names []testName
	for _, s := range sentences {
		if name := s.testName().whole(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	var mu sync.Mutex
	each(len(names), func(i int) {
		result := t.timed(ctx, names[i])
		fmt.Fprintf(os.Stderr, "unchanged    %5.1fs %s: %s %s\n", result.took.Seconds(), names[i].name, result.outcome, result.said)
		mu.Lock()
		defer mu.Unlock()
		results[names[i]] = result
	})
	return results
}

func (t *trial) timed(ctx context.Context, name testName) judgement {
	start := time.Now()
	result := t.run(ctx, 0, name, 5*time.Minute)
	result.took = time.Since(start)
	return result
}

func each(n int, do func(i int)) {
	slots := make(chan struct{}, 2*runtime.NumCPU())
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			do(i)
			<-slots
		})
	}
	all.Wait()
}

// id 0 means no change. All the test's processes have exited when run returns.
func (t *trial) run(ctx context.Context, id int, name testName, limit time.Duration) judgement {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, t.binaries[name.folder], "-test.run", name.pattern(), "-test.v", "-test.timeout", "0")
	command.Dir = filepath.Join(t.root, filepath.FromSlash(name.folder))
	command.Env = append(os.Environ(), "ACCEPTANCE_BINARY="+filepath.Join(t.dir, "tendril"))
	if id > 0 {
		command.Env = append(command.Env, "TENDRIL_MUTANT="+strconv.Itoa(id))
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second

	out, err := command.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return judgement{outcome: timedOut, said: "not over within " + limit.String()}
	case errors.As(err, &failed):
		return judgement{outcome: killed, said: complaint(out)}
	case err != nil:
		return judgement{outcome: unexecuted, said: err.Error()}
	case !strings.Contains(string(out), "--- PASS: "+name.name):
		return judgement{outcome: unexecuted, said: "the test did not run: " + complaint(out)}
	}
	return judgement{outcome: survived}
}

func report(w io.Writer, sentences []*sentence, judged []judgement, took time.Duration) error {
	counts := map[outcome]int{}
	table := tabwriter.NewWriter(w, 0, 0, tableCellSpace, ' ', 0)
	for i, s := range sentences {
		counts[judged[i].outcome]++
		fmt.Fprintf(table, "%s\t%s\t%.1fs\t%s\t%s: %s\n", s.Row, judged[i].outcome, judged[i].took.Seconds(), s.Test, s.In,
			s.Change)
	}

	table.Flush()
	noticed := counts[killed] + counts[timedOut]
	fmt.Fprintf(w, "%d of %d changes noticed, %d by a time limit, in %s\n", noticed, len(sentences), counts[timedOut],
		took.Round(time.Second))
	if noticed < len(sentences) {
		return errors.New("tests do not notice that sentences of docs/specification.md are false")
	}
	return nil
}
