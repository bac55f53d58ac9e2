package environment

import (
	"context"
	"fmt"

	"tendril/app"
	"tendril/bundle"
)

// closeVersions leaves the versions of earlier starts to their owner alone.
func (e *Environment) closeVersions() {
	if err := bundle.CloseVersions(e.s.DataDir); err != nil {
		e.Logger.Warn("other users may be able to read versions of the app", "component", "environment", "err", err)
	}
}

// shareBundle lets the app's user into the bundle where that was unpacked here.
func (e *Environment) shareBundle(context.Context) error {
	if e.Bundle == nil {
		return nil
	}
	if err := app.Share(e.s, e.Bundle.Dir, true); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}
