package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// soon is how long a process may have run whose command names something that is missing
// for that to be the reason of its end.
const soon = 10 * time.Second

// interpreters run the file that their first argument names.
var interpreters = regexp.MustCompile(`^(python[0-9.]*|node|nodejs|ruby|perl|php|sh|bash|java)$`)

// missing says which program or file of the command does not exist, given the status of
// a run that ended soon; "" when that is not certain.
func (p *Process) missing(code int) string {
	words := p.Argv
	if p.Shell != "" {
		line := strings.TrimPrefix(strings.TrimLeft(p.Shell, " \t"), "exec ")
		if !isSimpleCommand(line) {
			return ""
		}
		words = strings.Fields(line)
	}
	if p.isExpanded(words[0]) {
		return ""
	}
	if code == 126 || code == 127 {
		_, err := lookPath(words[0], p.Dir, p.Env)
		switch {
		case err == nil:
			return ""
		case errors.Is(err, fs.ErrNotExist):
			return p.noFile(words[0])
		}
		return err.Error()
	}
	if !interpreters.MatchString(filepath.Base(words[0])) {
		return ""
	}
	file := scriptOf(words[1:])
	if file == "" || p.isExpanded(file) {
		return ""
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, file)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return p.noFile(file)
	}
	return ""
}

// isExpanded reports whether the shell makes something else of a word.
func (p *Process) isExpanded(word string) bool {
	return p.Shell != "" && strings.ContainsAny(word, "\"'\\$`*?[~<>#")
}

func (p *Process) noFile(name string) string {
	if filepath.IsAbs(name) || p.Dir == "" {
		return "there is no file " + name
	}
	return "there is no file " + name + " in " + p.Dir
}

// scriptOf returns the file among the arguments of an interpreter; "" when options stand
// before it that may mean something else.
func scriptOf(arguments []string) string {
	for i, word := range arguments {
		switch {
		case word == "-jar" && i+1 < len(arguments):
			return arguments[i+1]
		case word == "-u" || word == "-B" || word == "-O" || strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		case strings.HasPrefix(word, "-"):
			return ""
		default:
			return word
		}
	}
	return ""
}
