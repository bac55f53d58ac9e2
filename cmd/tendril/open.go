package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
)

func newOpen(c *cli) *cobra.Command {
	var printOnly bool
	var scopes []string
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the console in a browser",
		Long: `Prints a link to the console of the running environment, and opens it where there is a browser. The link lets one
browser in, once, within 10 minutes. The session ends 12 hours after its last request.`,
		Example: "  tendril open\n  tendril open --print --scope read",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "Print the link only.")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "What the browser may do: read, act, deploy (default all).")
	complete(cmd, "scope", api.ScopeRead, api.ScopeAct, api.ScopeDeploy)
	addDataDir(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		link, err := client.NewLogin(ctx, scopes...)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.out, link); err != nil || printOnly || !c.tty {
			return err
		}
		if err := openBrowser(c, link); err != nil {
			fmt.Fprintf(c.err, "no browser was opened (%v): open the link yourself\n", err)
		}
		return nil
	})
	return cmd
}

// openBrowser opens a link in the browser of the person at this machine.
func openBrowser(c *cli, link string) error {
	program := "open"
	if runtime.GOOS != "darwin" {
		if program = "xdg-open"; c.env("DISPLAY") == "" && c.env("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no display")
		}
	}
	browser := exec.Command(program, link)
	browser.Env = slices.DeleteFunc(slices.Clone(c.environ), func(entry string) bool {
		return strings.HasPrefix(entry, "TENDRIL_") // our settings, some of which are secret
	})
	if err := browser.Start(); err != nil {
		return err
	}
	return browser.Process.Release()
}
