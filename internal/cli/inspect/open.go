package inspect

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
)

// NewOpen returns the command 'tendril open'.
func NewOpen(c *base.CLI) *cobra.Command {
	var printOnly bool
	var scopes []string
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the console in a browser",
		Long: `Prints a link to the console of the running environment, and opens it if there is a browser. The link works
once, within 10 minutes. The session expires 12 hours after its last request.`,
		Example: "  tendril open\n  tendril open --print --scope read",
		Args:    cobra.NoArgs,
	}

	cmd.Flags().BoolVar(&printOnly, "print", false, "Print the link only.")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "Scopes of the session: read, act, deploy (default all).")
	base.Complete(cmd, "scope", api.ScopeRead, api.ScopeAct, api.ScopeDeploy)
	base.AddDataDir(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, _ []string) error {
		client, err := c.Dial(cmd)
		if err != nil {
			return err
		}
		link, err := client.NewLogin(ctx, scopes...)
		if err != nil {
			return err
		}
		if _, err := c.Println(link); err != nil || printOnly || !c.Tty {
			return err
		}
		if err := openBrowser(c, link); err != nil {
			c.PrintErrf("no browser opened (%v): open the link yourself\n", err)
		}
		return nil
	})

	return cmd
}

func openBrowser(c *base.CLI, link string) error {
	program := "open"
	if runtime.GOOS != "darwin" {
		program = "xdg-open"
		if c.Env("DISPLAY") == "" && c.Env("WAYLAND_DISPLAY") == "" {
			return errors.New("no display found")
		}
	}
	browser := exec.Command(program, link)
	browser.Env = slices.DeleteFunc(slices.Clone(c.Environ), func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") // may be secret
	})
	if err := browser.Start(); err != nil {
		return err
	}
	return browser.Process.Release()
}
