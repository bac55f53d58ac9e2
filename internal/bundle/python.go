package bundle

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// VirtualEnv returns the absolute path of .venv or venv, or "" if neither is a Python virtual environment.
func (b *Bundle) VirtualEnv() string {
	for _, name := range []string{".venv", "venv"} {
		dir := filepath.Join(b.Dir, name)
		if isFile(filepath.Join(dir, "pyvenv.cfg")) {
			return dir
		}
	}
	return ""
}

// RequirementsFile lists an app's Python packages.
const RequirementsFile = "requirements.txt"

// The paths are relative to a folder in PATH; the second is for pyenv.
var packagesInstalled = []string{"../lib/python3*/*-packages", "../versions/*/lib/python3*/*-packages"}

var (
	requirement = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`)
	separators  = regexp.MustCompile(`[-_.]+`)
)

// RequirementsInstalled reports whether the Python installations in paths, a list like PATH, together have every
// package in [RequirementsFile], in any version.
func (b *Bundle) RequirementsInstalled(paths string) bool {
	data, err := readFile(filepath.Join(b.Dir, RequirementsFile), maxDocument)
	if err != nil {
		return false
	}

	installed := pythonPackages(paths)
	for line := range strings.Lines(string(data)) {
		name := requirement.FindString(strings.TrimSpace(line))
		if name != "" && !slices.Contains(installed, normalPackage(name)) {
			return false
		}
	}
	return true
}

func pythonPackages(paths string) (names []string) {
	for _, dir := range filepath.SplitList(paths) {
		for _, pattern := range packagesInstalled {
			found, _ := filepath.Glob(filepath.Join(dir, pattern, "*.dist-info")) // only an invalid pattern is an error
			for _, info := range found {
				name, _, _ := strings.Cut(filepath.Base(info), "-")
				names = append(names, normalPackage(name))
			}
		}
	}
	return names
}

// normalPackage normalizes a name as the Python Package Index does.
func normalPackage(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}
