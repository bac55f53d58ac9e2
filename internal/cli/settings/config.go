package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/inspect"
	"tendril/internal/config"
	"tendril/internal/host/terminal"
)

// NewConfig returns the command 'tendril config'.
func NewConfig(c *base.CLI) *cobra.Command {
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of tendril.yaml for editors",
		Long: `Prints a JSON Schema of the settings file. An editor with a YAML language server completes and
checks keys and values if the first line of tendril.yaml is

  # yaml-language-server: $schema=tendril.schema.json`,
		Example: "  tendril config schema > tendril.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return c.PrintJSON(config.Schema()) },
	}
	return base.Family("config", "Show and change the settings of the running environment",
		`Shows and changes the settings of the running environment. Changes take effect at once if possible,
the others at the next start. With a fleet key (--fleet-key-file of 'tendril up') they apply to all
instances. Without one, or with --this, they are written to the settings file: the one that the
environment was started with, or tendril.yaml in its working folder.`, newConfigShow(c), newConfigSet(c), newConfigUnset(c), schema)
}

func newConfigShow(c *base.CLI) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "show [OPTION...]",
		Short: "List options in force: value, default, origin, and when a change takes effect",
		Long: `Lists the options of the configuration page of worker environments, and all others that are
set, or only the given options. Options that cannot be changed are marked as locked, such as those
of a settings file that a flag or a variable sets.`,
		Example: `  tendril config show
  tendril config show http-path inactivity-timeout
  tendril config show --all -o json`,
		ValidArgsFunction: base.CompleteOptions,
	}

	cmd.Flags().BoolVar(&all, "all", false, "Also list options at their default.")
	var names []string
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, args []string) (api.Configuration, error) {
		names = args
		shown, err := client.Configuration(ctx)
		if err != nil || len(args) == 0 {
			return shown, err
		}
		var chosen []api.ConfigOption
		for _, name := range args {
			o, err := optionNamed(&shown, name)
			if err != nil {
				return shown, err
			}
			chosen = append(chosen, *o)
		}
		shown.Options, shown.Queues = chosen, []api.ConfigQueue{}
		return shown, nil
	}, base.ViewOf(
		func(shown api.Configuration) error { return showConfiguration(c, &shown, all || len(names) > 0) },
		func(shown api.Configuration) []string {
			return base.Named(func(o *api.ConfigOption) string { return o.Name })(shown.Options)
		},
	))
	return cmd
}

func optionNamed(shown *api.Configuration, name string) (*api.ConfigOption, error) {
	if o, found := config.Lookup(name); found {
		name = o.Name
	}
	if o := shown.Option(name); o != nil {
		return o, nil
	}
	return nil, base.Fail(base.ExitNotFound, config.UnknownOption(name))
}

func showConfiguration(c *base.CLI, shown *api.Configuration, all bool) error {
	file := shown.File
	if !shown.Exists {
		file += " (not there yet)"
	}

	c.Printf("settings file: %s\n", base.Plain(file))
	if s := shown.Shared; s != nil && s.Revision > 0 {
		c.Printf("settings for all instances: revision %d, by %s at %s\n", s.Revision, base.Plain(s.By),
			s.At.UTC().Format("2006-01-02 15:04 UTC"))
		if s.RolledBack != "" {
			c.Printf("rolled back: %s\n", base.Plain(s.RolledBack))
		}
		if s.InBatches {
			c.Println("they are being applied in batches: 'tendril instances' shows the progress")
		}
	}
	if shown.Problem != "" {
		c.PrintErrf("warning: the settings file is now invalid: %s\n", base.Plain(shown.Problem))
	}

	section := func(title string, is func(*api.ConfigOption) bool) error {
		return showOptions(c, title, slices.DeleteFunc(slices.Clone(shown.Options), func(o api.ConfigOption) bool {
			return !is(&o)
		}))
	}

	for _, block := range shown.Blocks {
		if err := section(block, func(o *api.ConfigOption) bool { return o.Block == block }); err != nil {
			return err
		}
	}

	for _, topic := range shown.Topics {
		if err := section("other: "+topic, func(o *api.ConfigOption) bool {
			return o.Topic == topic && o.Block == "" && (all || len(o.SetBy) > 1)
		}); err != nil {
			return err
		}
	}

	for _, q := range shown.Queues {
		own := slices.DeleteFunc(slices.Clone(q.Settings), func(o api.ConfigOption) bool {
			return len(shown.Queues) < 2 || !all && o.Layer == config.Default.String()
		})
		if err := showOptions(c, "queue "+q.Name, own); err != nil {
			return err
		}
	}

	if len(shown.Changes) > 0 {
		fmt.Fprintln(c.Out)
		return c.PrintTable(inspect.DescribedChanges(shown.Changes))
	}

	return nil
}

func showOptions(c *base.CLI, title string, options []api.ConfigOption) error {
	if len(options) == 0 {
		return nil
	}

	rows := [][]string{{strings.ToUpper(title), "VALUE", "DEFAULT", "SET BY", "A CHANGE TAKES EFFECT"}}
	for i := range options {
		o := &options[i]
		effect := map[string]string{api.EffectReload: "when saved", api.EffectApp: "by restarting the app",
			api.EffectRestart: "at the next start"}[o.Effect]
		switch {
		case o.Locked != "":
			effect = "locked"
		case o.Overridden != "":
			effect = "overridden here by " + o.Overridden
		}
		rows = append(rows, []string{o.Name, o.Value, o.Default, base.OriginOf(o.OptionValue).String(), effect})
	}

	fmt.Fprintln(c.Out)
	return c.PrintTable(rows)
}

