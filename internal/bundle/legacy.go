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

// LegacyEvent is an event in the life of an app on the platforms before Amazon Linux 2, which run the hooks of its folder.
type LegacyEvent string

// The events, by the names of their folders.
const (
	AppDeploy        LegacyEvent = "appdeploy"        // a version is deployed
	ConfigDeploy     LegacyEvent = "configdeploy"     // settings alone change
	RestartAppServer LegacyEvent = "restartappserver" // the version that runs is started anew
)

// LegacyHooks returns the steps of an event that configuration files have put into the folders EVENT/pre, before the
// app is started, and EVENT/enact and EVENT/post, after it, in the order of their names. They run in dir. Files
// without the execute permission are left out, and so are those that end in ".bak": copies that the section files
// makes. The error wraps a [*trust.Error] if another user can change the programs.
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
		info, err := os.Stat(path) // several folders may share a hook by links
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
