package bundle

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"tendril/internal/config/yamlfile"
)

const cronName = "cron.yaml"

// MainProcess is the name of the process that is the app: the one that listens on PORT and gets the messages.
const MainProcess = "web"

// Bundle is the content of a source bundle's files about the app in it.
type Bundle struct {
	// Dir is the bundle's folder as an absolute path.
	Dir string
	// Called is the name that counts in the place of the folder's; "" for the folder's. Open leaves it empty.
	Called string
	// Archive is the absolute path of the archive that was unpacked as Dir; "" if Dir is the source. Open leaves it empty.
	Archive string
	// Processes are the lines of the Procfile: web first where there is one,
	// then the others in the order of the file. Empty without a Procfile.
	Processes []Process
	// Build are the lines of the Buildfile in its order: each is run to its end
	// before the app is started. Empty without a Buildfile.
	Build []Process
	// Default is the command that one of Elastic Beanstalk's platforms would run without a Procfile; nil if there is a
	// Procfile, and where nothing can be told. It is in Processes and Plan only after WithDefault.
	Default *Default
	// Cron is the path of the bundle's cron.yaml; "" when it has none.
	Cron string
	// ContainerCommands are the container commands of .ebextensions in the order in which they run: by file, then by name.
	ContainerCommands []Command
	// Machine has the sections of .ebextensions about the machine. They are applied only on request.
	Machine Machine
	// Settings are the options that .ebextensions and env.yaml set, from the weakest to the strongest: the last one
	// of an option is in force. A value of "" sets an option to nothing, unless the setting is Computed.
	Settings []Setting
	// Resources are the resources that CloudFormation would create for the configuration files, in their order. Nothing here creates
	// them.
	Resources []Resource
	// Manifest is env.yaml's part about the environment.
	Manifest Manifest
	// Links are the variables through which env.yaml tells the app of other environments, in the order of the file.
	Links []Link
	// Hooks are the programs of .platform/hooks, by stage and then by name.
	Hooks []Hook
	// ConfigHooks are the programs of .platform/confighooks, for a change of settings alone.
	ConfigHooks []Hook
	// Warnings are flaws that do not stop a deployment, in the order of the files.
	Warnings []Problem
	// Unsupported names what Elastic Beanstalk would act on and tendril does
	// not, sorted by file and line. Empty when everything counts.
	Unsupported []Finding
	// Advice helps someone who looks for the app in vain; may be "".
	Advice string
}

// Process is one line of a Procfile or of a Buildfile.
type Process struct {
	// Name is 1 to 64 letters, digits, "_" and "-"; unique in its file.
	Name string
	// Command is the rest of the line for a shell, never empty.
	Command string
	// Line is where the file says so, from 1; 0 for one that no file says.
	Line int
}

// Name returns a name for the environment: env.yaml's, else Called, else the folder's. Characters other than letters,
// digits, "_" and "-" become "-", and it is cut at 64 characters. It is "" when nothing is left, as for "/".
func (b *Bundle) Name() string {
	name := cmp.Or(b.Manifest.Name, b.Called, filepath.Base(b.Dir))
	clean := dashed(name, "")
	return strings.Trim(clean[:min(len(clean), maxName)], "-")
}

// dashed replaces every character but letters, digits, "_", "-" and the characters of also by a dash.
func dashed(name, also string) string {
	return strings.Map(func(r rune) rune {
		if isNameByte(r) || strings.ContainsRune(also, r) {
			return r
		}
		return '-'
	}, name)
}

// Default is the command that one of Elastic Beanstalk's platforms runs if a bundle has no Procfile.
type Default struct {
	// Platform is "Node.js", "Python", "Go", "Java" or "Ruby".
	Platform string
	// File is the file that it was concluded from, as a path below the bundle's folder with slashes.
	File string
	// Process is the app, called web; its Line is 0.
	Process Process
	// Build are commands to run before; mostly none. Their Line is 0.
	Build []Process
}

