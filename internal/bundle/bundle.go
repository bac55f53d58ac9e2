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
	// Dir is absolute.
	Dir string
	// Called overrides the folder's name in [Bundle.Name]; may be "". Open leaves it empty.
	Called string
	// Archive is the absolute path of the archive unpacked to Dir, or "". Open leaves it empty.
	Archive string
	// Processes are the lines of the Procfile: web first, then the others in file order.
	Processes []Process
	// Build are commands that run to completion before the app starts.
	Build []Process
	// Default is the command that an Elastic Beanstalk platform would run without a Procfile; may be nil.
	Default *Default
	Cron    string
	// ContainerCommands are sorted by file, then by name.
	ContainerCommands []Command
	// Machine is applied only on request.
	Machine Machine
	// Settings are sorted from weakest to strongest: the last setting of an option is in force. An empty value unsets
	// the option, unless the setting is Computed.
	Settings []Setting
	// Resources are CloudFormation resources. Tendril does not create them, except alarms on request.
	Resources []Resource
	Manifest  Manifest
	// Links are variables that refer to other environments.
	Links []Link
	Hooks []Hook
	// ConfigHooks are the hooks for changes of settings only.
	ConfigHooks []Hook
	// Warnings do not prevent a deployment.
	Warnings []Problem
	// Unsupported lists everything that Elastic Beanstalk would use and tendril does not, sorted by file and line.
	Unsupported []Finding
	// Advice explains why no app was found; may be "".
	Advice string
}

// Process is one line of a Procfile or a Buildfile.
type Process struct {
	Name    string // 1 to 64 letters, digits, "_" and "-", unique in its file
	Command string // for a shell, never empty
	Line    int    // from 1; 0 if the command is not from a file
}

// Name returns a name for the environment: env.yaml's, else Called, else the folder's. Characters other than letters,
// digits, "_" and "-" become "-", and the name is cut to 64 characters. It is "" if nothing remains, as for "/".
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

// Default is the command that an Elastic Beanstalk platform runs if a bundle has no Procfile.
type Default struct {
	Platform string    // "Node.js", "Python", "Go", "Java" or "Ruby"
	File     string    // identified the platform; relative to the bundle's folder, with slashes
	Process  Process   // the app, named web; its Line is 0
	Build    []Process // commands to run before the app starts; their Line is 0
}

// Setting is one option that the bundle sets.
type Setting struct {
	Namespace, Option string
	// Value keeps its spelling, regardless of its YAML type. It is JSON for a map or a list. It may be secret: print
	// Shown instead.
	Value    string
	Computed bool   // by CloudFormation; Value is "" then
	File     string // starts with the path passed to Open
	Line     int    // from 1
}

// TypeAlarm is the type of a CloudWatch alarm.
const TypeAlarm = "AWS::CloudWatch::Alarm"

// Resource is one entry below Resources in a configuration file.
type Resource struct {
	Name       string         // not checked for uniqueness
	Type       string         // such as [TypeAlarm]; may be ""
	Properties *yamlfile.Node // may contain CloudFormation functions; may be nil
	File       string         // starts with the path passed to Open
	Line       int            // from 1
}

// Manifest is the environment's description in env.yaml; zero without an env.yaml.
type Manifest struct {
	Name     string // without the "+" of a group; may be ""
	NameLine int    // from 1; 0 without a name
}

// Link is a variable that refers the app to another environment.
type Link struct {
	Variable    string
	Environment string // without the "+" of a group. A link to a worker provides its queue.
	File        string // starts with the path passed to Open
	Line        int    // from 1
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
	File  string // relative to the bundle's folder, with slashes: ".platform/hooks/prebuild/10-migrate.sh"
	// Interpreter runs a file without execute permission or shebang line; may be empty.
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
	File string // relative to the bundle's folder, with slashes
	Line int    // from 1; 0 means the whole file
	What string // the part's lack of effect, and an alternative
}

// String returns the finding as "file:line: what", or "file: what" for line 0.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Finding returns a finding about a file, given its path in Settings.
func (b *Bundle) Finding(file string, line int, what string) Finding {
	if abs, err := filepath.Abs(file); err == nil {
		if below, err := filepath.Rel(b.Dir, abs); err == nil {
			file = filepath.ToSlash(below)
		}
	}
	return Finding{File: file, Line: line, What: what}
}
