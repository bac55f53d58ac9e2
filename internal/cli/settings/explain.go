package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/cli/base"
	"tendril/internal/cli/inspect"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
)

// NewExplain returns the command 'tendril explain'.
func NewExplain(c *base.CLI) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain [OPTION]",
		Short: "Show the value of an option, its default, and its origin",
		Long: `Shows one option by any of its names (flag, variable, key, Elastic Beanstalk or Workerless
name), or another setting of a bundle, such as an environment property. Without an option,
lists every option that is set, with its origin.

Asks the environment that runs on the data directory, names it on standard error, and shows
changes in the files since it started. If none is running, or with --dir or flags of 'tendril
up', it reads the settings like 'tendril up'.`,
		Example: `  tendril explain http-connections
  tendril explain InactivityTimeout --dir path/to/app
  tendril explain --dir path/to/app`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: base.CompleteOptions,
	}

	base.AddSettings(cmd)
	base.AddEnvironment(cmd)
	cmd.Flags().StringVar(&dir, "dir", "", "Folder or archive of the app, as for 'tendril up'.")
	f := base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		e, err := explain(ctx, c, cmd, dir, args)
		if err != nil {
			return err
		}
		return f.Print(c, e.value(), base.Named(func(o *explainedOption) string { return o.Name })(e.options), e.show)
	})

	return cmd
}

func explain(ctx context.Context, c *base.CLI, cmd *cobra.Command, dir string, args []string) (explanations, error) {
	running, err := inspect.AskRunning(ctx, c, cmd, nil)
	switch {
	case err != nil:
		return explanations{}, err
	case running != nil:
		return explainRunning(c, running, args)
	}
	return explainSettings(c, cmd, dir, args)
}

type explanations struct {
	options []explainedOption
	one     bool
	show    func() error
}

func (e *explanations) value() any {
	if e.one && len(e.options) == 1 {
		return e.options[0]
	}
	return append([]explainedOption{}, e.options...)
}

type explainedOption struct {
	api.DescribedOption
	Help    string             `json:"help,omitempty"`
	Default string             `json:"default,omitempty"`
	Allowed string             `json:"allowed,omitempty"`
	Changes []api.OptionChange `json:"changes,omitempty"`
}

func explainedOptionOf(e *config.Explanation, changes []api.OptionChange) explainedOption {
	value := func(from config.Origin, value string) api.OptionValue {
		return api.OptionValue{Value: value, Layer: from.Layer.String(), Where: from.Where}
	}
	o := explainedOption{DescribedOption: api.DescribedOption{Name: e.Option.Name,
		OptionValue: value(e.From, e.Value)}, Help: e.Option.Help,
		Default: e.Option.DefaultText(), Allowed: e.Option.Allowed(), Changes: changes}
	for _, set := range e.Chain {
		o.SetBy = append(o.SetBy, value(set.Origin, set.Value))
	}
	return o
}

// explainRunning explains all options that are set if there are no arguments.
func explainRunning(c *base.CLI, d *api.Description, args []string) (explanations, error) {
	b := runningBundle(c, d)
	c.PrintErrf("queried environment %q, process %d, up %s\n", d.Environment, d.PID, base.Since(d.StartedAt))
	for _, note := range d.Notes {
		c.PrintWarnings(yamlfile.Problem{Text: note})
	}

	if len(args) == 0 {
		var options []explainedOption
		for _, o := range d.Options {
			if o.Layer != config.Default.String() {
				_, changes := d.Option(o.Name)
				options = append(options, explainedOption{DescribedOption: o, Changes: changes})
			}
		}
		rows := inspect.DescribedOptions(d.Options, false)
		return listedSettings(c, options, append(rows, otherSettings(c, b)...), d.Changes), nil
	}

	o, found := config.Lookup(args[0])
	if !found {
		return explainOther(c, b, args[0])
	}

	about := inspect.ExplanationOf(o, d)
	_, changes := d.Option(o.Name)
	return explanations{options: []explainedOption{explainedOptionOf(about, changes)}, one: true, show: func() error {
		c.Println(about)
		for _, change := range changes {
			c.Printf("\n  changed since: %s is now %s (%s); in force after %s\n", change.Name,
				cmp.Or(base.Plain(change.Value), "none"), base.OriginOf(change.OptionValue), inspect.TakesEffect(change))
		}
		return nil
	}}, nil
}

// runningBundle returns nil if the running environment has no bundle, or if it cannot be read.
func runningBundle(c *base.CLI, d *api.Description) *bundle.Bundle {
	i := slices.IndexFunc(d.Files, func(f api.Place) bool { return f.Use == environment.UseBundle })
	if i < 0 {
		return nil
	}
	b, err := base.OpenBundle(d.Files[i].At)
	if err != nil {
		c.PrintWarnings(yamlfile.Problem{Text: "reading the bundle of the running environment: " + err.Error()})
	}
	return b
}

