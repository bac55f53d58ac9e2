package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	// Processes are the lines of the Procfile: web first where there is one,
	// then the others in the order of the file. Empty without a Procfile.
	Processes []Process
	// Cron is the path of the bundle's cron.yaml; "" when it has none.
	Cron string
	// Unsupported names what Elastic Beanstalk would act on and tendril does
	// not yet, sorted by file. Empty when nothing is left aside.
	Unsupported []Finding
}

// Process is one line of a Procfile.
type Process struct {
	// Name is 1 to 64 letters, digits, "_" and "-"; unique in its file.
	Name string
	// Command is the rest of the line for a shell, never empty.
	Command string
	// Line is where the Procfile says so, from 1.
	Line int
}

// Finding is one file of the bundle that tendril recognises and does not act
// on.
type Finding struct {
	// File is the path below the bundle's folder, with slashes.
	File string
	// What says what the file is for and that nothing is done about it.
	What string
}

// String returns the finding as "file: what".
func (f Finding) String() string { return f.File + ": " + f.What }

// Open reads the bundle in the folder dir. The error is an [*Error] when a
// file in it is wrong, and wraps fs.ErrNotExist when there is no such folder.
// A folder without a Procfile opens.
func Open(dir string) (*Bundle, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: name the folder that holds the app and its Procfile: %w", dir, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a file: name the folder that holds the app and its Procfile", dir)
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return nil, fmt.Errorf("listing the folder %s: %w", dir, err)
	}
	b := &Bundle{Dir: abs, Unsupported: unsupported(abs, entries)}
	if hasFile(entries, cronName) {
		b.Cron = filepath.Join(dir, cronName)
	}
	if hasFile(entries, procfileName) {
		if b.Processes, err = readProcfile(filepath.Join(dir, procfileName)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Web returns the process that is the app. The error says what to write when
// the bundle names none.
func (b *Bundle) Web() (Process, error) {
	if len(b.Processes) == 0 {
		return Process{}, fmt.Errorf("%s has no Procfile that names a process: write one with the line %q, or give the command after --", b.Dir, "web: COMMAND")
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

// Name returns a name for the environment that is made of the folder's: what
// is no letter, digit, "_" or "-" becomes "-", and it is cut at 64 characters.
// It is "" when nothing of the folder's name is left, as for "/".
func (b *Bundle) Name() string {
	clean := strings.Map(func(r rune) rune {
		if isNameByte(r) {
			return r
		}
		return '-'
	}, filepath.Base(b.Dir))
	if len(clean) > maxName {
		clean = clean[:maxName]
	}
	return strings.Trim(clean, "-")
}

// hasFile reports whether the listing holds exactly this name. File systems
// that fold case would open "procfile" too, and Elastic Beanstalk would not.
func hasFile(entries []fs.DirEntry, name string) bool {
	for _, e := range entries {
		if e.Name() == name {
			return true
		}
	}
	return false
}
