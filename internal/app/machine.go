package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tendril/internal/bundle"
	"tendril/internal/bundle/machine"
	"tendril/internal/config"
	"tendril/internal/supervisor"
)

const machinePhase = "machine"

func (o *Options) appliesMachine(v version) bool {
	return o.Settings().MachineSections == config.MachineApply && v.isFromBundle() && !v.configOnly
}

func (o *Options) sameMachine(b, other *bundle.Bundle) bool {
	return o.Settings().MachineSections != config.MachineApply || b.Machine.Content == other.Machine.Content
}

func (s *stepRunner) prepareMachine(ctx context.Context, v version) error {
	if !s.opts.appliesMachine(v) {
		return nil
	}
	if err := linkGetConfig(v.bundle); err != nil {
		return &processError{"get-config", &lastLines{}, fmt.Errorf("linking get-config: %w", err)}
	}
	steps := machine.Plan(&v.bundle.Machine)
	system := &machineSystem{runner: s, version: v.number, environ: s.opts.processEnviron(v, s.opts.Settings().Port, false)}
	applier := machine.NewApplier(system, steps)
	for i := range steps {
		if err := s.changeMachine(ctx, applier, system, &steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stepRunner) changeMachine(ctx context.Context, applier *machine.Applier, system *machineSystem,
	step *machine.Step,
) error {
	title := step.Title()
	s.begins(title)
	run := s.startStep(machinePhase, title, step.Place.File)
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()

	system.step, system.detached = run, step.Section != "commands"
	outcome, err := applier.Apply(ctx, step)
	if err != nil {
		return run.failure(ctx, step.Place.String()+": ", err)
	}
	run.logFinished("outcome", string(outcome))
	return nil
}

type machineSystem struct {
	runner  *stepRunner
	version int
	environ []string
	// The fields below belong to the current step. detached lets the step start services that outlive tendril.
	step     *stepRun
	detached bool
}

func (m *machineSystem) Run(ctx context.Context, c *machine.Call) (string, error) {
	p := supervisor.Process{Name: machinePhase, Argv: c.Argv, Dir: cmp.Or(c.Dir, "/"), OneOutput: !c.Quiet,
		OutputWait: outputWait, Detached: m.detached}
	p.Env = c.Env
	if !c.HasEnv {
		p.Env = withVariables(slices.Clone(m.environ), c.Env)
	}
	if c.Shell != "" {
		p.Argv = shellOf(c.Shell)
	}

	var mu sync.Mutex // separate goroutines read stdout and stderr
	var answer strings.Builder
	err := m.runner.runStep(ctx, m.version, &p, func(stream string, line []byte) {
		switch {
		case !c.Quiet:
			m.step.output(stream, line)
		case stream == "stdout":
			mu.Lock()
			defer mu.Unlock()
			answer.Write(append(line, '\n'))
		}
	})

	mu.Lock()
	defer mu.Unlock()
	return answer.String(), err
}

func (m *machineSystem) Has(program string) bool {
	if filepath.IsAbs(program) {
		_, err := os.Stat(program)
		return err == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}
