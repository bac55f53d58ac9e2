//go:build !man

package cli

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
)

// newMan adds the command that writes man pages, only where the tag man is set.
func newMan(*base.CLI, *cobra.Command) {}
