package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tendril/trust"
)

// settingsFile is a file that was found and read.
type settingsFile struct {
	path string
	data []byte
	info fs.FileInfo
	// explicit: somebody named it.
	explicit bool
}

// findFile returns the first settings file there is. A named one must exist;
// where nobody named one, none is needed.
func findFile(named string, src *Sources, vars map[string]string) (*settingsFile, *Problem) {
	if named != "" {
		f, err := readFile(named)
		if err != nil {
			return nil, unreadable(named, err)
		}
		f.explicit = true
		return f, nil
	}
	for _, path := range candidates(src, vars) {
		f, err := readFile(path)
		switch {
		case err == nil:
			return f, f.untrusted()
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		default:
			return nil, unreadable(path, err)
		}
	}
	return nil, nil
}

// candidates are the places of a settings file that nobody named, the
// strongest first.
func candidates(src *Sources, vars map[string]string) []string {
	paths := []string{filepath.Join(src.Dir, "tendril.yaml")}
	if home := vars["XDG_CONFIG_HOME"]; filepath.IsAbs(home) {
		paths = append(paths, filepath.Join(home, "tendril", "config.yaml"))
	} else if home := vars["HOME"]; home != "" {
		paths = append(paths, filepath.Join(home, ".config", "tendril", "config.yaml"))
	}
	if src.SystemFile != "" {
		return append(paths, src.SystemFile)
	}
	return append(paths, systemFile)
}

// readFile reads a regular file to one byte above the bound.
func readFile(path string) (*settingsFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return &settingsFile{path: path, data: data, info: info}, nil
}

// untrusted refuses a file that nobody named and that others decide on: it may name
// commands to run.
func (f *settingsFile) untrusted() *Problem {
	hint := "name the file with --config=" + f.path + " or TENDRIL_CONFIG if it is to be trusted"
	var wrong *trust.Error
	switch err := trust.File(f.path); {
	case errors.As(err, &wrong):
		whose := wrong.Text
		if wrong.Path != f.path {
			whose = "it is in the folder " + wrong.Path + ": " + wrong.Text
		}
		return &Problem{Where: f.path, Option: "config", Text: "the settings file is not trusted: " + whose,
			Hint: "type '" + wrong.Fix + "', or " + hint}
	case err != nil:
		return unreadable(f.path, err)
	}
	if now, err := os.Stat(f.path); err != nil || !os.SameFile(f.info, now) { // what was checked is not what was read
		return &Problem{Where: f.path, Option: "config", Text: "the settings file was replaced while it was read",
			Hint: "try again"}
	}
	return nil
}

func unreadable(path string, err error) *Problem {
	p := Problem{Where: path, Option: "config", Hint: "give --config the path of a file that this user may read"}
	var reason *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Text = "there is no such settings file"
	case errors.As(err, &reason):
		p.Text = fmt.Sprintf("the settings file cannot be read: %v", reason.Err)
	default:
		p.Text = fmt.Sprintf("the settings file cannot be read: %v", err)
	}
	return &p
}
