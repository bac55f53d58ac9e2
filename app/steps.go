package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/bundle"
	"tendril/supervisor"
)

const (
	// stepLimit bounds one hook or build command.
	stepLimit = time.Hour
	// outputWait is how long what a step left behind may hold its output open.
	outputWait = 5 * time.Second
	// stepLines is how many lines a step may write per second: as many as it can.
	stepLines = 1_000_000
)

// The steps before the start of a version, and those after it.
const beforeStart, afterStart = false, true

// stepRunner runs the hooks and build commands of versions.
type stepRunner struct {
	opts   *Options
	begins func(step string) // is called with each step's name
}

// run runs the steps of a version before or after its start, one after the other. The first
// that fails ends it; the error is a [*stepError].
func (s *stepRunner) run(ctx context.Context, v version, after bool) error {
	if v.bundle == nil || len(v.command) > 0 {
		return nil
	}
	plan := v.bundle.Plan()
	if v.configOnly {
		plan = v.bundle.ConfigPlan()
	}
	for _, step := range plan {
		if step.Phase != bundle.PhaseStart && (step.Phase == bundle.PhasePostdeploy) == after {
			if err := s.runOne(ctx, v, step); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stepRunner) runOne(ctx context.Context, v version, step bundle.Step) error {
	s.begins(step.Name)
	s.opts.Log.Info("step started", "phase", step.Phase, "step", step.Name, "file", step.File)
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	began := time.Now()
	var kept lastLines
	p := supervisor.Process{Name: "step", Shell: step.Shell, Argv: step.Argv, Dir: step.Dir,
		Env: s.opts.environ(v, s.opts.Settings.Port, false), OneOutput: true, OutputWait: outputWait}
	err := runStep(ctx, s.opts.Hurry, &p, s.opts.Settings.AppGrace, func(stream string, line []byte) {
		s.opts.Output(string(step.Phase), stream, line)
		kept.add(string(line))
	})
	if err == nil {
		return nil
	}
	where := step.File
	if step.Line > 0 {
		where = fmt.Sprintf("%s:%d", step.File, step.Line)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it took longer than a step may take and was ended: %w", err)
	case s.opts.stopping():
		err = fmt.Errorf("it was ended with the environment: %w", err)
	case ctx.Err() != nil:
		err = fmt.Errorf("it was abandoned: %w", err)
	}
	return &stepError{step.Name, kept.lines, fmt.Errorf("%s: the %s step %s failed after %s: %w", where, step.Phase,
		step.Name, time.Since(began).Round(time.Millisecond), err)}
}

// runStep runs a command as the leader of a process group that does not outlive this
// process. When ctx is done the group gets TERM, and KILL after grace or once hurry is done.
// What the command leaves behind when it ends by itself goes on: it was asked for.
func runStep(ctx, hurry context.Context, p *supervisor.Process, grace time.Duration,
	output func(stream string, line []byte),
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	runner, err := supervisor.NewRunner(p, &supervisor.Options{LinesPerSecond: stepLines})
	if err != nil {
		return err
	}
	defer runner.Close()
	run, err := runner.Start(p.Name, p.Env, output)
	if err != nil {
		return err
	}
	select {
	case <-run.Exited():
	case <-ctx.Done():
		run.End(hurry, grace)
	}
	if exit := run.Release(); exit.Code != 0 || exit.Err != nil {
		return errors.New(exit.String())
	}
	return nil
}
