package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/tasks"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
)

const describeTimeout = 20 * time.Second

// NewDescribe returns the command 'tendril describe'.
func NewDescribe(c *base.CLI) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "describe [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Show the parts of an environment, and every option in force",
		Long: `Shows the queues with their dead-letter queues, URLs, ARNs and attributes, targets, tasks,
leader, scaling, deployments, resources on AWS, ports, files, and the options in force with
their origin. Secrets are hidden.

Asks the environment that runs on the data directory. If none is running, or with a folder,
a command or flags of 'tendril up', it shows the environment that 'tendril up' would run.`,
		Example: `  tendril describe
  tendril describe -o yaml
  tendril describe path/to/app`,
		Args: base.OneApp,
	}

	base.AddSettings(cmd)
	base.AddEnvironment(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "Also list options at their default.")
	base.Prints(c, cmd, func(ctx context.Context, args []string) (*api.Description, error) {
		if d, err := AskRunning(ctx, c, cmd, quotedFirst(args)); d != nil || err != nil {
			return d, err
		}
		opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
		if opts.Config == nil {
			return nil, err
		}
		if err != nil {
			c.PrintWarnings(yamlfile.Problem{Text: "'tendril up' would fail: " + err.Error()})
		}
		asked, cancel := context.WithTimeout(ctx, describeTimeout)
		defer cancel()
		d := opts.Describe(asked)
		return &d, nil
	}, base.ViewOf(func(d *api.Description) error { return printDescription(c, d, all) },
		func(d *api.Description) []string { return []string{d.Environment} }))
	return cmd
}

// AskRunning returns the running environment's description. It returns nil if no environment is reachable, or if
// argument is not "" or flags set options, which describe another one.
func AskRunning(ctx context.Context, c *base.CLI, cmd *cobra.Command, argument string) (*api.Description, error) {
	if _, err := c.DataDir(cmd); err != nil && !errors.Is(err, api.ErrNotRunning) {
		return nil, err
	}
	client, err := dialUnlessOther(c, cmd, argument)
	if err != nil {
		return nil, warnOfUnreachable(ctx, c, err)
	}
	if client == nil {
		return nil, nil
	}
	d, err := client.Describe(ctx)
	if err != nil {
		return nil, warnOfUnreachable(ctx, c, err)
	}
	return &d, nil
}

func dialUnlessOther(c *base.CLI, cmd *cobra.Command, argument string) (*api.Client, error) {
	client, err := c.Dial(cmd)
	if errors.Is(err, api.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if given := cmp.Or(argument, firstSetting(cmd)); given != "" {
		c.PrintWarnings(yamlfile.Problem{Text: fmt.Sprintf("environment %q (process %d) was not queried because %s was given",
			client.Instance.Environment, client.Instance.PID, given)})
		return nil, nil
	}
	return client, nil
}

func warnOfUnreachable(ctx context.Context, c *base.CLI, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	hint := ""
	var apiError *api.Error
	if errors.As(err, &apiError) {
		hint = apiError.Hint
	}
	c.PrintWarnings(yamlfile.Problem{Text: "cannot query the running environment: " + err.Error() +
		"; this is what 'tendril up' would run with the same arguments", Hint: hint})
	return nil
}

func quotedFirst(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return strconv.Quote(args[0])
}

// firstSetting ignores --data-dir, which selects a running environment.
func firstSetting(cmd *cobra.Command) (flag string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if base.IsSetting(f) && f.Name != "data-dir" {
			flag = cmp.Or(flag, "--"+f.Name)
		}
	})
	return flag
}

func printDescription(c *base.CLI, d *api.Description, all bool) error {
	sections := [][][]string{describedFacts(d)}
	for i := range d.Queues {
		sections = append(sections, describedQueue(&d.Queues[i]))
	}

	if d.Tasks != nil {
		sections = append(sections, tasks.List.Table(d.Tasks.Tasks))
	}

	sections = append(sections, describedDeployments(d.Deployments), describedResources(d.Resources),
		describedPlaces(d.Ports, d.Files), DescribedOptions(d.Options, all), DescribedChanges(d.Changes))
	sections = slices.DeleteFunc(sections, func(rows [][]string) bool { return len(rows) == 1 }) // only a heading
	for i, rows := range sections {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		if err := c.PrintTable(rows); err != nil {
			return err
		}
	}

	for _, note := range d.Notes {
		c.Printf("\nnote: %s\n", base.Plain(note))
	}

	if !all {
		fmt.Fprint(c.Out, "\nThe other options have their defaults; --all lists them.\n")
	}

	return nil
}

