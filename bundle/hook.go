package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	platformName = ".platform"
	// maxHooks bounds how many files one stage may have.
	maxHooks = 200
	// maxShebang bounds the first line of a script, as systems do.
	maxShebang = 256
)

// Stage is a point of a deployment at which hooks run.
type Stage string

// The stages, in their order.
const (
	// Prebuild comes before the commands of the Buildfile.
	Prebuild Stage = "prebuild"
	// Predeploy comes after them and before the app is started.
	Predeploy Stage = "predeploy"
	// Postdeploy comes after the app was started.
	Postdeploy Stage = "postdeploy"
)

func stages() []Stage { return []Stage{Prebuild, Predeploy, Postdeploy} }

// Hook is one program of the bundle that a deployment runs.
type Hook struct {
	// Stage says when.
	Stage Stage
	// File is the path below the bundle's folder, with slashes:
	// ".platform/hooks/prebuild/10-migrate.sh".
	File string
	// Interpreter is the program and the argument that take the file, where the
	// file cannot be started by itself for want of the execute permission or of
	// a first line that names them; empty where it can.
	Interpreter []string
}

// Argv returns the program and its arguments, given the bundle's folder.
func (h Hook) Argv(dir string) []string {
	return append(append([]string{}, h.Interpreter...), filepath.Join(dir, filepath.FromSlash(h.File)))
}

// readPlatform lists the hooks of .platform, and what else is in there.
func (o *reader) readPlatform() error {
	for _, kind := range []struct {
		name string
		into *[]Hook
	}{{"hooks", &o.bundle.Hooks}, {"confighooks", &o.bundle.ConfigHooks}} {
		for _, stage := range stages() {
			if err := o.readStage(path.Join(platformName, kind.name, string(stage)), stage, kind.into); err != nil {
				return err
			}
		}
		o.strayStages(path.Join(platformName, kind.name))
	}
	return o.nameInPlatform()
}

// nameInPlatform names what is in .platform beside the hooks.
func (o *reader) nameInPlatform() error {
	entries, err := os.ReadDir(filepath.Join(o.dir, platformName))
	if err != nil {
		return fmt.Errorf("listing %s: %w", platformName, err)
	}
	for _, e := range entries {
		switch name := e.Name(); name {
		case "hooks", "confighooks", ".gitkeep", ".DS_Store":
		case "nginx", "httpd":
			o.notUsed(path.Join(platformName, name), noProxy)
		default:
			o.notUsed(path.Join(platformName, name), "only the folders hooks and confighooks are read: nothing is done about it")
		}
	}
	return nil
}

// strayStages names folders that stand for no stage, such as "pre-build".
func (o *reader) strayStages(below string) {
	entries, _ := os.ReadDir(filepath.Join(o.dir, filepath.FromSlash(below))) // absent: no hooks
	for _, e := range entries {
		switch Stage(e.Name()) {
		case Prebuild, Predeploy, Postdeploy:
		default:
			if !strings.HasPrefix(e.Name(), ".") {
				o.notUsed(path.Join(below, e.Name()), "this is no stage: hooks belong in prebuild, predeploy or postdeploy")
			}
		}
	}
}

func (o *reader) readStage(below string, stage Stage, into *[]Hook) error {
	entries, err := os.ReadDir(filepath.Join(o.dir, filepath.FromSlash(below)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listing the hooks: %w", err)
	case len(entries) > maxHooks:
		o.refuse(filepath.Join(o.dir, filepath.FromSlash(below)), fmt.Sprintf("there are more than %d hooks", maxHooks),
			"let one script do the work of several")
		return nil
	}
	for _, e := range entries {
		file := path.Join(below, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				o.notUsed(file, "hidden files are not run: give it a name without the dot if it is a hook")
			}
			continue // .gitkeep, .DS_Store
		}
		h, ok, err := o.readHook(file, stage)
		if err != nil {
			return err
		}
		if ok {
			*into = append(*into, h)
		}
	}
	return nil
}

// readHook looks at how a file begins, to tell how it can be started.
func (o *reader) readHook(file string, stage Stage) (Hook, bool, error) {
	at := filepath.Join(o.dir, filepath.FromSlash(file))
	info, err := os.Stat(at)
	if err != nil {
		return Hook{}, false, fmt.Errorf("reading the hooks: %w", err)
	}
	if !info.Mode().IsRegular() {
		o.notUsed(file, "this is no file: hooks are programs and scripts")
		return Hook{}, false, nil
	}
	begin, err := readBeginning(at)
	if err != nil {
		return Hook{}, false, err
	}
	h := Hook{Stage: stage, File: file}
	executable := info.Mode()&0o111 != 0
	line, script := shebang(begin)
	switch {
	case script && strings.HasSuffix(line, "\r"):
		o.refuseLine(at, 1, "the line ends in CR and LF: the system would look for a program whose name ends in CR",
			"save the script with the line ends of Unix (LF), for instance with dos2unix")
		return h, false, nil
	case script && len(strings.Fields(line)) == 0:
		o.refuseLine(at, 1, `no program follows "#!"`, `write it there, for instance "#!/bin/sh"`)
		return h, false, nil
	case script && !executable:
		h.Interpreter = interpreter(line)
		o.warn(at, "the file has no execute permission: it is handed to "+h.Interpreter[0], "chmod +x it")
	case script:
	case !executable:
		o.notUsed(file, "this is neither executable nor a script: it is not run; chmod +x it if it is a hook")
		return h, false, nil
	case isText(begin):
		h.Interpreter = []string{"/bin/sh"}
		o.warn(at, `the script names no program in its first line: it is handed to /bin/sh`,
			`begin it with "#!/bin/sh", or whatever reads it`)
	}
	return h, true, nil
}

