package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tendril/yamlfile"
)

// MissingPrograms names the programs that hooks, build commands and processes run and
// that are not on this machine, as far as that shows without running anything. path is
// the PATH that they get. What a step may install is not named in the steps after it.
func (b *Bundle) MissingPrograms(path string) []Problem {
	m := missingPrograms{dir: b.Dir, path: filepath.SplitList(path)}
	for _, s := range b.Plan() {
		file := filepath.Join(b.Dir, filepath.FromSlash(s.File))
		if s.Phase == PhaseCommand {
			m.containerCommand(file, &s)
			continue
		}
		if s.Shell != "" {
			m.script(file, s.Line, s.Shell)
		} else {
			m.hook(file, s.Argv)
		}
		m.after = true
	}
	return m.found
}

type missingPrograms struct {
	dir   string
	path  []string
	found []Problem
	// after tells that a step came before, which may have made files; installs that one
	// may have installed programs.
	after, installs bool
}

// containerCommand looks at a command that certainly runs, and has to succeed, with the PATH of the others.
func (m *missingPrograms) containerCommand(file string, s *Step) {
	certain := s.Test == "" && !s.IgnoreErrors && s.Dir == m.dir &&
		!slices.ContainsFunc(s.Env, func(entry string) bool { return strings.HasPrefix(entry, "PATH=") })
	if certain && s.Shell != "" && !strings.Contains(s.Shell, "\n") {
		m.script(file, s.Line, s.Shell)
	} else if certain && s.Shell == "" {
		m.command(file, s.Line, s.Argv, nil)
	}
	m.after = true
}

// hook looks at a hook's interpreter, and into a script of the shell.
func (m *missingPrograms) hook(file string, argv []string) {
	data, err := readFile(file, maxDocument)
	line, script := shebang(data)
	if err != nil || !script && len(argv) == 1 {
		return // a program of its own
	}
	program := argv[:len(argv)-1]
	if script {
		program = interpreter(line)
	}
	name := program[0]
	if !m.has(name) {
		m.name(file, 1, name)
		return
	}
	if filepath.Base(name) == "env" {
		words := slices.DeleteFunc(strings.Fields(strings.Join(program[1:], " ")), func(w string) bool {
			return w[0] == '-' || strings.Contains(w, "=")
		})
		if len(words) == 0 {
			return
		}
		if name = words[0]; !m.has(name) {
			m.name(file, 1, name)
			return
		}
	}
	if slices.Contains([]string{"sh", "bash", "dash", "ash"}, filepath.Base(name)) {
		m.script(file, 1, string(data))
	}
}

var (
	assignment   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	programName  = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)
	functionName = regexp.MustCompile(`(?m)^\s*(?:function\s+)?([A-Za-z0-9_.-]+)\s*\(\)`)
	shellWords   = strings.Fields(". : [ alias bg break cd command continue echo eval exec exit export false fg " +
		"getopts hash jobs kill local printf pwd read readonly return set shift source test times trap true type ulimit " +
		"umask unalias unset wait declare let pushd popd shopt typeset builtin then else elif do in ! time function [[")
	opensBlock  = strings.Fields("if while until for case select {")
	closesBlock = strings.Fields("fi done esac }")
)

// script looks at the first program of each line that certainly runs: what is in a block, or stands for an
// alternative, is left out, and so is all that follows what only a shell understands.
func (m *missingPrograms) script(file string, line int, text string) {
	known := slices.Clone(shellWords)
	for _, f := range functionName.FindAllStringSubmatch(text, -1) {
		known = append(known, f[1])
	}
	depth := 0
	for i, one := range strings.Split(text, "\n") {
		one = strings.TrimSpace(one)
		if one == "" || one[0] == '#' {
			continue
		}
		words := strings.Fields(one)
		before := depth
		for _, w := range words {
			switch w = strings.Trim(w, ";"); {
			case slices.Contains(opensBlock, w):
				depth++
			case slices.Contains(closesBlock, w):
				depth--
			}
		}
		unclear := strings.Contains(one, "<<") || strings.HasSuffix(one, `\`) ||
			strings.Count(one, `"`)%2+strings.Count(one, "'")%2 > 0 || strings.Count(one, "(") != strings.Count(one, ")") ||
			slices.Contains([]string{"alias", ".", "source", "eval", "cd", "exit", "return"}, words[0]) ||
			strings.Contains(one, "PATH=")
		if depth == 0 && before == 0 && !strings.Contains(one, "||") && !strings.Contains(one, "()") {
			m.command(file, line+i, words, known)
		}
		if slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"install", "add", "ci", "sync"}, w)
		}) {
			m.installs = true
		}
		if unclear {
			return
		}
		m.after = true
	}
}

func (m *missingPrograms) command(file string, line int, words, known []string) {
	for len(words) > 1 && (assignment.MatchString(words[0]) || words[0] == "exec") {
		words = words[1:]
	}
	name := strings.TrimRight(words[0], ";")
	if name == "" || !programName.MatchString(name) || slices.Contains(known, name) ||
		slices.Contains(opensBlock, name) || slices.Contains(closesBlock, name) {
		return
	}
	if strings.Contains(name, "/") && !filepath.IsAbs(name) && m.after {
		return // a step before may have made it
	}
	if !m.has(name) {
		m.name(file, line, name)
	}
}

func (m *missingPrograms) has(name string) bool {
	at := []string{name}
	switch {
	case !strings.Contains(name, "/"):
		at = nil
		for _, dir := range m.path {
			at = append(at, filepath.Join(dir, name))
		}
	case !filepath.IsAbs(name):
		at = []string{filepath.Join(m.dir, name)}
	}
	return slices.ContainsFunc(at, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

func (m *missingPrograms) name(file string, line int, name string) {
	if m.installs {
		return
	}
	text, hint := fmt.Sprintf("there is no program %s on this machine", name), "install it, or correct the name"
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(m.dir, at)
	}
	if info, err := os.Stat(at); strings.Contains(name, "/") && err == nil && info.Mode().IsRegular() {
		text, hint = fmt.Sprintf("the program %s is not executable", name), "chmod +x "+name
	}
	m.found = append(m.found, Problem{Where: yamlfile.Place(file, line, 0), Text: text, Hint: hint})
}
