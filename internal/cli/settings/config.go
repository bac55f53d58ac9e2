package settings

import (
	"cmp"
	"context"
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
set, or only the given options. Options that cannot be changed are marked as locked, such as options
of the settings file that a flag or a variable overrides.`,
		Example: `  tendril config show
  tendril config show http-path inactivity-timeout
  tendril config show --all -o json`,
		ValidArgsFunction: base.CompleteOptions,
	}

	cmd.Flags().BoolVar(&all, "all", false, "Also list options at their default.")
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, args []string) (api.Configuration, error) {
		shown, err := client.Configuration(ctx)
		if err != nil || len(args) == 0 {
			return shown, err
		}
		shown.Options, err = optionsNamed(&shown, args)
		shown.Queues = []api.ConfigQueue{}
		return shown, err
	}, base.ViewOf(
		func(shown api.Configuration) error {
			return showConfiguration(c, &shown, all || cmd.Flags().NArg() > 0)
		},
		func(shown api.Configuration) []string {
			return base.Named(func(o *api.ConfigOption) string { return o.Name })(shown.Options)
		},
	))
	return cmd
}

func optionsNamed(shown *api.Configuration, names []string) (chosen []api.ConfigOption, err error) {
	for _, name := range names {
		if o, found := config.Lookup(name); found {
			name = o.Name
		}
		o := shown.Option(name)
		if o == nil {
			return nil, base.Fail(base.ExitNotFound, config.UnknownOption(name))
		}
		chosen = append(chosen, *o)
	}
	return chosen, nil
}

func showConfiguration(c *base.CLI, shown *api.Configuration, all bool) error {
	file := shown.File
	if !shown.Exists {
		file += " (not there yet)"
	}

	c.Printf("settings file: %s\n", base.Plain(file))
	if shown.Shared != nil && shown.Shared.Revision > 0 {
		showShared(c, shown.Shared)
	}
	if shown.Problem != "" {
		c.PrintErrf("warning: the settings file is now invalid: %s\n", base.Plain(shown.Problem))
	}

	for _, block := range shown.Blocks {
		ofBlock := optionsWith(shown.Options, func(o *api.ConfigOption) bool { return o.Block == block })
		if err := showOptions(c, block, ofBlock); err != nil {
			return err
		}
	}
	for _, topic := range shown.Topics {
		ofTopic := optionsWith(shown.Options, func(o *api.ConfigOption) bool {
			return o.Topic == topic && o.Block == "" && (all || len(o.SetBy) > 1)
		})
		if err := showOptions(c, "other: "+topic, ofTopic); err != nil {
			return err
		}
	}
	if len(shown.Queues) > 1 {
		for _, q := range shown.Queues {
			own := optionsWith(q.Settings, func(o *api.ConfigOption) bool {
				return all || o.Layer != config.Default.String()
			})
			if err := showOptions(c, "queue "+q.Name, own); err != nil {
				return err
			}
		}
	}

	if len(shown.Changes) > 0 {
		return c.PrintSection(inspect.DescribedChanges(shown.Changes))
	}
	return nil
}

func showShared(c *base.CLI, s *api.SharedSettings) {
	c.Printf("settings for all instances: revision %d, by %s at %s\n", s.Revision, base.Plain(s.By),
		s.At.UTC().Format("2006-01-02 15:04 UTC"))
	if s.RolledBack != "" {
		c.Printf("rolled back: %s\n", base.Plain(s.RolledBack))
	}
	if s.InBatches {
		c.Println("they are being applied in batches: 'tendril instances' shows the progress")
	}
}

func optionsWith(all []api.ConfigOption, include func(*api.ConfigOption) bool) (chosen []api.ConfigOption) {
	for i := range all {
		if include(&all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

func showOptions(c *base.CLI, title string, options []api.ConfigOption) error {
	if len(options) == 0 {
		return nil
	}

	rows := [][]string{{strings.ToUpper(title), "VALUE", "DEFAULT", "SET BY", "A CHANGE TAKES EFFECT"}}
	for i := range options {
		o := &options[i]
		rows = append(rows, []string{o.Name, o.Value, o.Default, base.OriginOf(o.OptionValue).String(), effectText(o)})
	}
	return c.PrintSection(rows)
}

func effectText(o *api.ConfigOption) string {
	switch {
	case o.Locked != "":
		return "locked"
	case o.Overridden != "":
		return "overridden here by " + o.Overridden
	case o.Effect == api.EffectReload:
		return "when saved"
	case o.Effect == api.EffectApp:
		return "by restarting the app"
	case o.Effect == api.EffectRestart:
		return "at the next start"
	}
	return ""
}

func newConfigSet(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set OPTION=VALUE...",
		Short: "Set options, for all instances or in the settings file",
		Long: `Changes options of the running environment after showing the changed lines and asking for
confirmation. The values are checked first; a mistake changes nothing. Give an option by any of its
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
		Long: `Removes options from the settings that 'tendril config set' changes, restoring the values of
lower-precedence sources or the defaults. Shows the changed lines and asks for confirmation.`,
		Example:           "  tendril config unset inactivity-timeout",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: base.CompleteOptions,
	}
	return changesSettings(c, cmd, func(arg string, set map[string]*string) error { set[arg] = nil; return nil })
}

