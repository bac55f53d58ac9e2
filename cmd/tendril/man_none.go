//go:build !man

package main

import "github.com/spf13/cobra"

// newMan adds the command that writes man pages, only where the tag man is set.
func newMan(*CLI, *cobra.Command) {}
