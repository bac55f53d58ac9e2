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
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		e, err := explain(ctx, c, cmd, dir, args)
		if err != nil {
			return err
		}
		return f.Print(c, e.value, e.names, e.show)
	})

	return cmd
}

type explanation struct {
	value any
	names []string
	show  func() error
}

type explainedOption struct {
	api.DescribedOption
	Help    string             `json:"help,omitempty"`
	Default string             `json:"default,omitempty"`
	Allowed string             `json:"allowed,omitempty"`
	Changes []api.OptionChange `json:"changes,omitempty"`
}

type settings struct {
	options []config.Explanation
	running api.Description // zero if no environment is running
	bundle  *bundle.Bundle  // nil without one
}

func explain(ctx context.Context, c *base.CLI, cmd *cobra.Command, dir string, args []string) (*explanation, error) {
	s, err := readSettings(ctx, c, cmd, dir)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return s.list(c), nil
	}
	o, _ := config.Lookup(args[0])
	i := slices.IndexFunc(s.options, func(e config.Explanation) bool { return e.Option.Name == o.Name })
	if i < 0 {
		return explainOther(c, s.bundle, args[0])
	}
	return s.explainOption(c, &s.options[i]), nil
}

func readSettings(ctx context.Context, c *base.CLI, cmd *cobra.Command, dir string) (*settings, error) {
	given := ""
	if dir != "" {
		given = "--dir"
	}
	d, err := inspect.AskRunning(ctx, c, cmd, given)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return configuredSettings(c, cmd, dir)
	}

	s := &settings{options: inspect.ExplanationsOf(d), running: *d, bundle: runningBundle(c, d)}
	c.PrintErrf("queried environment %q, process %d, up %s\n", d.Environment, d.PID, base.Since(d.StartedAt))
	for _, note := range d.Notes {
		c.PrintWarnings(yamlfile.Problem{Text: note})
	}
	return s, nil
}

func configuredSettings(c *base.CLI, cmd *cobra.Command, dir string) (*settings, error) {
	if dir == "" {
		isApp, err := base.IsAppHere(c, cmd, nil)
		if err != nil {
			return nil, err
		}
		if isApp {
			dir = "."
		}
	}

	s := &settings{}
	if dir != "" {
		b, err := c.OpenForInspection(dir)
		if err != nil {
			return nil, err
		}
		s.bundle = b
	}

	cfg, err := c.LoadSettings(cmd, s.bundle)
	if err != nil {
		return nil, err
	}
	s.options = cfg.ExplainAll()
	return s, nil
}

func (s *settings) explainOption(c *base.CLI, e *config.Explanation) *explanation {
	option := s.optionOf(e)
	return &explanation{option, []string{option.Name}, func() error {
		_, err := c.Println(e)
		for _, change := range option.Changes {
			c.Printf("\n  changed since: %s is now %s (%s); in force after %s\n", change.Name,
				cmp.Or(base.Plain(change.Value), "none"), base.OriginOf(change.OptionValue), inspect.TakesEffect(change))
		}
		return err
	}}
}

func (s *settings) list(c *base.CLI) *explanation {
	rows := [][]string{{"OPTION", "VALUE", "SET BY"}}
	all := []explainedOption{}
	for i := range s.options {
		if e := &s.options[i]; e.From.Layer != config.Default {
			rows = append(rows, []string{e.Option.Name, e.Value, e.From.String()})
			all = append(all, s.optionOf(e))
		}
	}
	for _, other := range otherSettings(c, s.bundle) {
		rows = append(rows, []string{other.Name, other.Value, other.Where})
		all = append(all, other)
	}

	names := base.Named(func(o *explainedOption) string { return o.Name })
	return &explanation{all, names(all), func() error {
		if len(rows) == 1 {
			c.PrintErrln("no options set; all have default values")
		} else if err := c.PrintTable(rows); err != nil {
			return err
		}
		if changes := s.running.Changes; len(changes) > 0 {
			return c.PrintSection(inspect.DescribedChanges(changes))
		}
		return nil
	}}
}

func (s *settings) optionOf(e *config.Explanation) explainedOption {
	value := func(from config.Origin, value string) api.OptionValue {
		return api.OptionValue{Value: value, Layer: from.Layer.String(), Where: from.Where}
	}
	_, changes := s.running.Option(e.Option.Name)
	o := explainedOption{DescribedOption: api.DescribedOption{Name: e.Option.Name, OptionValue: value(e.From, e.Value)},
		Help: e.Option.Help, Default: e.Option.DefaultText(), Allowed: e.Option.Allowed(), Changes: changes}
	for _, set := range e.Chain {
		o.SetBy = append(o.SetBy, value(set.Origin, set.Value))
	}
	return o
}

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

func explainOther(c *base.CLI, b *bundle.Bundle, name string) (*explanation, error) {
	var settings []bundle.Setting
	if b != nil {
		settings = b.Named(name)
	}
	if len(settings) == 0 {
		return nil, base.Fail(base.ExitNotFound, config.UnknownOption(name))
	}
	last := settings[len(settings)-1]
	o := explainedOption{DescribedOption: describedSetting(c, last), Help: bundledMeaning(last)}
	return &explanation{o, []string{o.Name}, func() error {
		explainBundled(c, settings)
		return nil
	}}, nil
}

func otherSettings(c *base.CLI, b *bundle.Bundle) (others []explainedOption) {
	if b == nil {
		return nil
	}
	for _, s := range b.InForce() {
		if o, found := config.Lookup(s.Option); !found || o.Namespace != s.Namespace {
			others = append(others, explainedOption{DescribedOption: describedSetting(c, s)})
		}
	}
	return others
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

func describedSetting(c *base.CLI, s bundle.Setting) api.DescribedOption {
	value, from := settingInForce(c, s)
	return api.DescribedOption{Name: s.Option,
		OptionValue: api.OptionValue{Value: value, Layer: config.FromBundle.String(), Where: from}}
}

// settingInForce redacts probable secrets. A variable in tendril's own environment overrides a property.
func settingInForce(c *base.CLI, s bundle.Setting) (value, from string) {
	if value, found := c.LookUp(s.Option); found && s.Namespace == bundle.NamespaceEnvironment {
		s.Value = value
		return base.Plain(s.Shown()), base.Plain(s.Option)
	}
	return base.Plain(s.Shown()), base.Position(s.File, s.Line)
}