// changesSettings removes options that parse sets to nil.
func changesSettings(c *base.CLI, cmd *cobra.Command,
	parse func(arg string, set map[string]*string) error) *cobra.Command {
	var this bool
	base.AddDataDir(cmd)
	cmd.Flags().BoolVar(&this, "this", false, "Change the settings file of one instance, even with a fleet key.")
	yes := base.AddYes(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		change := api.SettingsChange{Set: map[string]*string{}, This: this}
		for _, arg := range args {
			if err := parse(arg, change.Set); err != nil {
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
		if len(preview.Lines) == 0 {
			return base.PlanOf(func() ([]string, error) { return nil, nil }, func() error { return nil }), nil
		}
		return base.PlanOf(base.Step("write %s", preview.File), func() error {
			if err := confirmChange(c, preview.File, *yes); err != nil {
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

func confirmChange(c *base.CLI, file string, yes bool) error {
	switch {
	case yes:
		return nil
	case !c.TtyIn:
		return base.Usagef("nothing was changed: no terminal to confirm on").Hint("add --yes to confirm")
	}
	c.PrintErrf("Change %s? [y/N] ", base.Plain(file))
	switch strings.ToLower(c.ReadAnswer()) {
	case "y", "yes":
		return nil
	}
	return base.Failedf("nothing was changed")
}

// settingsWait allows for instances that restart their apps.
const settingsWait = 10 * time.Minute

func awaitSettings(ctx context.Context, c *base.CLI, client *api.Client, revision int64) error {
	if revision == 0 {
		return nil
	}
	applied := func(all *api.Instances, one *api.KnownInstance) bool {
		s := all.Shared
		rollbackFollows := one.Rejected != "" || s != nil && one.SettingsRevision > s.Revision
		batchExamined := s != nil && s.InBatches
		return one.SettingsRevision >= revision && !rollbackFollows && !batchExamined
	}
	rolledBack := func(all *api.Instances) error {
		s := all.Shared
		if s == nil || s.Revision <= revision || s.RolledBack == "" {
			return nil
		}
		return base.Conflictf("the settings were rolled back on all instances: %s", base.Plain(s.RolledBack)).
			Hint("correct the value, or set it with --this on the instances that accept it")
	}
	return base.AwaitRevision(ctx, c, client, settingsWait, applied, rolledBack)
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
		c.Printf("%s would be %s: %s\n", base.Plain(o.Name), cmp.Or(base.Plain(o.Value), "none"), when)
	}

	for _, w := range p.Warnings {
		c.PrintErrf("warning: %s\n", base.Plain(w.Text))
	}
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
		c.PrintErrf("will change at the next start: %s\n", base.Plain(strings.Join(later, ", ")))
	}
}
