package bundle

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"tendril/internal/config/yamlfile"
)

const cronName = "cron.yaml"

// MainProcess is the name of the app's process, which listens on PORT and receives the messages.
const MainProcess = "web"

// Bundle is the content of a source bundle, except the app's own files.
type Bundle struct {
	// Dir is the absolute path of the bundle's folder.
	Dir string
	// Called overrides the folder's name in [Bundle.Name]; may be "". Open leaves it empty.
	Called string
	// Archive is the absolute path of the archive unpacked to Dir; "" if Dir is the source. Open leaves it empty.
	Archive string
	// Processes are the lines of the Procfile: web first, if it exists, then the others in file order. Empty without
	// a Procfile.
	Processes []Process
	// Build are the lines of the Buildfile, in order. Each runs to completion before the app starts. Empty without a
	// Buildfile.
	Build []Process
	// Default is the command that an Elastic Beanstalk platform would run without a Procfile; nil if there is a
	// Procfile or no known command. WithDefault adds it to Processes and Plan.
	Default *Default
	// Cron is the path of the bundle's cron.yaml; may be "".
	Cron string
	// ContainerCommands are the container commands of .ebextensions in execution order: by file, then by name.
	ContainerCommands []Command
	// Machine holds the .ebextensions sections that change the machine. They are applied only on request.
	Machine Machine
	// Settings are the options set by .ebextensions and env.yaml, from the weakest to the strongest: the last setting
	// of an option is in force. An empty value unsets the option, unless the setting is Computed.
	Settings []Setting
	// Resources are the CloudFormation resources of the configuration files, in file order. Tendril does not create
	// them, except for alarms on request.
	Resources []Resource
	// Manifest is the environment's description in env.yaml.
	Manifest Manifest
	// Links are the variables in env.yaml that refer to other environments, in file order.
	Links []Link
	// Hooks are the programs of .platform/hooks, by stage and then by name.
	Hooks []Hook
	// ConfigHooks are the programs of .platform/confighooks, for changes of settings only.
	ConfigHooks []Hook
	// Warnings are problems that do not prevent a deployment, in file order.
	Warnings []Problem
	// Unsupported lists everything that Elastic Beanstalk would use and tendril does not, sorted by file and line.
	Unsupported []Finding
	// Advice explains why no app was found; may be "".
	Advice string
}

// Process is one line of a Procfile or a Buildfile.
type Process struct {
	// Name is 1 to 64 letters, digits, "_" and "-", unique in its file.
	Name string
	// Command is the command line for a shell, never empty.
	Command string
	// Line is the line number, from 1; 0 if the command is not from a file.
	Line int
}

// Name returns a name for the environment: env.yaml's, else Called, else the folder's. Characters other than letters,
// digits, "_" and "-" become "-", and the name is cut to 64 characters. It is "" if nothing remains, as for "/".
func (b *Bundle) Name() string {
	name := cmp.Or(b.Manifest.Name, b.Called, filepath.Base(b.Dir))
	clean := dashed(name, "")
	return strings.Trim(clean[:min(len(clean), maxName)], "-")
}

// dashed replaces every character except letters, digits, "_", "-" and those in also with a dash.
func dashed(name, also string) string {
	return strings.Map(func(r rune) rune {
		if isNameByte(r) || strings.ContainsRune(also, r) {
			return r
		}
		return '-'
	}, name)
}

// Default is the command that an Elastic Beanstalk platform runs if a bundle has no Procfile.
type Default struct {
	// Platform is "Node.js", "Python", "Go", "Java" or "Ruby".
	Platform string
	// File is the file that identified the platform, relative to the bundle's folder and with slashes.
	File string
	// Process is the app, named web; its Line is 0.
	Process Process
	// Build are commands to run before the app starts; usually none. Their Line is 0.
	Build []Process
}

// Setting is one option that the bundle sets.
type Setting struct {
	// Namespace and Option are Elastic Beanstalk's names of the option; neither is "".
	Namespace, Option string
	// Value is the text as written, regardless of its YAML type: 010 and yes are not converted. It is "" for a
	// missing value, and JSON for a map or a list. It may be secret: print Shown instead.
	Value string
	// Computed is true if CloudFormation computes the value; Value is "" then.
	Computed bool
	// File is the file's path, starting with the path passed to Open.
	File string
	// Line is the value's line, from 1.
	Line int
}

// TypeAlarm is the type of a CloudWatch alarm.
const TypeAlarm = "AWS::CloudWatch::Alarm"

// Resource is one entry below Resources in a configuration file.
type Resource struct {
	// Name is the logical name. It should be unique in a bundle, which is not checked.
	Name string
	// Type is the CloudFormation type, such as [TypeAlarm]; may be "".
	Type string
	// Properties are as written, including CloudFormation functions; may be nil.
	Properties *yamlfile.Node
	// File is the file's path, starting with the path passed to Open.
	File string
	// Line is the name's line, from 1.
	Line int
}

// Manifest is the environment's description in env.yaml; zero without an env.yaml.
type Manifest struct {
	// Name is the environment's name, without the "+" of a group; may be "".
	Name string
	// NameLine is the name's line, from 1; 0 without a name.
	NameLine int
}

// Link is a variable that refers the app to another environment.
type Link struct {
	// Variable is the name of the environment variable, never "".
	Variable string
	// Environment is the name of the other environment, without the "+" of a group; never "". A link to a worker
	// provides its queue.
	Environment string
	// File is the file's path, starting with the path passed to Open.
	File string
	// Line is the link's line, from 1.
	Line int
}

// Stage is a point of a deployment at which hooks run.
type Stage string

// The stages, in order.
const (
	stagePrebuild   Stage = "prebuild"   // before the commands of the Buildfile
	stagePredeploy  Stage = "predeploy"  // after them and before the app starts
	stagePostdeploy Stage = "postdeploy" // after the app started
)

// Hook is a program of the bundle that a deployment runs.
type Hook struct {
	Stage Stage
	// File is relative to the bundle's folder, with slashes: ".platform/hooks/prebuild/10-migrate.sh".
	File string
	// Interpreter is the program and argument that run the file if it lacks the execute permission or a shebang line;
	// else empty.
	Interpreter []string
}

// invalidError holds all problems of a bundle; it is never empty.
type invalidError struct {
	Problems []Problem
}

// Error returns one line per problem, each followed by its hint on an indented line.
func (e *invalidError) Error() string { return yamlfile.Join(e.Problems) }

// Problem is an error or a warning about one place in the bundle. Paths start with the path passed to Open.
type Problem = yamlfile.Problem

// Finding is a part of the bundle that Elastic Beanstalk uses and tendril does not.
type Finding struct {
	// File is relative to the bundle's folder, with slashes.
	File string
	// Line counts from 1; 0 means the whole file.
	Line int
	// What states that tendril does not use the part, and suggests an alternative.
	What string
}

// String returns the finding as "file:line: what", or "file: what" for line 0.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Finding returns a finding about a file of the bundle, given its path in Settings.
func (b *Bundle) Finding(file string, line int, what string) Finding {
	if abs, err := filepath.Abs(file); err == nil {
		if below, err := filepath.Rel(b.Dir, abs); err == nil {
			file = filepath.ToSlash(below)
		}
	}
	return Finding{File: file, Line: line, What: what}
}