// Setting is one option that the bundle sets.
type Setting struct {
	// Namespace and Option name it as Elastic Beanstalk does; neither is "".
	Namespace, Option string
	// Value is the text as written, whatever type YAML sees in it: 010 and yes stay as they are. It is "" where the
	// file gives none, and JSON where it gives a map or a list. It may be secret: print Shown.
	Value string
	// Computed means that CloudFormation computes the value, which is not known here; Value is "" then.
	Computed bool
	// File is the path as the bundle was opened with.
	File string
	// Line is where the value stands, from 1.
	Line int
}

// TypeAlarm is the type of a resource that is an alarm of CloudWatch.
const TypeAlarm = "AWS::CloudWatch::Alarm"

// Resource is one entry below Resources in a configuration file.
type Resource struct {
	// Name is the logical name, unique in a bundle of Elastic Beanstalk; not checked here.
	Name string
	// Type is CloudFormation's, such as [TypeAlarm]; "" where the file gives none.
	Type string
	// Properties are as written, with CloudFormation's functions in them; may be nil.
	Properties *yamlfile.Node
	// File is the path as the bundle was opened with.
	File string
	// Line is where the name stands, from 1.
	Line int
}

// Manifest is the part of the bundle's env.yaml about the environment. The zero
// value stands for a bundle without one.
type Manifest struct {
	// Name is the environment's name, without the "+" of a group; may be "".
	Name string
	// NameLine is where the name stands, from 1; 0 when there is none.
	NameLine int
}

// Link is one variable that leads the app to another environment.
type Link struct {
	// Variable is the name of the environment variable, never "".
	Variable string
	// Environment is the name of the environment that it leads to, without the
	// "+" of a group; never "". A link to a worker gives its queue.
	Environment string
	// File is the path as the bundle was opened with.
	File string
	// Line is where the link stands, from 1.
	Line int
}

// Stage is a point of a deployment at which hooks run.
type Stage string

// The stages, in their order.
const (
	stagePrebuild   Stage = "prebuild"   // before the commands of the Buildfile
	stagePredeploy  Stage = "predeploy"  // after them and before the app is started
	stagePostdeploy Stage = "postdeploy" // after the app was started
)

// Hook is one program of the bundle that a deployment runs.
type Hook struct {
	// Stage says when.
	Stage Stage
	// File is the path below the bundle's folder, with slashes: ".platform/hooks/prebuild/10-migrate.sh".
	File string
	// Interpreter is the program and the argument that take the file, where the file cannot be started by itself
	// because the execute permission or a first line that names them is missing; empty where it can.
	Interpreter []string
}

// invalidError holds everything that is wrong in a bundle; it is never empty.
type invalidError struct {
	Problems []Problem
}

// Error returns one line per problem and an indented line per hint.
func (e *invalidError) Error() string { return yamlfile.Join(e.Problems) }

// Problem is one thing that is wrong, or worth knowing, in one place of the bundle,
// which is named as the bundle was opened with.
type Problem = yamlfile.Problem

// Finding is one thing in the bundle that Elastic Beanstalk acts on and tendril does not.
type Finding struct {
	// File is the path below the bundle's folder, with slashes.
	File string
	// Line counts from 1; 0 when the file as a whole is meant.
	Line int
	// What describes its purpose, that tendril does nothing about it, and an alternative.
	What string
}

// String returns the finding as "file:line: what", or "file: what" for line 0.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Finding returns a finding about a file of the bundle, which is named as the
// bundle was opened with, as Settings name it.
func (b *Bundle) Finding(file string, line int, what string) Finding {
	if abs, err := filepath.Abs(file); err == nil {
		if below, err := filepath.Rel(b.Dir, abs); err == nil {
			file = filepath.ToSlash(below)
		}
	}
	return Finding{File: file, Line: line, What: what}
}
