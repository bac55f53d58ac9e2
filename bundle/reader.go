package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/yamlfile"
)

// reader is one reading of a bundle: it collects what is wrong in all files
// before anything is refused.
type reader struct {
	// dir is the folder as it was given, for messages.
	dir      string
	entries  []fs.DirEntry
	bundle   *Bundle
	problems []Problem
}

// read reads every file that is there. An error means that something could not
// be read at all.
func (o *reader) read() error {
	for _, part := range []struct {
		name string
		read func() error
	}{
		{procfileName, o.readProcfile},
		{buildfileName, o.readBuildfile},
		{extensionsName, o.readExtensions},
		{manifestName, o.readManifest},
		{platformName, o.readPlatform},
	} {
		if !o.has(part.name) {
			continue
		}
		if err := part.read(); err != nil {
			return err
		}
	}
	if o.has(cronName) {
		o.bundle.Cron = filepath.Join(o.dir, cronName)
	}
	o.nameUnread()
	if !o.has(procfileName) {
		platformDefaults{o}.conclude()
	}
	platformDefaults{o}.namePythonSettings()
	slices.SortStableFunc(o.bundle.Unsupported, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return nil
}

// has reports whether the bundle holds exactly this name. File systems that
// fold case would open "procfile" too, and Elastic Beanstalk would not.
func (o *reader) has(name string) bool {
	return slices.ContainsFunc(o.entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

// keep collects the problems of a file that is wrong; other errors end the
// reading.
func (o *reader) keep(err error) error {
	var wrong *Error
	if !errors.As(err, &wrong) {
		return err
	}
	o.problems = append(o.problems, wrong.Problems...)
	return nil
}

// take adds what was read from one document.
func (o *reader) take(d *document, settings []Setting) {
	o.problems = append(o.problems, d.problems...)
	o.bundle.Unsupported = append(o.bundle.Unsupported, d.findings...)
	o.bundle.Settings = append(o.bundle.Settings, settings...)
}

func (o *reader) notUsed(file, what string) {
	o.bundle.Unsupported = append(o.bundle.Unsupported, Finding{File: file, What: what})
}

func (o *reader) refuse(file, text, hint string) { o.refuseLine(file, 0, text, hint) }

func (o *reader) refuseLine(file string, line int, text, hint string) {
	o.problems = append(o.problems, Problem{Where: yamlfile.Place(file, line, 0), Text: text, Hint: hint})
}

func (o *reader) warn(file, text, hint string) {
	o.bundle.Warnings = append(o.bundle.Warnings, Problem{Where: file, Text: text, Hint: hint})
}

// readFile reads a file of the bundle to one byte above the bound, so that
// whoever parses it can tell that it is too long. Only regular files are read:
// a pipe of that name would never end.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Problems: []Problem{{Where: path, Text: "this is no regular file",
			Hint: "put a text file in its place, or delete it"}}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// list names up to three of names, and how many more there are.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Problem is one thing that is wrong, or worth knowing, in one place of the bundle,
// which is named as the bundle was opened with.
type Problem = yamlfile.Problem

// Error holds everything that is wrong in a bundle; it is never empty.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem and an indented line per hint.
func (e *Error) Error() string { return yamlfile.Join(e.Problems) }

// Finding is one thing in the bundle that Elastic Beanstalk acts on and tendril
// does not.
type Finding struct {
	// File is the path below the bundle's folder, with slashes.
	File string
	// Line counts from 1; 0 when the file as a whole is meant.
	Line int
	// What says what it is for, that nothing is done about it, and what to do
	// instead.
	What string
}

// String returns the finding as "file:line: what", or "file: what" for line 0.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Finding returns a finding about a file of the bundle, which is named as the
// bundle was opened with, as Settings name it.
func (b *Bundle) Finding(file string, line int, what string) Finding {
	if abs, err := filepath.Abs(file); err == nil {
		if below, err := filepath.Rel(b.Dir, abs); err == nil {
			file = filepath.ToSlash(below)
		}
	}
	return Finding{File: file, Line: line, What: what}
}
