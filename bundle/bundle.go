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

	"tendril/trust"
)

// cronName is the file of periodic tasks.
const cronName = "cron.yaml"

// MainProcess is the name of the process that is the app: the one that
// listens on PORT and gets the messages.
const MainProcess = "web"

// Bundle is what a source bundle says about the app in it.
type Bundle struct {
	// Dir is the bundle's folder as an absolute path.
	Dir string
	// Called is the name that counts in the place of the folder's; "" for the
	// folder's. Open leaves it empty.
	Called string
	// Processes are the lines of the Procfile: web first where there is one,
	// then the others in the order of the file. Empty without a Procfile.
	Processes []Process
	// Build are the lines of the Buildfile in its order: each is run to its end
	// before the app is started. Empty without a Buildfile.
	Build []Process
	// Default is what one of Elastic Beanstalk's platforms would run for want of
	// a Procfile; nil where there is a Procfile, and where nothing can be told. It
	// is in Processes and Plan only after WithDefault.
	Default *Default
	// Cron is the path of the bundle's cron.yaml; "" when it has none.
	Cron string
	// Settings are the options that .ebextensions and env.yaml set, from the
	// weakest to the strongest: the last one of an option is in force. A value of
	// "" sets an option to nothing, unless the setting is Computed.
	Settings []Setting
	// Manifest is what env.yaml says about the environment.
	Manifest Manifest
	// Links are the variables through which env.yaml tells the app of other
	// environments, in the order of the file.
	Links []Link
	// Hooks are the programs of .platform/hooks, by stage and then by name.
	Hooks []Hook
	// ConfigHooks are those of .platform/confighooks, for a change of settings
	// alone.
	ConfigHooks []Hook
	// Warnings are what is done in spite of a flaw, in the order of the files.
	Warnings []Problem
	// Unsupported names what Elastic Beanstalk would act on and tendril does
	// not, sorted by file and line. Empty when nothing is left aside.
	Unsupported []Finding
	// Advice is what else to say to someone who looks for the app in vain; "" for
	// nothing.
	Advice string
}

// Process is one line of a Procfile or of a Buildfile.
type Process struct {
	// Name is 1 to 64 letters, digits, "_" and "-"; unique in its file.
	Name string
	// Command is the rest of the line for a shell, never empty.
	Command string
	// Line is where the file says so, from 1; 0 for one that no file says.
	Line int
}

// Open reads the bundle in the folder dir. The error is an [*Error] when a
// file in it is wrong, and wraps fs.ErrNotExist when there is no such folder.
// A folder without a Procfile opens. An archive is to be unpacked first, see
// [IsArchive] and [Unpack].
func Open(dir string) (*Bundle, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: name the folder that holds the app and its Procfile: %w", dir,
			fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	case !info.IsDir():
		return nil, notABundle(dir, info)
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return nil, fmt.Errorf("listing the folder %s: %w", dir, err)
	}
	o := reader{dir: dir, entries: entries, bundle: &Bundle{Dir: abs}}
	if err := o.read(); err != nil {
		return nil, err
	}
	if len(o.problems) > 0 {
		return nil, &Error{Problems: o.problems}
	}
	return o.bundle, nil
}

// notABundle says what a file is that is neither a folder nor a zip archive.
func notABundle(path string, info fs.FileInfo) error {
	what := "is not a zip archive"
	begin, err := readBeginning(path)
	switch {
	case !info.Mode().IsRegular():
		what = "is neither a folder nor a file"
	case err != nil:
		return err
	case len(begin) == 0:
		what = "is an empty file"
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")), bytes.HasPrefix(begin, []byte("BZh")),
		bytes.HasPrefix(begin, []byte("\xfd7zXZ")), bytes.HasPrefix(begin, []byte("7z\xbc\xaf")):
		what = "is an archive of another kind than zip"
	case strings.EqualFold(filepath.Ext(path), ".zip"):
		what = "is not a zip archive, in spite of its name, or it is damaged"
	}
	return fmt.Errorf("%s %s: name the folder that holds the app and its Procfile, or a zip archive of what is in that "+
		"folder", path, what)
}

// Web returns the process that is the app. The error says what to write when
// the bundle names none.
func (b *Bundle) Web() (Process, error) {
	if len(b.Processes) == 0 {
		return Process{}, b.noProcess()
	}
	if b.Processes[0].Name == MainProcess {
		return b.Processes[0], nil
	}
	names := make([]string, len(b.Processes))
	for i, p := range b.Processes {
		names[i] = p.Name
	}
	return Process{}, fmt.Errorf("%s names no process %q, only %s: the app that gets the messages must be called %[2]q",
		filepath.Join(b.Dir, procfileName), MainProcess, strings.Join(names, ", "))
}

// noProcess says what to write for want of a Procfile.
func (b *Bundle) noProcess() error {
	if b.Default != nil {
		return fmt.Errorf("%s has no Procfile that names a process: write one with the line %q, which is what Elastic "+
			"Beanstalk runs for %s, or give the command after --",
			b.Dir, MainProcess+": "+b.Default.Process.Command, b.Default.File)
	}
	advice := ""
	if b.Advice != "" {
		advice = " (" + b.Advice + ")"
	}
	return fmt.Errorf("%s has no Procfile that names a process: write one with the line %q, or give the command after "+
		"--%s", b.Dir, "web: COMMAND", advice)
}

// Name returns a name for the environment: that of env.yaml, else Called, else the
// folder's.
// What is no letter, digit, "_" or "-" becomes "-", and it is cut at 64
// characters. It is "" when nothing is left, as for "/".
func (b *Bundle) Name() string {
	name := cmp.Or(b.Manifest.Name, b.Called, filepath.Base(b.Dir))
	clean := strings.Map(func(r rune) rune {
		if isNameByte(r) {
			return r
		}
		return '-'
	}, name)
	if len(clean) > maxName {
		clean = clean[:maxName]
	}
	return strings.Trim(clean, "-")
}

// MarksFolder reports whether a folder holds a file by which tendril takes it for an
// app's without being told: a Procfile, Buildfile, cron.yaml or tendril.yaml.
func MarksFolder(dir string) bool {
	return slices.ContainsFunc([]string{procfileName, buildfileName, cronName, "tendril.yaml"}, func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

// Trusted returns a [*trust.Error] when other users decide what is run from the
// folder; nil when only this user does. The app's own code is not looked at.
func (b *Bundle) Trusted() error {
	return trust.Folder(b.Dir, procfileName, buildfileName, cronName, manifestName, extensionsName, platformName)
}

// IsArchive reports whether path is a regular file that begins as zip archives
// do. The error wraps fs.ErrNotExist when there is nothing of that name.
func IsArchive(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("looking for the bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	begin, err := readBeginning(path)
	if err != nil {
		return false, err
	}
	// An archive without files has the record of its end alone.
	return bytes.HasPrefix(begin, []byte("PK\x03\x04")) || bytes.HasPrefix(begin, []byte("PK\x05\x06")), nil
}
