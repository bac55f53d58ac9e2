package environment

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// pidFile tells others the number of the app's main process: the first copy's of
// the version that serves, as long as it runs.
type pidFile struct {
	path string // "" for no file
	warn func(error)

	mu     sync.Mutex
	bearer *appCopy
	pids   map[*appCopy]int // of copies whose process runs
}

// newPIDFile finds out whether a file can be written there: a setting that cannot
// work is told before anything is started.
func (e *Environment) newPIDFile() (*pidFile, error) {
	f := &pidFile{pids: map[*appCopy]int{}, warn: func(err error) { e.report.note(slog.LevelWarn, "app", err.Error()) }}
	if e.s.PIDFile == "" {
		return f, nil
	}
	var err error
	if f.path, err = filepath.Abs(e.s.PIDFile); err == nil {
		if info, cannot := os.Lstat(f.path); cannot == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: pid-file %s: %w: choose another path", ErrSettings, f.path, errIrregular)
		}
		var probe *os.File
		if probe, err = f.beside(); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if wrong := (*os.PathError)(nil); errors.As(err, &wrong) {
		err = wrong.Err // without the name of the probe
	}
	if err != nil {
		return nil, fmt.Errorf("%w: pid-file %s: %w: choose a path in a folder that exists and may be written to",
			ErrSettings, f.path, err)
	}
	return f, nil
}

// beside makes an empty file with a name of its own in the same folder.
func (f *pidFile) beside() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+".*")
}

// started notes that a copy has a process. The first of all copies bears the file.
func (f *pidFile) started(c *appCopy, pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pids[c] = pid
	if f.bearer == nil {
		f.bearer = c
	}
	if f.bearer == c {
		f.write(pid)
	}
}

// ended notes that the process of a copy is gone.
func (f *pidFile) ended(c *appCopy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bearer == c {
		f.remove(f.pids[c])
	}
	delete(f.pids, c)
}

// handOver lets another copy bear the file.
func (f *pidFile) handOver(c *appCopy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.pids[f.bearer]
	f.bearer = c
	if pid := f.pids[c]; pid != 0 {
		f.write(pid)
	} else {
		f.remove(before)
	}
}

// write puts a number into the file, which appears whole or not at all, and takes
// the place of whatever was there. We never read it to learn whom to signal: what
// an earlier run left behind may by now be the number of a stranger.
func (f *pidFile) write(pid int) {
	if f.path == "" {
		return
	}
	file, err := f.beside()
	if err == nil {
		_, err = fmt.Fprintln(file, pid)
		err = errors.Join(err, file.Chmod(0o644), file.Close())
		if err == nil {
			err = os.Rename(file.Name(), f.path)
		}
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}
	if err != nil {
		f.warn(fmt.Errorf("writing the PID file: %w", err))
	}
}

// remove removes the file while it still speaks of this process.
func (f *pidFile) remove(pid int) {
	if f.path == "" {
		return
	}
	file, err := openRegular(f.path)
	if err != nil {
		return // it is gone, or not ours
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid) {
		_ = os.Remove(f.path)
	}
}
