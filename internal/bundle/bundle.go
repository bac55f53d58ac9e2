package bundle

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"tendril/internal/config/yamlfile"
)

const cronName = "cron.yaml"

// MainProcess is the name of the process that listens on PORT and receives the messages.
const MainProcess = "web"

// Bundle describes a source bundle, without the app's own files.
type Bundle struct {
	// Dir is absolute.
	Dir string
	// Called replaces the folder's name in [Bundle.Name]; may be "". Open does not set it.
	Called string
	// Archive is the absolute path of the archive or folder from which Dir was created, or "". Open does not set it.
	Archive string
	// Processes are the Procfile's lines, or come from [Bundle.WithDefault]: web first, then the others in file order.
	Processes         []Process
	Build             []Process
	Default           *Default
	Cron              string
	ContainerCommands []Command
	Machine           Machine
	// Settings are ordered from weakest to strongest. An empty value that is not Computed restores a worker option's
	// default, if there is one.
	Settings []Setting
	// Resources are CloudFormation resources. 'tendril generate alarms' prints the alarms.
	Resources   []Resource
	Manifest    Manifest
	Links       []Link
	Hooks       []Hook
	ConfigHooks []Hook
	Warnings    []Problem
	// Unsupported is sorted by file and line.
	Unsupported []Finding
	// Advice is a hint if there is neither a Procfile nor a Default; may be "".
	Advice string
}

// Process is one line of a Procfile or a Buildfile.
type Process struct {
	Name    string // 1 to 64 letters, digits, "_" and "-"; unique in its file
	Command string // for a shell; never empty
	Line    int    // from 1; 0 if the command is not from a file
}

// Name returns the name in env.yaml, otherwise Called, otherwise the folder's name. Characters other than letters,
// digits and "_" become "-", the name is truncated to 64 characters, and "-" is trimmed; may be "".
func (b *Bundle) Name() string {
	name := cmp.Or(b.Manifest.Name, b.Called, filepath.Base(b.Dir))
	clean := dashed(name, "")
	return strings.Trim(clean[:min(len(clean), maxName)], "-")
}

func dashed(name, also string) string {
	return strings.Map(func(r rune) rune {
		if isNameByte(r) || strings.ContainsRune(also, r) {
			return r
		}
		return '-'
	}, name)
}

// Default is how an Elastic Beanstalk platform starts an app without a Procfile.
type Default struct {
	Platform string // "Node.js", "Python", "Go", "Java" or "Ruby"
	File     string // identifies the platform; slash-separated, relative to Dir
	Process  Process
	Build    []Process
}

// Setting is an option setting of the bundle.
type Setting struct {
	Namespace, Option string
	// Value is the text as written; a map or list is JSON. It may be secret, so print Shown instead.
	Value    string
	Computed bool   // CloudFormation computes the value; Value is ""
	File     string // starts with the path passed to Open
	Line     int
}

// TypeAlarm is the type of a CloudWatch alarm.
const TypeAlarm = "AWS::CloudWatch::Alarm"

// Resource is an entry of the section Resources in a configuration file.
type Resource struct {
	Name       string         // need not be unique
	Type       string         // such as [TypeAlarm]; may be ""
	Properties *yamlfile.Node // may be nil
	File       string
	Line       int
}

// Manifest describes the environment in env.yaml; zero without the file.
type Manifest struct {
	Name     string // without a trailing "+"; may be ""
	NameLine int    // 0 if there is no name
}

// Link is an environment variable that refers to another environment.
type Link struct {
	Variable    string
	Environment string // without a trailing "+"
	File        string
	Line        int
}

// Stage is a point in a deployment at which hooks run.
type Stage string

const (
	stagePrebuild   Stage = "prebuild"   // before the Buildfile's commands
	stagePredeploy  Stage = "predeploy"  // before the app starts
	stagePostdeploy Stage = "postdeploy" // after the app has started
)

// Hook is a program in the bundle that runs during a deployment.
type Hook struct {
	Stage Stage
	File  string // slash-separated, relative to Dir
	// Interpreter runs a file without execute permission or shebang line; may be empty.
	Interpreter []string
}

type invalidError struct {
	Problems []Problem
}

func (e *invalidError) Error() string { return yamlfile.Join(e.Problems) }

// Problem is an error or a warning about a place in the bundle. Paths start with the path passed to Open.
type Problem = yamlfile.Problem

// Finding is a part of the bundle that has no effect.
type Finding struct {
	File string // slash-separated, relative to Dir
	Line int    // 0 means the whole file
	What string // the reason it has no effect, and an alternative
}

// String returns "file:line: what", or "file: what" for line 0.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Finding returns a finding about a file whose path starts with the path passed to Open.
func (b *Bundle) Finding(file string, line int, what string) Finding {
	if abs, err := filepath.Abs(file); err == nil {
		if below, err := filepath.Rel(b.Dir, abs); err == nil {
			file = below
		}
	}
	return Finding{File: file, Line: line, What: what}
}
