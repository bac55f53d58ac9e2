package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
)

func (c appCommands) newExplain() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain [OPTION]",
		Short: "Show the value of an option, its default, and where it was set",
		Long: `Shows one option by any of its names (flag, variable, key, Elastic Beanstalk or Workerless
name), or another setting of a bundle, such as an environment property. Without an option,
lists everything that is set, and where. Takes the flags of 'tendril up'.`,
		Example: `  tendril explain http-connections
  tendril explain InactivityTimeout --dir path/to/app
  tendril explain --dir path/to/app`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, o := range config.Options() {
				names = append(names, o.Name+"\t"+o.Help)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.Flags().StringVar(&dir, "dir", "", "Folder or archive of the app, as for 'tendril up'.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir == "" {
			here, err := c.currentFolder(cmd, nil)
			if err != nil {
				return err
			}
			dir = argument(here)
		}
		var b *bundle.Bundle
		if dir != "" {
			opened, done, err := c.lookInto(dir)
			defer done()
			if err != nil {
				return err
			}
			b = opened
		}
		cfg, err := c.loadSettings(cmd, b)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return c.listSettings(cfg, b)
		}
		e, err := cfg.Explain(args[0])
		switch {
		case err == nil:
			fmt.Fprintln(c.out, e)
		case b != nil && len(b.Named(args[0])) > 0:
			c.explainBundled(b.Named(args[0]))
		default:
			return fail(exitNotFound, err)
		}
		return nil
	}
	return cmd
}

// listSettings prints every option that something set, and the bundle's other settings.
func (c appCommands) listSettings(cfg *config.Config, b *bundle.Bundle) error {
	rows := [][]string{{"OPTION", "VALUE", "SET BY"}}
	for _, o := range config.Options() {
		e, err := cfg.Explain(o.Name)
		if err != nil {
			return err
		}
		if len(e.Chain) > 1 {
			rows = append(rows, []string{o.Name, plain(e.Value), e.From.String()})
		}
	}
	if b != nil {
		known := func(s bundle.Setting) bool {
			o, found := config.Lookup(s.Option)
			return found && o.Namespace == s.Namespace
		}
		for _, s := range b.InForce() {
			if !known(s) {
				value, from := c.inForce(s)
				rows = append(rows, []string{s.Option, value, from})
			}
		}
	}
	if len(rows) == 1 {
		fmt.Fprintln(c.err, "nothing is set: every option has its default")
		return nil
	}
	return c.printTable(rows)
}

// explainBundled tells about settings of one name that are no options of tendril's:
// properties, and what has no effect here.
func (c appCommands) explainBundled(settings []bundle.Setting) {
	last := settings[len(settings)-1]
	fmt.Fprintf(c.out, "%s\n  %s\n\n", plain(last.Option), bundledMeaning(last))
	value, from := c.inForce(last)
	fmt.Fprintf(c.out, "  %-18s %s (%s)\n", "value", value, from)
	fmt.Fprintf(c.out, "  %-18s %s\n", "namespace", plain(last.Namespace))
	fmt.Fprint(c.out, "\n  set by, the last one counts:\n")
	for _, s := range settings {
		fmt.Fprintf(c.out, "    %-12s %s (%s)\n", "bundle", plain(s.Shown()), position(s.File, s.Line))
	}
	if from == plain(last.Option) {
		fmt.Fprintf(c.out, "    %-12s %s (%s)\n", "environment", value, from)
	}
}

func bundledMeaning(s bundle.Setting) string {
	switch why := bundle.NoEffect(s.Namespace); {
	case why != "":
		return "Without effect: " + why + "."
	case s.Namespace == bundle.NamespaceEnvironment:
		return "A variable that the app finds in its environment."
	}
	return "A setting of the bundle; 'tendril check' says what becomes of it."
}

// inForce is the value in force of a bundle's setting, hidden where it looks secret, and where it is from: a variable
// of tendril's own environment takes the place of a property.
func (c appCommands) inForce(s bundle.Setting) (value, from string) {
	if value, found := c.lookUp(s.Option); found && s.Namespace == bundle.NamespaceEnvironment {
		s.Value = value
		return plain(s.Shown()), plain(s.Option)
	}
	return plain(s.Shown()), position(s.File, s.Line)
}
