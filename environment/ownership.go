package environment

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"tendril/bundle"
	"tendril/trust"
)

// isMachineRoot reports whether tendril is root on a machine of its own, where another
// user's commands must not run as root.
func isMachineRoot() bool { return os.Geteuid() == 0 && !inContainer() }

// othersDecide says who else decides what is run from a bundle's folder; nil for nobody.
func othersDecide(b *bundle.Bundle) *trust.Error {
	var wrong *trust.Error
	if b != nil && errors.As(b.Trusted(), &wrong) {
		return wrong
	}
	return nil
}

// refuseForeignBundle does not let root run what every user may write.
func refuseForeignBundle(b *bundle.Bundle, root bool) error {
	if !root {
		return nil
	}
	if wrong := othersDecide(b); wrong != nil && wrong.Everybody {
		return fmt.Errorf("%w: %w, and what it says would be run as root: type '%s'", ErrSettings, wrong, wrong.Fix)
	}
	return nil
}

// warnOfForeignBundle warns of another user who decides what root runs.
func warnOfForeignBundle(log *slog.Logger, b *bundle.Bundle, root bool) {
	if !root {
		return
	}
	if wrong := othersDecide(b); wrong != nil {
		log.Warn("another user decides what is run as root", "component", "bundle", "path", wrong.Path, "err", wrong,
			"hint", "type '"+wrong.Fix+"'")
	}
}
