//go:build man

package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"tendril/internal/cli/base"
)

// addMan adds the command with which release builds write man pages: "go run -tags man ./cmd/tendril man FOLDER".
func addMan(c *base.CLI, root *cobra.Command) {
	root.AddCommand(&cobra.Command{Use: "man FOLDER", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(filepath.Clean(args[0]), 0o755); err != nil {
				return err
			}
			root.DisableAutoGenTag = true // the header contains the date
			header := &doc.GenManHeader{Title: "TENDRIL", Section: "1", Source: "tendril " + c.Version,
				Manual: "tendril"}
			return doc.GenManTree(root, header, args[0])
		}})
}
