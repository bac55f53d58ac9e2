//go:build !man

package cli

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
)

func addMan(*base.CLI, *cobra.Command) {}
