package bundle

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// WithDefault returns the bundle with Default in place of the Procfile that it lacks, and of the
// Buildfile if it lacks one too; the bundle itself where there is no Default.
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

// Phase is the part of a deployment that a step belongs to.
type Phase string

// The phases, in their order. Three of them are stages of hooks.
const (
	phasePrebuild         = Phase(stagePrebuild)
	phaseBuild      Phase = "build"   // runs the commands of the Buildfile
	PhaseCommand    Phase = "command" // runs the container commands of .ebextensions
	phasePredeploy        = Phase(stagePredeploy)
	PhaseStart      Phase = "start" // starts the processes, all at once, and ends when the app is ready
	PhasePostdeploy       = Phase(stagePostdeploy)
)

// Step is one thing that a deployment does. Exactly one of Argv and Shell is set.
type Step struct {
	// Phase says when. The steps of PhaseStart are processes that stay; all others run to their end, one after the
	// other, and one that fails ends the deployment.
	Phase Phase
	// Name is the name of the process, the build command or the hook's file.
	Name string
	// Argv is a program and its arguments, as absolute paths where they name files of the bundle.
	Argv []string
	// Shell is one command line for /bin/sh -c.
	Shell string
	// Dir is the working directory, absolute: the bundle's folder.
	Dir string
	// File is the file with the step, as a path below the bundle's folder with slashes, and Line where in it, from
	// 1. Without a Procfile they are the file that the command was concluded from, and 0.
	File string
	Line int
	// CommandRules apply to a step of PhaseCommand; the zero value for the others.
	CommandRules
	// Shown is the text of the command of such a step for people.
	Shown string
}

// Plan returns the steps of a deployment of the bundle, in order: prebuild hooks, the Buildfile, container commands,
// predeploy hooks, the processes of the Procfile, postdeploy hooks. It is empty for a bundle that has none of them.
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

// ConfigPlan returns the steps of a change of settings alone, in order: the confighooks of the three stages, with the
// processes, which are started anew, before the last. Container commands are not among them: Elastic Beanstalk's
// platforms of Amazon Linux 2 and later run them in deployments of an application alone.
func (b *Bundle) ConfigPlan() []Step {
	steps := append(b.hookSteps(b.ConfigHooks, stagePrebuild), b.hookSteps(b.ConfigHooks, stagePredeploy)...)
	steps = append(steps, b.startSteps()...)
	return append(steps, b.hookSteps(b.ConfigHooks, stagePostdeploy)...)
}

// commandStep is the step of a container command. A relative working directory is one below the bundle's folder.
func (b *Bundle) commandStep(c *Command) Step {
	return Step{Phase: PhaseCommand, Name: c.Name, Argv: c.Argv, Shell: c.Shell, Dir: c.FolderOf(b.Dir), File: c.File,
		Line: c.Line, CommandRules: c.CommandRules, Shown: c.Text()}
}

// SameCommands reports whether two bundles have the same container commands, wherever they stand in .ebextensions.
func (b *Bundle) SameCommands(other *Bundle) bool {
	return reflect.DeepEqual(placeless(b.ContainerCommands), placeless(other.ContainerCommands))
}

func placeless(commands []Command) []Command {
	commands = slices.Clone(commands)
	for i := range commands {
		commands[i].File, commands[i].Line = "", 0
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

// shellStep is the step of a line; one without a number was concluded from the default's file.
func (b *Bundle) shellStep(phase Phase, p Process, file string) Step {
	if p.Line == 0 && b.Default != nil {
		file = b.Default.File
	}
	return Step{Phase: phase, Name: p.Name, Shell: p.Command, Dir: b.Dir, File: file, Line: p.Line}
}

func (b *Bundle) hookSteps(hooks []Hook, stage Stage) (steps []Step) {
	for _, h := range hooks {
		if h.Stage == stage {
			argv := append(slices.Clone(h.Interpreter), filepath.Join(b.Dir, filepath.FromSlash(h.File)))
			steps = append(steps, Step{Phase: Phase(stage), Name: h.File, Argv: argv, Dir: b.Dir, File: h.File})
		}
	}
	return steps
}

// Web returns the process that is the app. The error says how to name one if the bundle doesn't.
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
		return fmt.Errorf("%s has no Procfile with a process: write one with the line %q, which is what Elastic Beanstalk "+
			"runs for %s, or give the command after --",
			b.Dir, MainProcess+": "+b.Default.Process.Command, b.Default.File)
	}
	advice := ""
	if b.Advice != "" {
		advice = " (" + b.Advice + ")"
	}
	return fmt.Errorf("%s has no Procfile with a process: write one with the line %q, or give the command "+
		"after --%s", b.Dir, "web: COMMAND", advice)
}
