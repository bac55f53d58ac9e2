package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/bundle"
	"tendril/internal/cli/base"
	"tendril/internal/cli/scaffold"
	"tendril/internal/host/terminal"
	"tendril/internal/supervisor"
)

// NewInit returns the command 'tendril init'.
func NewInit(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write a Procfile and a tendril.yaml for the app in a folder",
		Long: `Detects the app in FOLDER, by default the working folder, and writes a Procfile that starts it and a
tendril.yaml with the most common settings and their meaning. Supports apps in Node.js (npm, pnpm, yarn, bun),
Python (Flask, FastAPI, Django; pip, uv, poetry, pipenv), Ruby (Rails, Rack), Go, PHP (Laravel), Java (Spring
Boot) and .NET, and local Lambda functions. Existing files stay as they are. Nothing is installed or
started.`,
		Example: "  tendril init\n  tendril init path/to/app --dry-run",
		Args:    cobra.MaximumNArgs(1),
	}

	return base.Changes(c, cmd, func(_ context.Context, args []string) (*base.Plan, error) {
		dir := "."
		if len(args) > 0 {
			dir = args[0]
		}

		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, base.Usagef("folder %s not found", dir).Hint("name the folder of the app")
		}

		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}

		met := (&bundle.Bundle{Dir: absolute}).RequirementsInstalled(supervisor.SearchPath(c.Environ))
		app, err := scaffold.Recognize(os.DirFS(dir), met)
		if err != nil {
			return nil, base.Fail(base.ExitUsage, err)
		}

		files := app.Files(filepath.Base(absolute))
		return base.PlanOf(func() ([]string, error) { return previewFiles(c, dir, files), nil },
			func() error { return writeScaffold(c, dir, app, files) }), nil
	})
}

func previewFiles(c *base.CLI, dir string, files []scaffold.File) (steps []string) {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if _, err := os.Lstat(path); err == nil {
			c.PrintErrf("%s exists and was not changed\n", base.Plain(path))
			continue
		}
		c.Printf("%s\n", f.Text)
		steps = append(steps, "write "+path)
	}
	return steps
}

func writeScaffold(c *base.CLI, dir string, app *scaffold.App, files []scaffold.File) error {
	c.PrintErrf("detected %s by %s\n", app.Platform, base.Plain(filepath.Join(dir, app.File)))
	if app.Web != "" {
		c.PrintErrf("command: %s\n", app.Web)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		switch err := base.WriteNew(path, f.Text); {
		case errors.Is(err, os.ErrExist):
			c.PrintErrf("%s exists and was not changed\n", base.Plain(path))
		case err != nil:
			return fmt.Errorf("writing %s: %w; choose a writable folder", path, err)
		default:
			c.PrintErrf("wrote %s\n", base.Plain(path))
		}
	}
	if app.Note != "" {
		c.PrintErrf("note: %s\n", app.Note)
	}
	steps := append(slices.Clone(app.Before), "tendril up")
	if dir != "." { // tendril up reads tendril.yaml in the working directory
		steps = slices.Insert(steps, 0, "cd "+terminal.ShellWord(dir))
	}
	c.PrintErrf("next: %s\n", strings.Join(steps, " && "))
	return nil
}
