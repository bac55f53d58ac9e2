package bundle

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	procfileName = "Procfile"
	// maxProcfile bounds the file: 64 KiB.
	maxProcfile = 64 << 10
	// maxProcesses bounds what one Procfile may start.
	maxProcesses = 100
	// maxName bounds the name of a process.
	maxName = 64
)

// ParseProcfile reads a Procfile: one "name: command" per line. Blank lines
// and lines that begin with "#" are left out, as are blanks around the name and the
// command. The result has web first, then the others as the file has them.
// The name file is used in messages only. The error is an [*Error].
func ParseProcfile(file string, data []byte) ([]Process, error) {
	p := procfile{file: file, lineOf: map[string]int{}}
	if len(data) > maxProcfile {
		p.refuse(0, fmt.Sprintf("the file has more than %d bytes", maxProcfile), "a Procfile holds one line per process: move long commands into scripts")
		return nil, &Error{Problems: p.problems}
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	for i, line := range strings.Split(text, "\n") {
		p.line(i+1, strings.TrimSpace(line))
	}
	if len(p.processes) > maxProcesses {
		p.refuse(p.processes[maxProcesses].Line, fmt.Sprintf("more than %d processes", maxProcesses), "start the rest from a script")
	}
	if len(p.problems) > 0 {
		return nil, &Error{Problems: p.problems}
	}
	return webFirst(p.processes), nil
}

// procfile is the state of one reading.
type procfile struct {
	file      string
	processes []Process
	problems  []Problem
	lineOf    map[string]int
}

// line takes one trimmed line of the file.
func (p *procfile) line(number int, line string) {
	if line == "" || line[0] == '#' {
		return
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, isControl) {
		p.refuse(number, "the line holds bytes that are no text", "save the file as UTF-8 text without control characters")
		return
	}
	name, command, found := strings.Cut(line, ":")
	name, command = strings.TrimSpace(name), strings.TrimSpace(command)
	switch {
	case !found:
		p.refuse(number, fmt.Sprintf("%q is no process", shorten(line)), `write "name: command", for instance "web: `+shorten(line)+`"`)
	case !isName(name):
		p.refuse(number, fmt.Sprintf("%q is no name for a process", shorten(name)),
			fmt.Sprintf("a name is 1 to %d letters, digits, \"_\" and \"-\"", maxName))
	case command == "":
		p.refuse(number, fmt.Sprintf("%s has no command", name), fmt.Sprintf("write %q, or delete the line", name+": COMMAND"))
	case p.lineOf[name] != 0:
		p.refuse(number, fmt.Sprintf("%s is already in line %d", name, p.lineOf[name]), "give each process a name of its own")
	default:
		p.lineOf[name] = number
		p.processes = append(p.processes, Process{Name: name, Command: command, Line: number})
	}
}

func (p *procfile) refuse(line int, text, hint string) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Text: text, Hint: hint})
}

// webFirst moves the main process to the front and keeps the order of the rest.
func webFirst(all []Process) []Process {
	ordered := make([]Process, 0, len(all))
	for _, p := range all {
		if p.Name == MainProcess {
			ordered = append(ordered, p)
		}
	}
	for _, p := range all {
		if p.Name != MainProcess {
			ordered = append(ordered, p)
		}
	}
	return ordered
}

// readProcfile reads at most one byte more than is allowed, from a regular
// file only: a pipe of that name would never end.
func readProcfile(path string) ([]Process, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Procfile: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Problems: []Problem{{File: path, Text: "this is no regular file", Hint: `write a text file with the line "web: COMMAND"`}}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Procfile: %w", err)
	}
	defer f.Close()
	var data bytes.Buffer
	if _, err := io.Copy(&data, io.LimitReader(f, maxProcfile+1)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return ParseProcfile(path, data.Bytes())
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !isNameByte(r) })
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// isControl is true for what a terminal would act on; a tab is a blank.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// shorten cuts s so that it fits a message.
func shorten(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "..."
}
