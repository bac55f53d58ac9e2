package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/supervisor"
)

const (
	stepLimit = time.Hour
	// outputWait is how long processes left behind by a step may keep its output open.
	outputWait         = 5 * time.Second
	stepLinesPerSecond = 1_000_000
)

const beforeStart, afterStart = false, true

type stepRunner struct {
	opts   *Options
	begins func(step string)
	legacy *legacyPlatform

	mu       sync.Mutex
	commands *supervisor.Runner
}

func (s *stepRunner) run(ctx context.Context, v version, after bool) error {
	if !v.isFromBundle() {
		return nil
	}
	if !after {
		if err := s.prepareMachine(ctx, v); err != nil {
			return err
		}
		if err := s.legacy.link("staging", v); err != nil {
			return err
		}
	}
	steps, err := s.legacy.steps(v, after) // prepareMachine may have installed hooks
	if err != nil {
		return err
	}
	return s.runAll(ctx, v, append(steps, bundleSteps(v, after)...))
}

func (s *stepRunner) runAll(ctx context.Context, v version, steps []bundle.Step) error {
	leaders, err := s.leaderCommandsOf(v, steps)
	if err != nil {
		return err
	}
	defer leaders.giveUp()
	for i := range steps {
		step := &steps[i]
		s.begins(step.Name)
		if err := leaders.run(ctx, step, func(ctx context.Context) error { return s.runOne(ctx, v, step) }); err != nil {
			return err
		}
	}
	return nil
}

func bundleSteps(v version, after bool) []bundle.Step {
	plan := v.bundle.Plan()
	if v.configOnly {
		plan = v.bundle.ConfigPlan()
	}
	return slices.DeleteFunc(plan, func(step bundle.Step) bool {
		isAfter := step.Phase == bundle.PhasePostdeploy
		return step.Phase == bundle.PhaseStart || isAfter != after
	})
}

func (s *stepRunner) runOne(ctx context.Context, v version, step *bundle.Step) error {
	run := s.startStep(string(step.Phase), step.Name, step.File)
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()

	p := supervisor.Process{Name: strings.ReplaceAll(run.phase, " ", "-"), Shell: step.Shell, Argv: step.Argv, Dir: step.Dir,
		Env: withVariables(s.opts.processEnviron(v, s.opts.Settings().Port, false), step.Env), OneOutput: true,
		OutputWait: outputWait}

	err := s.runCommand(ctx, v.number, step, &p, run.output)
	if err == nil {
		run.logFinished()
		return nil
	}
	if ctx.Err() == nil && step.IgnoreErrors {
		s.opts.Log.Warn("command failed, its errors are ignored", "step", step.Name, "file", step.File, "err", err)
		return nil
	}

	return run.failure(ctx, placeOf(step), err)
}

// A hook's name is its file, so it needs no prefix.
func placeOf(step *bundle.Step) string {
	switch {
	case step.Line > 0:
		return fmt.Sprintf("%s:%d: ", step.File, step.Line)
	case step.File == step.Name:
		return ""
	}
	return step.File + ": "
}

type stepRun struct {
	opts        *Options
	phase, name string
	began       time.Time
	last        lastLines
}

func (s *stepRunner) startStep(phase, name, file string) *stepRun {
	attrs := []any{"phase", phase, "step", name}
	if file != name {
		attrs = append(attrs, "file", file)
	}
	s.opts.Log.Info("step started", attrs...)
	return &stepRun{opts: s.opts, phase: phase, name: name, began: time.Now()}
}

func (r *stepRun) output(stream string, line []byte) {
	r.opts.Output(r.phase, stream, line)
	r.last.add(string(line))
}

func (r *stepRun) logFinished(attrs ...any) {
	attrs = append([]any{"phase", r.phase, "step", r.name}, attrs...)
	r.opts.Log.Info("step finished", append(attrs, "duration_ms", time.Since(r.began).Milliseconds())...)
}

func (r *stepRun) failure(ctx context.Context, place string, err error) error {
	return &processError{r.name, &r.last, fmt.Errorf("%sthe %s step %s failed after %s: %w", place, r.phase, r.name,
		time.Since(r.began).Round(time.Millisecond), r.opts.withStopCause(ctx, err))}
}

func (o *Options) withStopCause(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("it exceeded the time limit of a step and was killed: %w", err)
	case o.stopping():
		return fmt.Errorf("it was killed because the environment stopped: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("it was abandoned (%w): %w", context.Cause(ctx), err)
	}
	return err
}

func (s *stepRunner) runCommand(ctx context.Context, version int, step *bundle.Step, p *supervisor.Process,
	output func(stream string, line []byte),
) error {
	if step.Phase == bundle.PhaseCommand && p.Shell != "" {
		p.Shell, p.Argv = "", shellOf(step.Shell)
	}
	if step.Test != "" {
		test := *p
		test.Shell, test.Argv = "", shellOf(step.Test)
		err := s.runStep(ctx, version, &test, output)
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Info("command skipped", "step", step.Name, "reason", "its test failed", "err", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.runStep(ctx, version, p, output)
}

// shellOf prefers bash, because sh is bash on Elastic Beanstalk's platforms.
func shellOf(text string) []string {
	const bash = "/bin/bash"
	if info, err := os.Stat(bash); err == nil && info.Mode().IsRegular() {
		return []string{bash, "-c", text}
	}
	return []string{"/bin/sh", "-c", text}
}

func withVariables(env variables, own []string) []string {
	for _, entry := range own {
		name, value, _ := strings.Cut(entry, "=")
		env.set(name, value)
	}
	return env
}

// When ctx is done, runStep sends SIGTERM to the command's process group, and SIGKILL after the grace period. Processes
// that the command leaves behind run until [stepRunner.endLeftBehind].
func (s *stepRunner) runStep(ctx context.Context, version int, p *supervisor.Process,
	output func(stream string, line []byte),
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}

	run, err := s.runner().Start(p, output)
	if err != nil {
		return err
	}

	select {
	case <-run.Exited():
	case <-ctx.Done():
		run.End(s.opts.Hurry, s.opts.Settings().AppGrace)
	}
	if exit := run.Release(version); exit.Code != 0 || exit.Err != nil {
		return errors.New(exit.String())
	}
	return nil
}

func (s *stepRunner) runner() *supervisor.Runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commands == nil {
		s.commands = supervisor.NewRunner(&supervisor.Options{LinesPerSecond: stepLinesPerSecond,
			Events: supervisor.Events{LinesDropped: s.linesDropped}})
	}
	return s.commands
}

func (s *stepRunner) linesDropped(e supervisor.LinesDropped) {
	e.Process = strings.ReplaceAll(e.Process, "-", " ")
	s.opts.Counters.LinesDropped(e)
}

func (s *stepRunner) endLeftBehind(owned func(version int) bool) {
	s.mu.Lock()
	runner := s.commands
	s.mu.Unlock()
	if runner != nil {
		runner.EndLeftBehind(s.opts.Hurry, s.opts.Settings().AppGrace, owned)
	}
}

func (s *stepRunner) stop() {
	s.endLeftBehind(func(int) bool { return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commands != nil {
		s.commands.Close()
		s.commands = nil
	}
}
