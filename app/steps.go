package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"tendril/bundle"
	"tendril/logging"
	"tendril/procgroup"
)

const (
	// stepLimit bounds one hook or build command.
	stepLimit = time.Hour
	// outputWait is how long what a step left behind may hold its output open.
	outputWait = 5 * time.Second
	// groupInterval is the time between two looks whether a process group is gone.
	groupInterval = 50 * time.Millisecond
)

func beforeStart(p bundle.Phase) bool {
	return p == bundle.PhasePrebuild || p == bundle.PhaseBuild || p == bundle.PhasePredeploy
}

func afterStart(p bundle.Phase) bool { return p == bundle.PhasePostdeploy }

// stepError says which step of a deployment failed.
type stepError struct {
	phase, name, where string // where: the file and line that asked for it
	took               time.Duration
	output             []string // the last lines that it wrote
	err                error
}

// Error names the step and how it ended, but not what it wrote: that may be secret, and
// the text is shown to everybody who reaches the console.
func (e *stepError) Error() string {
	return fmt.Sprintf("%s: the %s step %s failed after %s: %v", e.where, e.phase, e.name,
		logging.Short(e.took), e.err)
}

// Unwrap returns how the step ended.
func (e *stepError) Unwrap() error { return e.err }

// stepRunner runs the hooks and build commands of versions.
type stepRunner struct {
	opts   *Options
	begins func(step string) // is called with each step's name
}

// run runs the steps of a version that wanted selects, one after the other. The first that
// fails ends it; the error is a [*stepError].
func (s *stepRunner) run(ctx context.Context, v version, wanted func(bundle.Phase) bool) error {
	if v.bundle == nil || len(v.command) > 0 {
		return nil
	}
	plan := v.bundle.Plan()
	if v.configOnly {
		plan = v.bundle.ConfigPlan()
	}
	for _, step := range plan {
		if !wanted(step.Phase) {
			continue
		}
		if err := s.runOne(ctx, v, step); err != nil {
			return err
		}
	}
	return nil
}

func (s *stepRunner) runOne(ctx context.Context, v version, step bundle.Step) error {
	s.begins(step.Name)
	s.opts.Log.Info("step started", "phase", step.Phase, "step", step.Name, "file", step.File)
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	argv := step.Argv
	if step.Shell != "" {
		argv = []string{"/bin/sh", "-c", step.Shell}
	}
	out := &stepOutput{print: func(line []byte) { s.opts.Output(string(step.Phase), "stdout", line) }}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = step.Dir, s.opts.Environ(v.bundle, s.opts.Settings.Port)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, outputWait
	began := time.Now()
	err := runGroup(ctx, s.opts.Hurry, cmd, s.opts.Settings.AppGrace)
	out.flush()
	if err == nil {
		return nil
	}
	where := step.File
	if step.Line > 0 {
		where = fmt.Sprintf("%s:%d", step.File, step.Line)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it was ended after the longest time that a step may take: %w", err)
	case s.opts.stopping():
		err = fmt.Errorf("it was ended with the environment: %w", err)
	case ctx.Err() != nil:
		err = fmt.Errorf("it was given up: %w", err)
	}
	return &stepError{string(step.Phase), step.Name, where, time.Since(began), out.kept.lines(), err}
}

// runGroup runs a command as the leader of a process group that does not outlive this
// process. When ctx is done the group gets TERM, and KILL after grace or once hurry is done.
// What the command leaves behind when it ends by itself goes on: it was asked for.
func runGroup(ctx, hurry context.Context, cmd *exec.Cmd, grace time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var thread procgroup.Thread
	defer thread.Close()
	var guard procgroup.Guard
	defer guard.Close()
	leader := procgroup.Leader{Cmd: cmd}
	cmd.SysProcAttr = procgroup.Attributes()
	guard.Watch()
	var err error
	if thread.Do(func() { err = cmd.Start() }); err != nil {
		return err
	}
	guard.Add(leader.PID(), "")
	ended := make(chan struct{})
	go func() { leader.Await(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		endGroup(hurry, &leader, grace, ended)
	}
	guard.Remove(leader.PID())
	if err = leader.Reap(); errors.Is(err, exec.ErrWaitDelay) {
		return nil // it was the command's own end
	}
	return err
}

// endGroup ends a group and returns when its leader, which must not be reaped, has ended. A
// shell ends at once, and what it runs has its grace all the same.
func endGroup(hurry context.Context, leader *procgroup.Leader, grace time.Duration, ended <-chan struct{}) {
	group := leader.PID()
	_ = syscall.Kill(-group, syscall.SIGTERM)
	_ = syscall.Kill(-group, syscall.SIGCONT) // a stopped process could not obey
	limit, cancel := context.WithTimeout(hurry, grace)
	defer cancel()
	select {
	case <-ended:
	case <-limit.Done():
	}
	look := time.NewTicker(groupInterval)
	defer look.Stop()
	for limit.Err() == nil && leader.HasOthers() {
		select {
		case <-look.C:
		case <-limit.Done():
		}
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
	<-ended
}

// stepOutput prints what a step writes, line by line, and keeps the last lines.
type stepOutput struct {
	print func(line []byte)

	mu   sync.Mutex
	part []byte
	kept lastLines
}

// Write takes the next bytes.
func (o *stepOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		end := bytes.IndexByte(o.part, '\n')
		if end < 0 && len(o.part) < 16<<10 {
			return len(p), nil
		}
		if end < 0 {
			end = len(o.part)
		}
		o.line(o.part[:end])
		o.part = o.part[min(end+1, len(o.part)):]
	}
}

func (o *stepOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.line(o.part)
		o.part = nil
	}
}

func (o *stepOutput) line(text []byte) {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text), "?"))
	o.print([]byte(clean))
	o.kept.add(clean)
}
