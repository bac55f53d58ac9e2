package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// limits group a mutant's tests into processes: tests faster than a limit share a process; each slower test gets its
// own.
var limits = []time.Duration{30 * time.Millisecond, 300 * time.Millisecond}

type suite struct {
	program *program
	binary  string
	flags   []string
	tests   []test
	failing []string
}

type test struct {
	name     string
	time     time.Duration
	executes map[int]bool
}

type outcome string

const (
	killed     outcome = "killed"
	timedOut   outcome = "timed out" // counts as detected
	survived   outcome = "survived"
	unexecuted outcome = "not executed"
)

func build(ctx context.Context, p *program, c core, dir string) (*suite, error) {
	overlay, err := p.overlay(dir)
	if err != nil {
		return nil, err
	}
	s := &suite{program: p, binary: filepath.Join(dir, "tests"), flags: []string{"-test.short", "-test.failfast"}}
	command := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", s.binary, ".")
	command.Dir = p.dir
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the tests of %s with its mutants: %w\n%s", c.pkg, err, out)
	}

	uses, err := usesRapid(p.dir)
	if err != nil {
		return nil, err
	}
	if uses { // the same cases each time, without shrinking and failure files
		s.flags = append(s.flags, "-rapid.seed=1", "-rapid.shrinktime=1ns", "-rapid.nofailfile")
	}
	return s, s.record(ctx, dir, c)
}

func usesRapid(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		if bytes.Contains(content, []byte(`"pgregory.net/rapid"`)) {
			return true, nil
		}
	}
	return false, nil
}

// Failing tests cannot judge mutants, so record excludes and reports them.
func (s *suite) record(ctx context.Context, dir string, c core) error {
	list, err := exec.CommandContext(ctx, s.binary, "-test.list", "^(Test|Fuzz|Example)").Output()
	if err != nil {
		return fmt.Errorf("listing the tests of %s: %w", c.pkg, err)
	}

	for _, name := range strings.Fields(string(list)) {
		if c.skip != "" && regexp.MustCompile(c.skip).MatchString(name) {
			continue
		}
		record := filepath.Join(dir, name)
		start := time.Now()
		result, err := s.run(ctx, 0, record, 5*time.Minute, name)
		if err != nil {
			return err
		}
		if result != survived {
			s.failing = append(s.failing, name)
			continue
		}
		t := test{name: name, time: time.Since(start), executes: map[int]bool{}}
		executed, err := os.ReadFile(record)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, line := range strings.Fields(string(executed)) {
			id, err := strconv.Atoi(line)
			if err != nil {
				return fmt.Errorf("reading %s: %w", record, err)
			}
			t.executes[id] = true
		}
		s.tests = append(s.tests, t)
	}

	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.time, b.time) })
	return nil
}

func (s *suite) judge(ctx context.Context, m mutant) (outcome, error) {
	result := unexecuted
	for _, group := range groups(s.tests, m.id) {
		var names []string
		var total time.Duration
		for _, t := range group {
			names, total = append(names, t.name), total+t.time
		}
		var err error
		result, err = s.run(ctx, m.id, "", allowed(total), names...)
		if result == timedOut { // the cause may also be other load on the machine
			result, err = s.run(ctx, m.id, "", patience*allowed(total), names...)
		}
		if result != survived || err != nil {
			return result, err
		}
	}
	return result, nil
}

func groups(tests []test, id int) [][]test {
	quick := make([][]test, len(limits))
	var slow [][]test
	for _, t := range tests {
		if !t.executes[id] {
			continue
		}
		if i := slices.IndexFunc(limits, func(l time.Duration) bool { return t.time < l }); i >= 0 {
			quick[i] = append(quick[i], t)
		} else {
			slow = append(slow, []test{t})
		}
	}
	return append(slices.DeleteFunc(quick, func(g []test) bool { return len(g) == 0 }), slow...)
}

// patience is the factor for the limit when a test that timed out is repeated.
const patience = 6

func allowed(t time.Duration) time.Duration { return 5*time.Second + 4*t }

func (s *suite) run(ctx context.Context, id int, record string, limit time.Duration, names ...string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, s.binary, append([]string{"-test.run", "^(" + strings.Join(names, "|") + ")$",
		"-test.timeout", "0"}, s.flags...)...)
	command.Dir = s.program.dir
	command.Env = append(os.Environ(), "TENDRIL_MUTANT="+strconv.Itoa(id), "TENDRIL_MUTANT_RECORD="+record)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }

	err := command.Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut, nil
	case errors.As(err, &failed) && ctx.Err() == nil:
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // a panicking test may have left processes behind
		return killed, nil
	}
	return "", err
}
