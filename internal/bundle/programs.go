package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

// MissingPrograms reports programs that this machine lacks or cannot start, without running anything. It omits programs
// that an earlier step may install. paths is the steps' PATH; if "", only names with a slash are checked.
// linksGetConfig is true if tendril provides [GetConfig].
func (b *Bundle) MissingPrograms(paths string, linksGetConfig bool) []Problem {
	m := b.checkPrograms(paths)
	if _, err := os.Stat(GetConfig); err != nil && !linksGetConfig {
		for _, place := range m.getConfig {
			m.found = append(m.found, Problem{Where: place, Text: "program " + GetConfig + " not found on this machine",
				Hint: "type as root: mkdir -p " + path.Dir(GetConfig) + ` && ln -s "$(command -v tendril)" ` + GetConfig})
		}
	}
	return m.found
}

// GetConfig is the path of get-config on Elastic Beanstalk's platforms.
const GetConfig = "/opt/elasticbeanstalk/bin/get-config"

// NamesGetConfig reports whether any script, command or machine section contains [GetConfig].
func (b *Bundle) NamesGetConfig() bool {
	for _, c := range b.Machine.Configs {
		if slices.ContainsFunc(c.Files, func(f MachineFile) bool { return strings.Contains(f.Content, GetConfig) }) ||
			slices.ContainsFunc(c.Commands, func(c Command) bool {
				return strings.Contains(strings.Join(slices.Concat(c.Argv, []string{c.Shell, c.Test}), " "), GetConfig)
			}) {
			return true
		}
	}
	return len(b.checkPrograms("").getConfig) > 0
}

func (b *Bundle) checkPrograms(path string) *missingPrograms {
	m := &missingPrograms{dir: b.Dir, path: filepath.SplitList(path), earlier: earlierSteps{seen: map[string]bool{}}}
	for _, s := range b.Plan() {
		file := filepath.Join(b.Dir, s.File)
		switch {
		case s.Phase == PhaseCommand:
			m.checkContainerCommand(file, &s)
		case s.Phase == PhaseStart: // they start together, so they do not prepare files for each other
			before := m.earlier
			m.earlier.seen = maps.Clone(before.seen)
			m.findGetConfig(file, s.Line, s.Shell)
			m.checkScript(file, s.Line, s.Shell)
			m.earlier = before
			continue
		case s.Shell != "":
			m.findGetConfig(file, s.Line, s.Shell)
			m.checkScript(file, s.Line, s.Shell)
		default:
			m.checkHook(file, s.Argv)
		}

		m.earlier.mayCreateFiles = true
	}

	for _, h := range b.ConfigHooks {
		file := filepath.Join(b.Dir, h.File)
		data, _ := readFile(file, maxDocument) // reading errors appear when the hook runs
		m.findGetConfig(file, 1, string(data))
	}

	return m
}

func (m *missingPrograms) findGetConfig(file string, line int, text string) {
	before, _, found := strings.Cut(text, GetConfig)
	place := yamlfile.Place(file, line+strings.Count(before, "\n"), 0)
	if found && !slices.Contains(m.getConfig, place) {
		m.getConfig = append(m.getConfig, place)
	}
}

type missingPrograms struct {
	dir   string
	path  []string
	found []Problem
	// refused reports scripts whose first line ends with CR LF, unless an earlier step may have changed them.
	refused   []Problem
	getConfig []string // places
	earlier   earlierSteps
	command   containerCommand // being checked; otherwise zero
}

type containerCommand struct {
	folder string
	line   int
	// optional commands need not be found.
	optional bool
}

type earlierSteps struct {
	mayCreateFiles, mayInstall bool
	// seen contains the words of earlier steps, without folders.
	seen map[string]bool
}

