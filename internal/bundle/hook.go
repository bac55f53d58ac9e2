package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

func stages() []Stage { return []Stage{stagePrebuild, stagePredeploy, stagePostdeploy} }

func (r *reader) readPlatform() error {
	for _, kind := range []struct {
		name string
		into *[]Hook
	}{{"hooks", &r.bundle.Hooks}, {"confighooks", &r.bundle.ConfigHooks}} {
		for _, stage := range stages() {
			if err := r.readStage(path.Join(platformName, kind.name, string(stage)), stage, kind.into); err != nil {
				return err
			}
		}
		r.reportStrayStages(path.Join(platformName, kind.name))
	}
	return r.reportInPlatform()
}

func (r *reader) reportInPlatform() error {
	entries, err := readDir(filepath.Join(r.dir, platformName))
	if err != nil {
		return fmt.Errorf("listing %s: %w", platformName, err)
	}

	for _, e := range entries {
		switch name := e.Name(); name {
		case "hooks", "confighooks", ".gitkeep":
		case "nginx", "httpd":
			r.notUsed(path.Join(platformName, name), noProxy)
		default:
			r.notUsed(path.Join(platformName, name), "ignored: only the folders hooks and confighooks are read")
		}
	}

	return nil
}

// reportStrayStages reports names that are not stages, such as "pre-build", because their hooks do not run.
func (r *reader) reportStrayStages(below string) {
	entries, _ := readDir(filepath.Join(r.dir, below))
	for _, e := range entries {
		if !slices.Contains(stages(), Stage(e.Name())) && !strings.HasPrefix(e.Name(), ".") {
			r.notUsed(path.Join(below, e.Name()), "not a stage: put hooks in prebuild, predeploy or postdeploy")
		}
	}
}

func (r *reader) readStage(below string, stage Stage, into *[]Hook) error {
	entries, err := readDir(filepath.Join(r.dir, below))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listing the hooks: %w", err)
	case len(entries) > maxHooks:
		r.refuse(filepath.Join(r.dir, below), fmt.Sprintf("there are more than %d hooks", maxHooks),
			"combine several into one script")
		return nil
	}

	for _, e := range entries {
		file := path.Join(below, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				r.notUsed(file, "hidden files are not run: rename it without the dot if it is a hook")
			}
			continue
		}
		if err := r.readHook(file, stage, into); err != nil {
			return err
		}
	}

	return nil
}

func (r *reader) readHook(file string, stage Stage, into *[]Hook) error {
	at := filepath.Join(r.dir, file)
	info, err := os.Stat(at)
	if err != nil {
		return fmt.Errorf("reading the hooks: %w", err)
	}

	if !info.Mode().IsRegular() {
		r.notUsed(file, "this is not a file: hooks are programs and scripts")
		return nil
	}

	begin, err := readStart(at)
	if err != nil {
		return err
	}

	h := Hook{Stage: stage, File: file}
	executable := info.Mode()&0o111 != 0
	line, script := shebang(begin)
	switch {
	case script && strings.HasSuffix(line, "\r"):
		r.refuseLine(at, 1, "the first line"+windowsLine, toType(unixLines, file))
		return nil
	case script && len(strings.Fields(line)) == 0:
		r.refuseLine(at, 1, `no program follows "#!"`, `add one, for example "#!/bin/sh"`)
		return nil
	case script && !executable:
		h.Interpreter = interpreter(line)
		r.warn(at, "the file has no execute permission: it is run by "+h.Interpreter[0], toType("chmod +x", file))
	case script:
	case !executable:
		r.notUsed(file, "this is neither executable nor a script, so it is not run; type chmod +x if it is a hook")
		return nil
	case isText(begin):
		h.Interpreter = []string{"/bin/sh"}
		r.warn(at, `the script has no "#!" line: it is run by /bin/sh`,
			`start it with "#!/bin/sh" or another interpreter`)
	}

	*into = append(*into, h)
	return nil
}

const (
	windowsLine = " ends with CR LF: the system would look for a program name that ends with CR"
	unixLines   = `sed -i 's/\r$//'` // followed by a file name
)

func toType(command, file string) string {
	if !programName.MatchString(file) {
		file = "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	return "type in the bundle's folder: " + command + " " + file
}

func shebang(begin []byte) (line string, script bool) {
	rest, script := bytes.CutPrefix(begin, []byte("#!"))
	first, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(first), script
}

func interpreter(line string) []string {
	line = strings.Trim(line, " \t")
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return []string{line}
	}
	return []string{line[:end], strings.Trim(line[end:], " \t")}
}

// isText reports whether a file that starts with begin may be text. If readStart reached its limit, the last character
// may be incomplete.
func isText(begin []byte) bool {
	if len(begin) == maxShebang {
		begin = trimIncompleteRune(begin)
	}
	return utf8.Valid(begin) && bytes.IndexByte(begin, 0) < 0
}

func trimIncompleteRune(text []byte) []byte {
	for i := len(text) - 1; i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}