func readBeginning(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the hooks: %w", err)
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, maxShebang))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return begin, nil
}

// shebang returns what follows "#!" in the first line.
func shebang(begin []byte) (line string, script bool) {
	rest, script := bytes.CutPrefix(begin, []byte("#!"))
	first, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(first), script
}

// interpreter splits a first line as systems do: a program, and all the rest
// as one argument.
func interpreter(line string) []string {
	line = strings.Trim(line, " \t")
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return []string{line}
	}
	return []string{line[:end], strings.Trim(line[end:], " \t")}
}

// isText reports whether a file that begins so is a text; a character may be
// cut at the end.
func isText(begin []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(begin) {
			break
		}
		begin = begin[:len(begin)-1]
	}
	return utf8.Valid(begin) && bytes.IndexByte(begin, 0) < 0
}

// Phase is the part of a deployment that a step belongs to.
type Phase string

// The phases, in their order. Three of them are stages of hooks.
const (
	// PhasePrebuild runs the prebuild hooks.
	PhasePrebuild = Phase(Prebuild)
	// PhaseBuild runs the commands of the Buildfile.
	PhaseBuild Phase = "build"
	// PhasePredeploy runs the predeploy hooks.
	PhasePredeploy = Phase(Predeploy)
	// PhaseStart starts the processes, all at once, and goes on when the app is
	// ready.
	PhaseStart Phase = "start"
	// PhasePostdeploy runs the postdeploy hooks.
	PhasePostdeploy = Phase(Postdeploy)
)

// Step is one thing that a deployment does. Exactly one of Argv and Shell says
// what to run.
type Step struct {
	// Phase says when. The steps of PhaseStart are processes that stay; all
	// others run to their end, one after the other, and one that fails ends the
	// deployment.
	Phase Phase
	// Name is that of the process, the build command or the hook's file.
	Name string
	// Argv is a program and its arguments, as absolute paths where they name files
	// of the bundle.
	Argv []string
	// Shell is one command line for /bin/sh -c.
	Shell string
	// Dir is the working directory, absolute: the bundle's folder.
	Dir string
	// File is what asked for the step, as a path below the bundle's folder with
	// slashes, and Line where in it, from 1. Without a Procfile they are the file
	// that the command was concluded from, and 0.
	File string
	Line int
}

// Plan returns what a deployment of the bundle does, in order: prebuild hooks,
// the Buildfile, predeploy hooks, the processes of the Procfile, postdeploy
// hooks. It is empty for a bundle that has none of them.
func (b *Bundle) Plan() []Step {
	steps := b.hookSteps(b.Hooks, Prebuild)
	for _, c := range b.Build {
		steps = append(steps, b.shellStep(PhaseBuild, c, buildfileName))
	}
	steps = append(steps, b.hookSteps(b.Hooks, Predeploy)...)
	steps = append(steps, b.startSteps()...)
	return append(steps, b.hookSteps(b.Hooks, Postdeploy)...)
}

// ConfigPlan returns what a change of settings alone does, in order: the
// confighooks of the three stages, with the processes, which are started anew,
// before the last.
func (b *Bundle) ConfigPlan() []Step {
	steps := append(b.hookSteps(b.ConfigHooks, Prebuild), b.hookSteps(b.ConfigHooks, Predeploy)...)
	steps = append(steps, b.startSteps()...)
	return append(steps, b.hookSteps(b.ConfigHooks, Postdeploy)...)
}

func (b *Bundle) startSteps() []Step {
	var steps []Step
	for _, p := range b.Processes {
		steps = append(steps, b.shellStep(PhaseStart, p, procfileName))
	}
	return steps
}

// shellStep is the step of a line; one without a number was concluded from the
// default's file.
func (b *Bundle) shellStep(phase Phase, p Process, file string) Step {
	if p.Line == 0 && b.Default != nil {
		file = b.Default.File
	}
	return Step{Phase: phase, Name: p.Name, Shell: p.Command, Dir: b.Dir, File: file, Line: p.Line}
}

func (b *Bundle) hookSteps(hooks []Hook, stage Stage) []Step {
	var steps []Step
	for _, h := range hooks {
		if h.Stage == stage {
			steps = append(steps, Step{Phase: Phase(stage), Name: h.File, Argv: h.Argv(b.Dir), Dir: b.Dir, File: h.File})
		}
	}
	return steps
}