func (m *missingPrograms) checkContainerCommand(file string, s *Step) {
	m.command = containerCommand{folder: s.Dir, line: s.Line,
		optional: s.Test != "" || s.IgnoreErrors || changesPath(s.Env) || !m.isInBundle(s.Dir)}
	defer func() { m.command = containerCommand{} }()
	words := slices.Concat(s.Argv, []string{s.Shell, s.Test})
	m.findGetConfig(file, s.Line, strings.ReplaceAll(strings.Join(words, " "), "\n", " "))
	if s.Shell != "" {
		m.checkScript(file, s.Line, s.Shell)
	} else {
		m.checkCommand(file, s.Line, s.Argv, nil)
		m.remember(s.Argv)
	}
}

func changesPath(env []string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "PATH=") })
}

func (m *missingPrograms) isInBundle(dir string) bool {
	below, err := filepath.Rel(m.dir, dir)
	return err == nil && filepath.IsLocal(below)
}

func (m *missingPrograms) remember(words []string) {
	for _, w := range words {
		m.earlier.seen[path.Base(strings.Trim(w, `;"'`))] = true
	}
}

func (m *missingPrograms) checkHook(file string, argv []string) {
	data, err := readFile(file, maxDocument)
	m.findGetConfig(file, 1, string(data))
	line, script := shebang(data)
	if err != nil || !script && len(argv) == 1 {
		return // a binary
	}

	program := argv[:len(argv)-1]
	if script {
		program = interpreter(line)
	}
	name := program[0]
	if !m.has(name) {
		m.reportMissing(file, 1, name)
		return
	}

	if filepath.Base(name) == "env" {
		name = programOfEnv(program[1:])
		if name != "" && !m.has(name) {
			m.reportMissing(file, 1, name)
			return
		}
	}
	if isShell(name) {
		m.checkScript(file, 1, string(data))
	}
}

