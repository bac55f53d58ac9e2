//go:build !man

package cli

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
)

// newMan does nothing without the build tag man.
func newMan(*base.CLI, *cobra.Command) {}
