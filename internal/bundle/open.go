package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/host/trust"
)

// Open reads the bundle in a folder; a Procfile is optional. The error is an [*invalidError] if a file is invalid,
// and wraps [fs.ErrNotExist] if the folder does not exist.
func Open(dir string) (*Bundle, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder %s: %w", dir, err)
	}

	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("folder %s: %w", dir, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	case !info.IsDir():
		return nil, notABundle(dir, info)
	}

	entries, err := readDir(abs)
	if err != nil {
		return nil, fmt.Errorf("listing the folder %s: %w", dir, err)
	}

	r := reader{dir: dir, entries: entries, bundle: &Bundle{Dir: abs}}
	if err := r.read(); err != nil {
		return nil, err
	}
	if len(r.problems) > 0 {
		return nil, &invalidError{Problems: r.problems}
	}

	return r.bundle, nil
}

func notABundle(path string, info fs.FileInfo) error {
	what := "is not a zip archive"
	begin, err := readStart(path)
	switch {
	case !info.Mode().IsRegular():
		what = "is neither a folder nor a file"
	case err != nil:
		return err
	case len(begin) == 0:
		what = "is an empty file"
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")), bytes.HasPrefix(begin, []byte("BZh")),
		bytes.HasPrefix(begin, []byte("\xfd7zXZ")), bytes.HasPrefix(begin, []byte("7z\xbc\xaf")):
		what = "is an archive, but not a zip archive"
	case strings.EqualFold(filepath.Ext(path), ".zip"):
		what = "is named like a zip archive but is not one, or it is damaged"
	}

	return fmt.Errorf("%s %s: name the folder of the app and its Procfile, or a zip archive of its content", path, what)
}

// IsArchive reports whether path is a zip archive. The error wraps [fs.ErrNotExist] if path does not exist.
func IsArchive(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("looking for the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	begin, err := readStart(path)
	if err != nil {
		return false, err
	}
	// An empty archive starts with the end record.
	return bytes.HasPrefix(begin, []byte("PK\x03\x04")) || bytes.HasPrefix(begin, []byte("PK\x05\x06")), nil
}

// MarksFolder reports whether a folder contains a Procfile, Buildfile, cron.yaml or tendril.yaml.
func MarksFolder(dir string) bool {
	return slices.ContainsFunc([]string{procfileName, buildfileName, cronName, "tendril.yaml"}, func(name string) bool {
		return isFile(filepath.Join(dir, name))
	})
}

func (r *reader) read() error {
	if err := r.readFiles(); err != nil {
		return err
	}
	if r.has(cronName) {
		r.bundle.Cron = filepath.Join(r.dir, cronName)
	}

	r.refuseUnstartable()
	r.reportUnread()
	if !r.has(procfileName) {
		r.detectDefault()
	}
	r.reportPythonSettings()
	slices.SortStableFunc(r.bundle.Unsupported, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return nil
}

func (r *reader) readFiles() error {
	// In order of increasing precedence: env.yaml overrides .ebextensions.
	for _, part := range []struct {
		name string
		read func() error
	}{
		{procfileName, r.readProcfile},
		{buildfileName, r.readBuildfile},
		{extensionsName, r.readExtensions},
		{manifestName, r.readManifest},
		{platformName, r.readPlatform},
	} {
		if !r.has(part.name) {
			continue
		}
		if err := part.read(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) refuseUnstartable() {
	asGiven := *r.bundle // with the path passed to Open, for messages
	asGiven.Dir = r.dir
	r.problems = append(r.problems, asGiven.checkPrograms("").refused...)
}

// Trusted returns a [*trust.Error] if other users can change the bundle's archive or, without an archive, the programs
// and settings in its source folder. It does not check the app's own code.
func (b *Bundle) Trusted() error {
	source := b.Dir
	if info, err := os.Stat(b.Archive); err == nil {
		if !info.IsDir() {
			return trust.File(b.Archive)
		}
		source = b.Archive
	}
	return trust.Folder(source, procfileName, buildfileName, cronName, manifestName, extensionsName, platformName)
}
