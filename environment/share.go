package environment

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"tendril/bundle"
	"tendril/supervisor"
)

// closeVersions leaves the versions of earlier starts to their owner alone.
func (e *Environment) closeVersions() {
	if err := bundle.CloseVersions(e.s.DataDir); err != nil {
		e.report.note(slog.LevelWarn, "environment", "other users may be able to read versions of the app: "+err.Error())
	}
}

// shareBundle lets the app's user into the bundle where that was unpacked here.
func (e *Environment) shareBundle(context.Context) error {
	if e.Bundle == nil {
		return nil
	}
	return e.shareVersion(e.Bundle.Dir, true)
}

func (e *Environment) shareVersion(dir string, fresh bool) error {
	if os.Geteuid() != 0 || e.s.AppUser == "" {
		return nil // whoever runs tendril runs the app
	}
	gid, err := supervisor.GroupOf(e.s.AppUser)
	if err != nil {
		return fmt.Errorf("%w: --app-user: %w", ErrSettings, err)
	}
	return bundle.ShareVersion(e.s.DataDir, dir, gid, fresh)
}
