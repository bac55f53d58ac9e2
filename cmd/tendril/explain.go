package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/environment"
	"tendril/yamlfile"
)

// explainCommand says where the values of options come from.
type explainCommand struct{ appCommands }

func (c explainCommand) newExplain() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain [OPTION]",
		Short: "Show the value of an option, its default, and where it was set",
		Long: `Shows one option by any of its names (flag, variable, key, Elastic Beanstalk or Workerless
name), or another setting of a bundle, such as an environment property. Without an option,
lists everything that is set, and where.

It asks the environment that runs on the data directory, says so on standard error, and says
what the settings in the files have changed to since. Where none runs, or with --dir or
flags of 'tendril up', it reads the settings as 'tendril up' would.`,
		Example: `  tendril explain http-connections
  tendril explain InactivityTimeout --dir path/to/app
  tendril explain --dir path/to/app`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeOptions,
	}
	addSettings(cmd, func(config.Option) bool { return true })
	addEnvironment(cmd)
	cmd.Flags().StringVar(&dir, "dir", "", "Folder or archive of the app, as for 'tendril up'.")
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		d, err := c.askRunning(ctx, cmd, nil)
		if err != nil {
			return err
		}
		if d != nil {
			return c.explainRunning(d, args)
		}
		return c.explainSettings(cmd, dir, args)
	})
	return cmd
}

// explainRunning tells about an option, or all that are set, as the running process has them.
func (c explainCommand) explainRunning(d *console.Description, args []string) error {
	var b *bundle.Bundle
	for _, f := range d.Files {
		if f.Use == environment.UseBundle {
			var err error
			if b, err = openBundle(f.At); err != nil {
				c.warn(yamlfile.Problem{Text: "the bundle of the running environment cannot be read: " + err.Error()})
			}
		}
	}
	fmt.Fprintf(c.err, "asked environment %q, process %d, up %s\n", d.Environment, d.PID, since(d.StartedAt))
	for _, note := range d.Notes {
		c.warn(yamlfile.Problem{Text: note})
	}
	if len(args) == 0 {
		rows := describedOptions(d.Options, false)
		if err := c.listRows(append(rows, c.otherSettings(b)...)); err != nil {
			return err
		}
		if len(d.Changes) > 0 {
			return c.printSection(describedChanges(d.Changes))
		}
		return nil
	}
	o, found := config.Lookup(args[0])
	if !found {
		return c.explainOther(b, args[0])
	}
	fmt.Fprintln(c.out, explanationOf(o, d))
	_, changes := d.Option(o.Name)
	for _, change := range changes {
		fmt.Fprintf(c.out, "\n  changed since: %s is now %s (%s); in force after %s\n", change.Name,
			cmp.Or(plain(change.Value), "none"), originOf(change.OptionValue), takesEffect(change))
	}
	return nil
}

// explainSettings tells about an option, or all that are set, as 'tendril up' would read them.
func (c explainCommand) explainSettings(cmd *cobra.Command, dir string, args []string) error {
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
	if err != nil {
		return c.explainOther(b, args[0])
	}
	fmt.Fprintln(c.out, e)
	return nil
}

// explainOther tells about another setting of the bundle, or that there is no option of that name.
func (c explainCommand) explainOther(b *bundle.Bundle, name string) error {
	if b != nil && len(b.Named(name)) > 0 {
		c.explainBundled(b.Named(name))
		return nil
	}
	return fail(exitNotFound, config.UnknownOption(name))
}

// listSettings prints every option that something set, and the bundle's other settings.
func (c explainCommand) listSettings(cfg *config.Config, b *bundle.Bundle) error {
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
	return c.listRows(append(rows, c.otherSettings(b)...))
}

// otherSettings are those of the bundle that are no options.
func (c explainCommand) otherSettings(b *bundle.Bundle) (rows [][]string) {
	if b == nil {
		return nil
	}
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
	return rows
}

// listRows prints settings below their heading.
func (c explainCommand) listRows(rows [][]string) error {
	if len(rows) == 1 {
		fmt.Fprintln(c.err, "nothing is set: every option has its default")
		return nil
	}
	return c.printTable(rows)
}

// explainBundled tells about settings of one name that are no options of tendril's:
// properties, and what has no effect here.
func (c explainCommand) explainBundled(settings []bundle.Setting) {
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
func (c explainCommand) inForce(s bundle.Setting) (value, from string) {
	if value, found := c.lookUp(s.Option); found && s.Namespace == bundle.NamespaceEnvironment {
		s.Value = value
		return plain(s.Shown()), plain(s.Option)
	}
	return plain(s.Shown()), position(s.File, s.Line)
}
