package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tendril/internal/host/trust"
)

// LegacyEvent is a deployment event of platforms before Amazon Linux 2, and the name of the folder with its hooks.
type LegacyEvent string

// The legacy events.
const (
	AppDeploy        LegacyEvent = "appdeploy"
	ConfigDeploy     LegacyEvent = "configdeploy"
	RestartAppServer LegacyEvent = "restartappserver"
)

// LegacyHooks returns an event's steps in name order: before is from EVENT/pre, and after from EVENT/enact and
// EVENT/post. Files that are not executable or end in ".bak" are skipped. The error wraps a [*trust.Error] if another
// user can change the programs.
func LegacyHooks(folder string, event LegacyEvent, dir string) (before, after []Step, err error) {
	for _, stage := range []string{"pre", "enact", "post"} {
		steps, err := legacyStage(filepath.Join(folder, string(event), stage), Phase(string(event)+" "+stage), dir)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the hooks of %s: %w", event, err)
		}
		if stage == "pre" {
			before = steps
		} else {
			after = append(after, steps...)
		}
	}
	return before, after, nil
}

func legacyStage(folder string, phase Phase, dir string) (steps []Step, err error) {
	entries, err := readDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := trust.Folder(folder); err != nil {
		return nil, err
	}

	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path) // follows links, through which folders share hooks
		switch {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || strings.HasSuffix(path, ".bak"):
			continue
		case len(steps) == maxHooks:
			return nil, fmt.Errorf("there are more than %d hooks in %s", maxHooks, folder)
		}

		if err := trust.File(path); err != nil {
			return nil, err
		}

		steps = append(steps, Step{Phase: phase, Name: path, Argv: []string{path}, Dir: dir, File: path})
	}

	return steps, nil
}