func describedFacts(d *api.Description) [][]string {
	rows := base.Table{{"ENVIRONMENT", d.Environment}}
	if d.Running {
		rows.Add("process", fmt.Sprintf("%d, %s, up %s", d.PID, d.State, base.Since(d.StartedAt)))
	} else {
		rows.Add("process", "none: this is what 'tendril up' would run")
	}

	rows.Add("tendril", d.Version)
	rows.Add("app", d.AppVersion)
	for _, p := range d.Processes {
		rows.Add("command", p.Name+": "+p.Command)
	}

	rows.Add("region", d.Region)
	if d.Tasks != nil {
		rows.Add("tasks", fmt.Sprintf("%d, %s", len(d.Tasks.Tasks), d.Tasks.File))
		rows.Add("", d.Tasks.Off)
	}

	rows.Add("election", d.Election)
	if d.Leader != nil {
		rows.Add("leader", describedLeader(d.Leader))
	}

	if d.Scaling != nil && d.Running {
		rows.Add("scaling", scalingLines(d.Scaling).Join("; "))
	} else if d.Scaling != nil {
		rows.Add("scaling", fmt.Sprintf("%s, %d to %d", d.Scaling.Target, d.Scaling.MinSize, d.Scaling.MaxSize))
	}

	return rows
}

func describedLeader(l *api.Leader) string {
	text := "another instance"
	switch {
	case l.Local, l.Leading:
		text = "this instance"
	case l.Holder == "":
		text = "unknown"
	}

	if l.Holder != "" {
		text += ": " + l.Holder
	}
	if l.Term > 0 {
		text += fmt.Sprintf(", term %d", l.Term)
	}
	if l.Error != "" {
		text += "; PROBLEM: " + l.Error
	}

	return text
}

func describedQueue(q *api.DescribedQueue) [][]string {
	rows := base.Table{{"QUEUE", q.Name + " (" + q.Backend + ")"}}
	rows.Add("delivers to", q.Target)
	addQueue(&rows, q)
	if dead := q.DeadLetterQueue; dead != nil {
		rows.Add("dead letters", dead.Name)
		addQueue(&rows, dead)
	}
	return rows
}

func addQueue(t *base.Table, q *api.DescribedQueue) {
	t.Add("  URL", q.URL)
	t.Add("  ARN", q.ARN)
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		if name != "QueueArn" {
			t.Add("  "+name, q.Attributes[name])
		}
	}
}

func describedDeployments(all []api.Deployment) [][]string {
	rows := [][]string{{"DEPLOYMENT", "STATE", "SINCE", "ERROR"}}
	for _, d := range all {
		rows = append(rows, []string{d.To, d.State, base.Since(d.Since), d.Error})
	}
	return rows
}

func describedResources(all []api.Resource) [][]string {
	rows := [][]string{{"RESOURCE ON AWS", "NAME", "OWNED", "REGION OR ARN", "NOTE"}}
	for _, r := range all {
		owned := "no"
		if r.Owned {
			owned = "yes"
		}
		rows = append(rows, []string{r.Kind, r.Name, owned, cmp.Or(r.ARN, r.URL, r.Region), r.Note})
	}
	return rows
}

func describedPlaces(ports, files []api.Place) [][]string {
	rows := [][]string{{"PORT OR FILE", "WHERE"}}
	for _, p := range slices.Concat(ports, files) {
		rows = append(rows, []string{p.Use, p.At})
	}
	return rows
}

// DescribedOptions returns a table of options and their origins, including defaults if requested.
func DescribedOptions(all []api.DescribedOption, defaults bool) [][]string {
	rows := [][]string{{"OPTION", "VALUE", "SET BY"}}
	for _, o := range all {
		if defaults || o.Layer != config.Default.String() {
			rows = append(rows, []string{o.Name, o.Value, base.OriginOf(o.OptionValue).String()})
		}
	}
	return rows
}

// DescribedChanges returns a table of options whose values in the files have changed since the process read them.
func DescribedChanges(all []api.OptionChange) [][]string {
	rows := [][]string{{"CHANGED SINCE", "VALUE IN THE FILES NOW", "SET BY", "IN FORCE AFTER"}}
	for _, o := range all {
		rows = append(rows, []string{o.Name, o.Value, base.OriginOf(o.OptionValue).String(), TakesEffect(o)})
	}
	return rows
}

// TakesEffect names the action that applies a change.
func TakesEffect(o api.OptionChange) string {
	if o.Restart {
		return "a restart"
	}
	return "'tendril reload'"
}

// ExplanationsOf explains the options in a running process's description.
func ExplanationsOf(d *api.Description) (all []config.Explanation) {
	for _, option := range d.Options {
		e := config.Explanation{Value: option.Value, From: base.OriginOf(option.OptionValue)}
		e.Option.Name = option.Name // without help if the process is a different version of tendril
		if o, found := config.Lookup(option.Name); found {
			e.Option = o
		}
		for _, set := range option.SetBy {
			e.Chain = append(e.Chain, config.Setting{Origin: base.OriginOf(set), Value: set.Value})
		}
		if len(e.Chain) == 0 {
			e.Chain = []config.Setting{{Origin: e.From, Value: e.Value}}
		}
		if option.Name == "queues" {
			e.Queues = explainedQueues(d.Queues)
		}
		all = append(all, e)
	}
	return all
}

func explainedQueues(queues []api.DescribedQueue) (all []config.QueueExplanation) {
	for _, q := range queues {
		e := config.QueueExplanation{Name: q.Name}
		for _, s := range q.Settings {
			e.Settings = append(e.Settings, config.QueueSetting{Key: s.Name, Value: s.Value, From: base.OriginOf(s.OptionValue)})
		}
		all = append(all, e)
	}
	return all
}
