package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const shellPath = "/bin/sh"

func commandOf(p *Process) (path string, argv []string, err error) {
	if p.Shell != "" {
		return shellPath, []string{"sh", "-c", execLine(p.Shell)}, nil
	}
	path, err = lookPath(p.Argv[0], p.Dir, p.Env)
	return path, p.Argv, err
}

// lookPath finds a program. Unlike execvp, it ignores relative entries of PATH, because they depend on the working
// directory.
func lookPath(file, dir string, env []string) (string, error) {
	if strings.Contains(file, "/") {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, file)
		}
		return file, checkExecutable(path)
	}

	search := SearchPath(env)
	for _, folder := range filepath.SplitList(search) {
		path := filepath.Join(folder, file)
		if filepath.IsAbs(path) && checkExecutable(path) == nil {
			return path, nil
		}
	}

	hint := "install it, or use its full path"
	if local := filepath.Join(".venv", "bin", file); checkExecutable(filepath.Join(dir, local)) == nil {
		hint = "use " + local
	}
	return "", fmt.Errorf("program %q not found in PATH %q: %s", file, search, hint)
}

// SearchPath returns the PATH of an environment, or a default path if PATH is not set.
func SearchPath(env []string) string {
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = value
		}
	}
	return search
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file: try chmod +x", path)
	}
	return nil
}

func execLine(line string) string {
	if isSimpleCommand(line) {
		return "exec " + strings.TrimLeft(line, " \t")
	}
	return line
}

// isSimpleCommand reports whether line is definitely one program with arguments and redirections. A wrong false only
// costs a shell process.
func isSimpleCommand(line string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	first, _, _ = strings.Cut(first, "\t")
	if first == "" || isShellWord(first) || isAssignment(first) || strings.HasPrefix(first, "$") {
		return false
	}
	return isOneCommand(line)
}

func isOneCommand(line string) bool {
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case c == '\\':
			i++
			if i == len(line) || line[i] == '\n' {
				return false
			}
		case c == '`', c == '$' && i+1 < len(line) && line[i+1] == '(':
			return false
		case quote == '"':
			if c == '"' {
				quote = 0
			}
		case c == '"', c == '\'':
			quote = c
		case c == '&' && i > 0 && (line[i-1] == '>' || line[i-1] == '<'):
			// The & in 2>&1 is part of a redirection.
		case strings.IndexByte(";&|()\n\r", c) >= 0:
			return false
		}
	}

	return quote == 0
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	startsWithDigit := name != "" && '0' <= name[0] && name[0] <= '9'
	return ok && name != "" && !startsWithDigit &&
		!strings.ContainsFunc(name, func(c rune) bool { return !isNameCharacter(c) })
}

func isShellWord(word string) bool {
	switch word {
	case "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
		"{", "}", "!", "[[", "]]", "function", "select", "time", "coproc",
		".", ":", "alias", "bg", "break", "cd", "command", "continue", "eval", "exec", "exit", "export", "fg",
		"getopts", "hash", "jobs", "local", "read", "readonly", "return", "set", "shift", "source", "times",
		"trap", "type", "ulimit", "umask", "unalias", "unset", "wait":
		return true
	}
	return strings.HasPrefix(word, "#")
}

// An exit within earlyExit of the start may mean a missing file or a daemon.
const earlyExit = 10 * time.Second

var interpreters = regexp.MustCompile(`^(python[0-9.]*|node|nodejs|ruby|perl|php|sh|bash|java)$`)

// missingFile returns text about a missing or non-executable file that explains an early exit, or "".
func (p *Process) missingFile(code int) string {
	words := p.Argv
	if p.Shell != "" {
		line := strings.TrimPrefix(strings.TrimLeft(p.Shell, " \t"), "exec ")
		if !isSimpleCommand(line) {
			return ""
		}
		words = strings.Fields(line)
	}

	program := words[0]
	switch {
	case p.isExpanded(program):
		return ""
	case code == 126 || code == 127:
		return p.programProblem(program)
	case interpreters.MatchString(filepath.Base(program)):
		return p.missingScript(words[1:])
	}
	return ""
}

func (p *Process) programProblem(program string) string {
	_, err := lookPath(program, p.Dir, p.Env)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return p.fileNotFound(program)
	}
	return err.Error()
}

func (p *Process) missingScript(arguments []string) string {
	file := scriptOf(arguments)
	if file == "" || p.isExpanded(file) {
		return ""
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, file)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return p.fileNotFound(file)
	}
	return ""
}

func (p *Process) isExpanded(word string) bool {
	return p.Shell != "" && strings.ContainsAny(word, "\"'\\$`*?[~<>#")
}

func (p *Process) fileNotFound(name string) string {
	if filepath.IsAbs(name) || p.Dir == "" {
		return "file not found: " + name
	}
	return "file not found: " + name + " in " + p.Dir
}

// scriptOf returns "" after an option that may take a value.
func scriptOf(arguments []string) string {
	for i, word := range arguments {
		switch {
		case word == "-jar" && i+1 < len(arguments):
			return arguments[i+1]
		case word == "-u", word == "-B", word == "-O": // of Python
		case strings.HasPrefix(word, "--") && strings.Contains(word, "="):
		case strings.HasPrefix(word, "-"):
			return ""
		default:
			return word
		}
	}
	return ""
}
