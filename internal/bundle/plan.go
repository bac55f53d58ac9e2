package bundle

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// WithDefault returns a copy that starts the app as Default does, keeping a Buildfile's commands. Without Default, it
// returns b.
func (b *Bundle) WithDefault() *Bundle {
	if b.Default == nil {
		return b
	}
	with := *b
	with.Processes = []Process{b.Default.Process}
	if len(b.Build) == 0 {
		with.Build = b.Default.Build
	}
	return &with
}

// Phase is a part of a deployment.
type Phase string

// The phases, in order.
const (
	phasePrebuild         = Phase(stagePrebuild)
	phaseBuild      Phase = "build"
	PhaseCommand    Phase = "command"
	phasePredeploy        = Phase(stagePredeploy)
	PhaseStart      Phase = "start"
	PhasePostdeploy       = Phase(stagePostdeploy)
)

// Step is one action of a deployment. Exactly one of Argv and Shell is set.
type Step struct {
	// Steps of PhaseStart run together. Other steps run one after another; a failure before the start aborts the
	// deployment, unless IgnoreErrors is set.
	Phase Phase
	Name  string
	Argv  []string
	Shell string
	Dir   string
	// File is slash-separated and relative to the bundle's folder, or the path of a legacy hook. Line is 0 for hooks
	// and steps from Default.
	File string
	Line int
	CommandRules
	Shown string
}

// Plan returns the steps of a deployment, in order.
func (b *Bundle) Plan() []Step {
	steps := b.hookSteps(b.Hooks, stagePrebuild)
	for _, c := range b.Build {
		steps = append(steps, b.shellStep(phaseBuild, c, buildfileName))
	}
	for i := range b.ContainerCommands {
		steps = append(steps, b.commandStep(&b.ContainerCommands[i]))
	}
	steps = append(steps, b.hookSteps(b.Hooks, stagePredeploy)...)
	steps = append(steps, b.startSteps()...)
	return append(steps, b.hookSteps(b.Hooks, stagePostdeploy)...)
}

// ConfigPlan returns the steps of a deployment that only changes settings: configuration hooks but no container
// commands, as on Elastic Beanstalk since Amazon Linux 2.
func (b *Bundle) ConfigPlan() []Step {
	steps := append(b.hookSteps(b.ConfigHooks, stagePrebuild), b.hookSteps(b.ConfigHooks, stagePredeploy)...)
	steps = append(steps, b.startSteps()...)
	return append(steps, b.hookSteps(b.ConfigHooks, stagePostdeploy)...)
}

func (b *Bundle) commandStep(c *Command) Step {
	return Step{Phase: PhaseCommand, Name: c.Name, Argv: c.Argv, Shell: c.Shell, Dir: c.FolderOf(b.Dir), File: c.File,
		Line: c.Line, CommandRules: c.CommandRules, Shown: c.Text()}
}

// SameCommands reports whether two bundles have the same container commands, regardless of their files and lines.
func (b *Bundle) SameCommands(other *Bundle) bool {
	return reflect.DeepEqual(placeless(b.ContainerCommands), placeless(other.ContainerCommands))
}

func placeless(commands []Command) []Command {
	commands = slices.Clone(commands)
	for i := range commands {
		commands[i].Place = Place{}
	}
	return commands
}

func (b *Bundle) startSteps() []Step {
	var steps []Step
	for _, p := range b.Processes {
		steps = append(steps, b.shellStep(PhaseStart, p, procfileName))
	}
	return steps
}

func (b *Bundle) shellStep(phase Phase, p Process, file string) Step {
	if p.Line == 0 && b.Default != nil {
		file = b.Default.File
	}
	return Step{Phase: phase, Name: p.Name, Shell: p.Command, Dir: b.Dir, File: file, Line: p.Line}
}

func (b *Bundle) hookSteps(hooks []Hook, stage Stage) (steps []Step) {
	for _, h := range hooks {
		if h.Stage == stage {
			argv := append(slices.Clone(h.Interpreter), filepath.Join(b.Dir, h.File))
			steps = append(steps, Step{Phase: Phase(stage), Name: h.File, Argv: argv, Dir: b.Dir, File: h.File})
		}
	}
	return steps
}

// Web returns the app's main process. The error explains how to define one.
func (b *Bundle) Web() (Process, error) {
	if len(b.Processes) == 0 {
		return Process{}, b.noProcess()
	}
	if b.Processes[0].Name == MainProcess {
		return b.Processes[0], nil
	}
	names := make([]string, len(b.Processes))
	for i, p := range b.Processes {
		names[i] = p.Name
	}
	return Process{}, fmt.Errorf("%s has no process %q, only %s: the process that gets the messages must be called %[2]q",
		filepath.Join(b.Dir, procfileName), MainProcess, strings.Join(names, ", "))
}

func (b *Bundle) noProcess() error {
	if b.Default != nil {
		return fmt.Errorf("%s has no Procfile with a process: write one with the line %q, Elastic Beanstalk's "+
			"default for %s, or add the command after --",
			b.Dir, MainProcess+": "+b.Default.Process.Command, b.Default.File)
	}
	advice := ""
	if b.Advice != "" {
		advice = " (" + b.Advice + ")"
	}
	return fmt.Errorf("%s has no Procfile with a process: write one with the line %q, or add the command "+
		"after --%s", b.Dir, "web: COMMAND", advice)
}
