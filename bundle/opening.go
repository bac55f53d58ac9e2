package bundle

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"tendril/yamlfile"
)

// opening is one reading of a bundle: it collects what is wrong in all files
// before anything is refused.
type opening struct {
	// dir is the folder as it was given, for messages.
	dir      string
	entries  []fs.DirEntry
	bundle   *Bundle
	problems []Problem
}

// read reads every file that is there. An error means that something could not
// be read at all.
func (o *opening) read() error {
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
		o.conclude()
	}
	o.namePythonSettings()
	slices.SortStableFunc(o.bundle.Unsupported, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return nil
}

// has reports whether the bundle holds exactly this name. File systems that
// fold case would open "procfile" too, and Elastic Beanstalk would not.
func (o *opening) has(name string) bool {
	return slices.ContainsFunc(o.entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

// keep collects the problems of a file that is wrong; other errors end the
// reading.
func (o *opening) keep(err error) error {
	var wrong *Error
	if !errors.As(err, &wrong) {
		return err
	}
	o.problems = append(o.problems, wrong.Problems...)
	return nil
}

// take adds what was read from one document.
func (o *opening) take(d *document, settings []Setting) {
	o.problems = append(o.problems, d.problems...)
	o.bundle.Unsupported = append(o.bundle.Unsupported, d.findings...)
	o.bundle.Settings = append(o.bundle.Settings, settings...)
}

func (o *opening) notUsed(file, what string) {
	o.bundle.Unsupported = append(o.bundle.Unsupported, Finding{File: file, What: what})
}

func (o *opening) refuse(file, text, hint string) { o.refuseLine(file, 0, text, hint) }

func (o *opening) refuseLine(file string, line int, text, hint string) {
	o.problems = append(o.problems, Problem{Where: yamlfile.Place(file, line, 0), Text: text, Hint: hint})
}

func (o *opening) warn(file, text, hint string) {
	o.bundle.Warnings = append(o.bundle.Warnings, Problem{Where: file, Text: text, Hint: hint})
}
