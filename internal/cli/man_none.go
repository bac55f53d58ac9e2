//go:build !man

package cli

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
)

func newMan(*base.CLI, *cobra.Command) {}