func explainSettings(c *base.CLI, cmd *cobra.Command, dir string, args []string) (e explanations, err error) {
	if dir == "" {
		here, err := base.CurrentFolder(c, cmd, nil)
		if err != nil {
			return e, err
		}
		dir = base.Argument(here)
	}

	var b *bundle.Bundle
	if dir != "" {
		opened, err := c.OpenForInspection(dir)
		if err != nil {
			return e, err
		}
		b = opened
	}

	cfg, err := c.LoadSettings(cmd, b)
	if err != nil {
		return e, err
	}

	if len(args) == 0 {
		return listSettings(c, cfg, b)
	}

	about, err := cfg.Explain(args[0])
	if err != nil {
		return explainOther(c, b, args[0])
	}

	return explanations{options: []explainedOption{explainedOptionOf(about, nil)}, one: true, show: func() error {
		_, err := c.Println(about)
		return err
	}}, nil
}

func explainOther(c *base.CLI, b *bundle.Bundle, name string) (explanations, error) {
	if b == nil || len(b.Named(name)) == 0 {
		return explanations{}, base.Fail(base.ExitNotFound, config.UnknownOption(name))
	}
	settings := b.Named(name)
	last := settings[len(settings)-1]
	value, from := settingInForce(c, last)
	set := api.OptionValue{Value: value, Layer: config.FromBundle.String(), Where: from}
	o := explainedOption{DescribedOption: api.DescribedOption{Name: last.Option, OptionValue: set},
		Help: bundledMeaning(last)}
	return explanations{options: []explainedOption{o}, one: true, show: func() error {
		explainBundled(c, settings)
		return nil
	}}, nil
}

func listSettings(c *base.CLI, cfg *config.Config, b *bundle.Bundle) (explanations, error) {
	rows := [][]string{{"OPTION", "VALUE", "SET BY"}}
	var options []explainedOption
	for _, o := range config.Options() {
		e, err := cfg.Explain(o.Name)
		if err != nil {
			return explanations{}, err
		}
		if len(e.Chain) > 1 {
			rows = append(rows, []string{o.Name, base.Plain(e.Value), e.From.String()})
			options = append(options, explainedOptionOf(e, nil))
		}
	}
	return listedSettings(c, options, append(rows, otherSettings(c, b)...), nil), nil
}

func otherSettings(c *base.CLI, b *bundle.Bundle) (rows [][]string) {
	if b == nil {
		return nil
	}
	known := func(s bundle.Setting) bool {
		o, found := config.Lookup(s.Option)
		return found && o.Namespace == s.Namespace
	}
	for _, s := range b.InForce() {
		if !known(s) {
			value, from := settingInForce(c, s)
			rows = append(rows, []string{s.Option, value, from})
		}
	}
	return rows
}

func listedSettings(c *base.CLI, options []explainedOption, rows [][]string, changes []api.OptionChange) explanations {
	show := func() error {
		if len(rows) == 1 {
			c.PrintErrln("no options set; all have default values")
		} else if err := c.PrintTable(rows); err != nil {
			return err
		}
		if len(changes) > 0 {
			return c.PrintSection(inspect.DescribedChanges(changes))
		}
		return nil
	}
	return explanations{options: withBundleSettings(options, rows[1:]), show: show}
}

// withBundleSettings adds rows of bundle settings that are not options.
func withBundleSettings(options []explainedOption, rows [][]string) []explainedOption {
	known := map[string]bool{}
	for _, o := range options {
		known[o.Name] = true
	}
	for _, row := range rows {
		if name := row[0]; !known[name] {
			options = append(options, explainedOption{DescribedOption: api.DescribedOption{Name: name,
				OptionValue: api.OptionValue{Value: row[1], Layer: config.FromBundle.String(), Where: row[2]}}})
		}
	}
	return options
}

func explainBundled(c *base.CLI, settings []bundle.Setting) {
	last := settings[len(settings)-1]
	c.Printf("%s\n  %s\n\n", base.Plain(last.Option), bundledMeaning(last))
	value, from := settingInForce(c, last)
	c.Printf("  %-18s %s (%s)\n", "value", value, from)
	c.Printf("  %-18s %s\n", "namespace", base.Plain(last.Namespace))
	fmt.Fprint(c.Out, "\n  set by (the last one wins):\n")
	for _, s := range settings {
		c.Printf("    %-12s %s (%s)\n", "bundle", base.Plain(s.Shown()), base.Position(s.File, s.Line))
	}
	if from == base.Plain(last.Option) {
		c.Printf("    %-12s %s (%s)\n", "environment", value, from)
	}
}

func bundledMeaning(s bundle.Setting) string {
	switch why := bundle.NoEffect(s.Namespace); {
	case why != "":
		return "No effect: " + why + "."
	case s.Namespace == bundle.NamespaceEnvironment:
		return "An environment variable of the app."
	}
	return "A setting of the bundle; 'tendril check' shows its effect."
}

// settingInForce redacts probable secrets. A variable in tendril's own environment overrides a property.
func settingInForce(c *base.CLI, s bundle.Setting) (value, from string) {
	if value, found := c.LookUp(s.Option); found && s.Namespace == bundle.NamespaceEnvironment {
		s.Value = value
		return base.Plain(s.Shown()), base.Plain(s.Option)
	}
	return base.Plain(s.Shown()), base.Position(s.File, s.Line)
}
