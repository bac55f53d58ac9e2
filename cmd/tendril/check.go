package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
)

func (c *cli) newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Validate settings and bundle, offline",
		Long: `Reads what 'tendril up' would read, with the same flags, and says what is wrong
(exit status 2), what to know, and what of the bundle is left aside. Nothing is
started, created or asked over the network.`,
		Args: cobra.MaximumNArgs(1),
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.check(cmd, args) }
	return cmd
}

func (c *cli) check(cmd *cobra.Command, args []string) error {
	var b *bundle.Bundle
	if len(args) > 0 {
		var err error
		if b, err = openBundle(args[0]); err != nil {
			return err
		}
	}
	cfg, err := c.loadSettings(cmd, b)
	if err != nil {
		return err
	}
	c.printWarnings(cfg)
	if b != nil {
		if len(b.Processes) > 0 {
			if _, err := b.Web(); err != nil {
				return fail(exitUsage, err)
			}
		}
		for _, p := range b.Processes {
			fmt.Fprintf(c.out, "process  %s: %s\n", p.Name, p.Command)
		}
		for _, f := range b.Unsupported {
			fmt.Fprintf(c.out, "aside    %s\n", f)
		}
	}
	if cfg.ConfigFile != "" {
		fmt.Fprintf(c.out, "file     %s\n", cfg.ConfigFile)
	}
	where := cfg.QueueURL
	if where == "" {
		where = fmt.Sprintf("%s (%s)", cfg.Queue, cfg.Backend)
	}
	fmt.Fprintf(c.out, "queue    %s\nok\n", where)
	return nil
}