func newConfigSet(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set OPTION=VALUE...",
		Short: "Set options, for all instances or in the settings file",
		Long: `Changes options of the running environment after showing the changed lines and asking for
confirmation. The values are checked first; a mistake changes nothing. An option may have any of its
names. "OPTION of QUEUE" is a setting of one queue with its own map in the settings file.

With a fleet key (--fleet-key-file of 'tendril up') the options are set for all instances, and the
command waits until they have applied them. If one rejects them, all return to the previous settings.
Otherwise they are written to the settings file.`,
		Example: `  tendril config set http-path=/jobs inactivity-timeout=10m
  tendril config set --this http-connections=20
  tendril config set 'http-path of payments=/pay' --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: base.CompleteAssignment,
	}

	return changesSettings(c, cmd, func(arg string, set map[string]*string) error {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return base.Usagef("invalid argument %q: use OPTION=VALUE", arg).Hint("write " + arg + "=VALUE, or 'tendril config unset " +
				terminal.ShellWord(arg) + "' to remove it")
		}
		set[name] = &value
		return nil
	})
}

func newConfigUnset(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unset OPTION...",
		Short: "Remove options, for all instances or from the settings file",
		Long: `Removes options from the settings that 'tendril config set' changes, restoring the values of weaker
sources or the defaults. Shows the changed lines and asks for confirmation.`,
		Example:           "  tendril config unset inactivity-timeout",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: base.CompleteOptions,
	}
	return changesSettings(c, cmd, func(arg string, set map[string]*string) error { set[arg] = nil; return nil })
}

func changesSettings(c *base.CLI, cmd *cobra.Command,
	take func(arg string, set map[string]*string) error) *cobra.Command {
	var yes, this bool
	base.AddDataDir(cmd)
	cmd.Flags().BoolVar(&this, "this", false, "Change the settings file of one instance, even with a fleet key.")
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for confirmation.")
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (*base.Plan, error) {
		change := api.SettingsChange{Set: map[string]*string{}, This: this}
		for _, arg := range args {
			if err := take(arg, change.Set); err != nil {
				return nil, err
			}
		}

		client, err := c.Dial(cmd)
		if err != nil {
			return nil, err
		}

		preview, err := client.PreviewChange(ctx, change)
		if err != nil {
			return nil, err
		}

		printPreview(c, &preview)
		return base.PlanOf(func() ([]string, error) {
			if len(preview.Lines) == 0 {
				return nil, nil
			}
			return []string{"write " + preview.File}, nil
		}, func() error {
			if len(preview.Lines) == 0 {
				return nil
			}
			if err := c.Agree("Change "+preview.File+"?", yes); err != nil {
				return err
			}
			change.Base = preview.Base
			done, err := client.ChangeSettings(ctx, change)
			if err != nil {
				return err
			}
			printEffect(c, &done)
			return awaitSettings(ctx, c, client, done.Revision)
		}), nil
	})
}

// settingsWait allows for instances that restart their apps.
const settingsWait = 10 * time.Minute

// awaitSettings returns an error if an instance has rejected the settings.
func awaitSettings(ctx context.Context, c *base.CLI, client *api.Client, revision int64) error {
	if revision == 0 {
		return nil
	}
	return base.AwaitRevision(ctx, c, client, revision, settingsWait, func(all *api.Instances, one *api.KnownInstance) (int64, error) {
		switch s := all.Shared; {
		case s != nil && s.Revision > revision && s.RolledBack != "":
			return 0, base.Conflictf("the settings were rolled back on all instances: %s", base.Plain(s.RolledBack)).
				Hint("correct the value, or set it with --this on the instances that accept it")
		case one.Rejected != "", s != nil && (one.SettingsRevision > s.Revision || s.InBatches):
			return 0, nil // a rollback follows or is not known here yet, or the last batch is still being examined
		}
		return one.SettingsRevision, nil
	})
}

func printPreview(c *base.CLI, p *api.SettingsPreview) {
	if len(p.Lines) == 0 {
		c.PrintErrf("nothing to change in %s\n", base.Plain(p.File))
		return
	}

	c.Printf("%s\n", base.Plain(p.File))
	for _, l := range p.Lines {
		c.Printf("%4d %s\n", l.Line, base.Plain(l.String()))
	}

	for _, o := range p.Changes {
		when := "takes effect when saved"
		switch {
		case o.Restart:
			when = "takes effect at the next start"
		case o.RestartsApp:
			when = "restarts the app's processes, one after the other"
		}
		c.Printf("%s would be %s: %s\n", base.Plain(o.Name), orNone(base.Plain(o.Value)), when)
	}

	for _, w := range p.Warnings {
		c.PrintErrf("warning: %s\n", base.Plain(w.Text))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func printEffect(c *base.CLI, p *api.SettingsPreview) {
	if p.Revision > 0 {
		c.PrintErrf("set for all instances in revision %d\n", p.Revision)
		return
	}

	now, later := p.Changed()
	c.PrintErrf("wrote %s\n", base.Plain(p.File))
	if len(now) > 0 {
		c.PrintErrf("changed, in force now: %s\n", base.Plain(strings.Join(now, ", ")))
	}
	if len(later) > 0 {
		c.PrintErrf("changed at the next start: %s\n", base.Plain(strings.Join(later, ", ")))
	}
}