func programOfEnv(arguments []string) string {
	for _, word := range strings.Fields(strings.Join(arguments, " ")) {
		if word[0] != '-' && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
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

// checkScript checks the first program of each line that is certain to run. It stops at syntax that only a shell can
// interpret.
func (m *missingPrograms) checkScript(file string, line int, text string) {
	known := slices.Clone(shellWords)
	for _, f := range functionName.FindAllStringSubmatch(text, -1) {
		known = append(known, f[1])
	}

	depth, unclear := 0, false
	for i, one := range strings.Split(text, "\n") {
		one = strings.TrimSpace(one)
		if one == "" || one[0] == '#' {
			continue
		}

		words := strings.Fields(one)
		before := depth
		depth += blocksOpened(words)
		isInBlock := before != 0 || depth != 0
		if !unclear && !isInBlock && !strings.Contains(one, "||") && !strings.Contains(one, "()") {
			m.checkCommand(file, line+i, words, known)
		}
		unclear = unclear || makesRestUnclear(one, words[0])

		m.earlier.mayInstall = m.earlier.mayInstall || slices.ContainsFunc(words, isInstallVerb)
		m.remember(words)
		m.earlier.mayCreateFiles = true
	}
}

func blocksOpened(words []string) (n int) {
	for _, w := range words {
		w = strings.Trim(w, ";")
		if slices.Contains(opensBlock, w) {
			n++
		}
		if slices.Contains(closesBlock, w) {
			n--
		}
	}
	return n
}

// makesRestUnclear reports whether only a shell can tell how the following lines run.
func makesRestUnclear(line, first string) bool {
	isContinued := strings.Contains(line, "<<") || strings.HasSuffix(line, `\`) ||
		strings.Count(line, `"`)%2 != 0 || strings.Count(line, "'")%2 != 0 ||
		strings.Count(line, "(") != strings.Count(line, ")")
	changesShell := slices.Contains([]string{"alias", ".", "source", "eval", "cd", "exit", "return"}, first)
	return isContinued || changesShell || strings.Contains(line, "PATH=")
}

func isInstallVerb(word string) bool {
	return slices.Contains([]string{"install", "add", "ci", "sync"}, word)
}

func (m *missingPrograms) checkCommand(file string, line int, words, known []string) {
	for len(words) > 1 && (assignment.MatchString(words[0]) || words[0] == "exec") {
		if strings.ContainsAny(words[0], "\"'`(\\") {
			return // the value may continue in the next word
		}
		words = words[1:]
	}

	name := strings.TrimRight(words[0], ";")
	if name == "" || !programName.MatchString(name) || slices.Contains(known, name) ||
		slices.Contains(opensBlock, name) || slices.Contains(closesBlock, name) {
		return
	}

	if isShell(name) {
		m.checkShellScript(file, line, words[1:])
	}

	if strings.Contains(name, "/") && m.exists(name) {
		m.checkStartable(file, line, name)
		return
	}

	if strings.Contains(name, "/") && !filepath.IsAbs(name) && m.earlier.mayCreateFiles {
		return // an earlier step may have created it
	}
	if !m.has(name) {
		m.reportMissing(file, line, name)
	}
}

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash"}, filepath.Base(program))
}

func (m *missingPrograms) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(cmp.Or(m.command.folder, m.dir), name)
}

func (m *missingPrograms) exists(name string) bool { return isFile(m.at(name)) }

func (m *missingPrograms) has(name string) bool {
	at := []string{m.at(name)}
	if !strings.Contains(name, "/") {
		at = nil
		for _, dir := range m.path {
			at = append(at, filepath.Join(dir, name))
		}
	}
	return len(at) == 0 || slices.ContainsFunc(at, isProgram)
}

func (m *missingPrograms) reportMissing(file string, line int, name string) {
	if !m.earlier.mayInstall && !m.command.optional && name != GetConfig {
		m.report(file, line, fmt.Sprintf("program %s not found on this machine", name), "install it, or correct the name")
	}
}

func (m *missingPrograms) problem(file string, line int, text, hint string) Problem {
	return Problem{Where: yamlfile.Place(file, cmp.Or(m.command.line, line), 0), Text: text, Hint: hint}
}

func (m *missingPrograms) report(file string, line int, text, hint string) {
	p := m.problem(file, line, text, hint)
	if !slices.Contains(m.found, p) {
		m.found = append(m.found, p)
	}
}

// isPrepared reports whether an earlier step may have made the file executable or changed it.
func (m *missingPrograms) isPrepared(name string) bool {
	return m.earlier.seen[path.Base(name)] || m.earlier.seen["chmod"] || m.earlier.seen["dos2unix"]
}

func (m *missingPrograms) checkStartable(file string, line int, name string) {
	if m.isPrepared(name) {
		return
	}

	begin := m.readScript(name)
	if first, script := shebang(begin); script && strings.HasSuffix(first, "\r") {
		text, hint := "the first line of "+name+windowsLine, m.hintToType(unixLines, name)
		if m.earlier.mayCreateFiles || m.command.optional {
			m.report(file, line, text, hint)
		} else {
			m.refused = append(m.refused, m.problem(file, line, text, hint))
		}
	}

	if !m.has(name) {
		m.report(file, line, fmt.Sprintf("the program %s is not executable", name), m.hintToType("chmod +x", name))
	}
}

func (m *missingPrograms) checkShellScript(file string, line int, arguments []string) {
	i := slices.IndexFunc(arguments, func(w string) bool { return w == "-c" || !strings.HasPrefix(w, "-") })
	if i < 0 || !programName.MatchString(arguments[i]) || !m.exists(arguments[i]) || m.isPrepared(arguments[i]) {
		return
	}
	if first, _, _ := strings.Cut(string(m.readScript(arguments[i])), "\n"); strings.HasSuffix(first, "\r") {
		m.report(file, line, "the lines of "+arguments[i]+" end with CR LF: the shell treats CR as part of each "+
			"command",
			m.hintToType(unixLines, arguments[i]))
	}
}

func (m *missingPrograms) readScript(name string) []byte {
	data, _ := readFile(m.at(name), maxDocument) // reading errors appear when the script runs
	m.findGetConfig(m.at(name), 1, string(data))
	return data
}

func (m *missingPrograms) hintToType(command, name string) string {
	below, err := filepath.Rel(m.dir, m.at(name))
	if err != nil || !filepath.IsLocal(below) {
		return "type: " + command + " " + m.at(name)
	}
	return toType(command, below)
}
