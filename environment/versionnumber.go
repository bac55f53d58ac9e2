package environment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"tendril/config"
	"tendril/datadir"
)

// versionFile is the file in the data directory with the number that was given to a
// version of the app last.
const versionFile = "app.version"

// nextVersion returns the number of a new version: 1, and one more each time, also after
// a restart, so that a number names one version for ever. Where no file is written, as
// with the console off and no queue here, the numbers begin anew with each start.
func (e *Environment) nextVersion() int {
	if e.s.Console == config.Off && e.broker == nil {
		e.lastVersion++
		return e.lastVersion
	}
	path := filepath.Join(e.s.DataDir, versionFile)
	last, err := readNumber(path)
	e.lastVersion = max(e.lastVersion, last) + 1
	err = errors.Join(err, writeNumber(path, e.lastVersion))
	if err != nil {
		e.report.note(slog.LevelWarn, "deploy", "numbers of versions may be used again after a restart: "+err.Error())
	}
	return e.lastVersion
}

// readNumber returns the number in a file; 0 where there is no file.
func readNumber(path string) (int, error) {
	if err := datadir.CheckFile(path); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s holds no number: remove it", path)
	}
	return n, nil
}

// writeNumber replaces the file, so that it holds the old number or the new one.
func writeNumber(path string, n int) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, n)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
