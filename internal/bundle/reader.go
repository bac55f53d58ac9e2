package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

type reader struct {
	// as passed to Open, for messages
	dir      string
	entries  []fs.DirEntry
	bundle   *Bundle
	problems []Problem
}

// has is case-sensitive, as on Elastic Beanstalk, even if the file system is not.
func (r *reader) has(name string) bool {
	return slices.ContainsFunc(r.entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

func (r *reader) keepProblems(err error) error {
	var wrong *invalidError
	if err == nil || !errors.As(err, &wrong) {
		return err
	}
	r.problems = append(r.problems, wrong.Problems...)
	return nil
}

func (r *reader) addDocument(d *document) {
	r.problems = append(r.problems, d.problems...)
	r.bundle.Unsupported = append(r.bundle.Unsupported, d.findings...)
	r.bundle.Settings = append(r.bundle.Settings, d.settings...)
}

func (r *reader) notUsed(file, what string) {
	r.bundle.Unsupported = append(r.bundle.Unsupported, Finding{File: file, What: what})
}

func (r *reader) refuse(file, text, hint string) { r.refuseLine(file, 0, text, hint) }

func (r *reader) refuseLine(file string, line int, text, hint string) {
	r.problems = append(r.problems, Problem{Where: yamlfile.Place(file, line, 0), Text: text, Hint: hint})
}

func (r *reader) warn(file, text, hint string) {
	r.bundle.Warnings = append(r.bundle.Warnings, Problem{Where: file, Text: text, Hint: hint})
}

// readFile reads up to one byte beyond the limit, so that callers can detect larger files. It rejects special files,
// which may block.
func readFile(path string, most int64) ([]byte, error) {
	data, _, err := yamlfile.ReadFile(path, most)
	switch {
	case errors.Is(err, yamlfile.ErrIrregular):
		return nil, &invalidError{Problems: []Problem{{Where: path, Text: "this is not a regular file",
			Hint: "replace it with a text file, or delete it"}}}
	case err != nil:
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	return data, nil
}

func readStart(path string) ([]byte, error) { return readFile(path, maxShebang-1) }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// readDir omits the files that macOS adds to archives and to other file systems.
func readDir(path string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(path)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "._") || e.Name() == ".DS_Store" || e.Name() == "__MACOSX"
	}), err
}

func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

const (
	procfileName   = "Procfile"
	buildfileName  = "Buildfile"
	extensionsName = ".ebextensions"
	manifestName   = "env.yaml"
	platformName   = ".platform"

	maxProcfile   = 64 << 10 // bytes
	maxProcesses  = 100
	maxName       = 64  // bytes
	maxExtensions = 200 // files
	maxHooks      = 200 // per stage
	maxShebang    = 256 // bytes, the limit of operating systems
)

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !isNameByte(r) })
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// packageJSON ignores errors, which npm reports.
func (r *reader) packageJSON() packageManifest {
	var m packageManifest
	data, err := readFile(filepath.Join(r.dir, "package.json"), maxDocument)
	if err != nil || len(data) > maxDocument || json.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &m) != nil {
		return packageManifest{}
	}
	return m
}

type packageManifest struct {
	Scripts      map[string]string          `json:"scripts"`
	Dependencies map[string]json.RawMessage `json:"dependencies"`
}
