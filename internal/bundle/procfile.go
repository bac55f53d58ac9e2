package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tendril/internal/config/yamlfile"
)

func parseProcfile(file string, data []byte) ([]Process, error) {
	l := lines{file: file, kind: procfileName, what: "process", plural: "processes", example: MainProcess}
	processes, err := l.parse(data)
	slices.SortStableFunc(processes, func(a, b Process) int {
		switch {
		case a.Name == MainProcess:
			return -1
		case b.Name == MainProcess:
			return 1
		}
		return 0
	})
	return processes, err
}

func parseBuildfile(file string, data []byte) ([]Process, error) {
	l := lines{file: file, kind: buildfileName, what: "build command", plural: "build commands", example: "build"}
	return l.parse(data)
}

type lines struct {
	file                        string
	kind, what, plural, example string

	processes []Process
	problems  []Problem
	lineOf    map[string]int
}

func (l *lines) parse(data []byte) ([]Process, error) {
	if len(data) > maxProcfile {
		l.refuse(0, fmt.Sprintf("the file is larger than %d bytes", maxProcfile),
			fmt.Sprintf("a %s has one line per %s: move long commands into scripts", l.kind, l.what))
		return nil, &invalidError{Problems: l.problems}
	}

	l.lineOf = map[string]int{}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	for i, line := range strings.Split(text, "\n") {
		l.readLine(i+1, strings.TrimSpace(line))
	}

	if len(l.processes) > maxProcesses {
		l.refuse(l.processes[maxProcesses].Line, fmt.Sprintf("more than %d %s", maxProcesses, l.plural),
			"start the others from a script")
	}
	if len(l.problems) > 0 {
		return nil, &invalidError{Problems: l.problems}
	}
	return l.processes, nil
}

func (l *lines) readLine(number int, line string) {
	if line == "" || line[0] == '#' {
		return
	}

	if !utf8.ValidString(line) || strings.ContainsFunc(line, yamlfile.IsControl) {
		l.refuse(number, "the line is not text", "save the file as UTF-8 text without control characters")
		return
	}

	name, command, found := strings.Cut(line, ":")
	name, command = strings.TrimSpace(name), strings.TrimSpace(command)
	switch {
	case !found:
		l.refuse(number, fmt.Sprintf("%q is not a %s", yamlfile.Short(line), l.what),
			fmt.Sprintf(`write "name: command", for example "%s: %s"`, l.example, yamlfile.Short(line)))
	case !isName(name):
		l.refuse(number, fmt.Sprintf("%q is not a name for a %s", yamlfile.Short(name), l.what),
			fmt.Sprintf("a name is 1 to %d letters, digits, \"_\" and \"-\"", maxName))
	case command == "":
		l.refuse(number, fmt.Sprintf("%s has no command", name),
			fmt.Sprintf("write %q, or delete the line", name+": COMMAND"))
	case l.kind == procfileName && isReplica(name):
		l.refuse(number, name+" is the name of a replica of "+MainProcess, fmt.Sprintf("write %q", MainProcess+
			strings.TrimPrefix(name, MainProcess+"-")+": "+yamlfile.Short(command)))
	case l.lineOf[name] != 0:
		l.refuse(number, fmt.Sprintf("%s is already on line %d", name, l.lineOf[name]),
			"give each "+l.what+" a name of its own")
	default:
		l.lineOf[name] = number
		l.processes = append(l.processes, Process{Name: name, Command: command, Line: number})
	}
}

func isReplica(name string) bool {
	number, found := strings.CutPrefix(name, MainProcess+"-")
	return found && strings.Trim(number, "0123456789") == ""
}

// ProcessIndex returns the index of a process, or -1. Deployments and restarts renumber replicas, so an unused name
// selects a replica by position: "web" the first, "web-2" the second. A retired replica's name selects no other one,
// unless it is "web".
func ProcessIndex(names, retired []string, name string) int {
	if at := slices.Index(names, name); at >= 0 {
		return at
	}
	isRetired := name != MainProcess && slices.Contains(retired, name)
	position := replicaPosition(name)
	if isRetired || position == 0 {
		return -1
	}

	for i, other := range names {
		if other == MainProcess || isReplica(other) {
			position--
		}
		if position == 0 {
			return i
		}
	}
	return -1
}

func replicaPosition(name string) int {
	if name == MainProcess {
		return 1
	}
	number, err := strconv.Atoi(strings.TrimPrefix(name, MainProcess+"-"))
	if err != nil || number < 2 || !isReplica(name) {
		return 0
	}
	return number
}

func (l *lines) refuse(line int, text, hint string) {
	l.problems = append(l.problems, Problem{Where: yamlfile.Place(l.file, line, 0), Text: text, Hint: hint})
}

func (r *reader) readProcfile() (err error) {
	r.bundle.Processes, err = r.readLines(procfileName, parseProcfile)
	return err
}

func (r *reader) readBuildfile() (err error) {
	r.bundle.Build, err = r.readLines(buildfileName, parseBuildfile)
	return err
}

func (r *reader) readLines(name string, parse func(string, []byte) ([]Process, error)) ([]Process, error) {
	file := filepath.Join(r.dir, name)
	data, err := readFile(file, maxProcfile)
	if err != nil {
		return nil, r.keepProblems(err)
	}
	found, err := parse(file, data)
	return found, r.keepProblems(err)
}
