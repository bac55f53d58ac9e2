package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
)

func (c *cli) newExplain() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain OPTION",
		Short: "Tell an option's value in force, its default, and where it came from",
		Long: `Tells everything about one option, under any of its names: flag, variable, key,
Elastic Beanstalk or Workerless name. Takes the flags of 'tendril up'.`,
		Example: `  tendril explain http-connections
  tendril explain InactivityTimeout --dir path/to/app`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, o := range config.Options() {
				names = append(names, o.Name+"\t"+o.Help)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.Flags().StringVar(&dir, "dir", "", "The app's folder, as 'tendril up' would be given it.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var b *bundle.Bundle
		if dir != "" {
			var err error
			if b, err = openBundle(dir); err != nil {
				return err
			}
		}
		cfg, err := c.loadSettings(cmd, b)
		if err != nil {
			return err
		}
		e, err := cfg.Explain(args[0])
		if err != nil {
			return fail(exitNotFound, err)
		}
		fmt.Fprintln(c.out, e)
		return nil
	}
	return cmd
}
