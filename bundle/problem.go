package bundle

import (
	"fmt"
	"path/filepath"

	"tendril/yamlfile"
)

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
