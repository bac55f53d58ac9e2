package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
)

// describeTimeout bounds what is asked of AWS.
const describeTimeout = 20 * time.Second

func newDescribe(c *cli) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "describe [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Show what an environment consists of, and every option in force",
		Long: `Shows the queues with their dead-letter queues, URLs, ARNs and attributes, targets, tasks,
leader, scaling, deployments, resources on AWS, ports, files, and the options in force with
the place that set them. Secrets are hidden.

It asks the environment that runs on the data directory. Where none runs, or with a folder,
a command or flags of 'tendril up', it shows what 'tendril up' would run with them.`,
		Example: `  tendril describe
  tendril describe -o yaml
  tendril describe path/to/app`,
		Args: oneApp,
	}
	addSettings(cmd, func(config.Option) bool { return true })
	addEnvironment(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "Also list the options that have their default.")
	prints(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (*api.Description, error) {
		if d, err := askRunning(c, ctx, cmd, args); d != nil || err != nil {
			return d, err
		}
		done := func() {}
		defer func() { done() }()
		opts, err := prepareApp(c, cmd, args, func(path string) (b *bundle.Bundle, err error) {
			b, done, err = c.lookInto(path)
			return b, err
		})
		if opts.Config == nil {
			return nil, err
		}
		if err != nil {
			c.warn(yamlfile.Problem{Text: "'tendril up' would be refused: " + err.Error()})
		}
		asked, cancel := context.WithTimeout(ctx, describeTimeout)
		defer cancel()
		d := opts.Describe(asked)
		return &d, nil
	}, view[*api.Description]{func(d *api.Description) error { return printDescription(c, d, all) },
		func(d *api.Description) []string { return []string{d.Environment} }})
	return cmd
}

// askRunning returns the description of the environment that runs on the data directory. It is nil where none runs,
// where it cannot be asked, and where the command line says what to describe; the last two are told.
func askRunning(c *cli, ctx context.Context, cmd *cobra.Command, args []string) (*api.Description, error) {
	dir, err := c.dataDir(cmd)
	if err != nil {
		return nil, err
	}
	const instead = "this is what 'tendril up' would run with the same arguments"
	client, err := api.Dial(dir)
	if errors.Is(err, api.ErrNotRunning) {
		return nil, nil
	}
	if err == nil {
		defer client.Close()
		if given := givenArguments(cmd, args); given != "" {
			c.warn(yamlfile.Problem{Text: fmt.Sprintf("environment %q, process %d, was not asked, because %s was given: %s",
				client.Instance.Environment, client.Instance.PID, given, instead)})
			return nil, nil
		}
		var d api.Description
		if d, err = client.Describe(ctx); err == nil {
			return &d, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	hint := ""
	if said := (*api.Error)(nil); errors.As(err, &said) {
		hint = said.Hint
	}
	c.warn(yamlfile.Problem{Text: "the running environment cannot be asked: " + err.Error() + "; " + instead, Hint: hint})
	return nil, nil
}

// givenArguments names an argument or a flag that says what 'tendril up' is to run; "" for none.
func givenArguments(cmd *cobra.Command, args []string) (given string) {
	if len(args) > 0 {
		return fmt.Sprintf("%q", args[0])
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, setting := f.Value.(*textValue); setting && f.Name != "data-dir" || f.Name == "dir" {
			given = cmp.Or(given, "--"+f.Name)
		}
	})
	return given
}

func printDescription(c *cli, d *api.Description, all bool) error {
	sections := [][][]string{describedFacts(d)}
	for i := range d.Queues {
		sections = append(sections, describedQueue(&d.Queues[i]))
	}
	if d.Tasks != nil {
		sections = append(sections, taskTable(d.Tasks.Tasks))
	}
	sections = append(sections, describedDeployments(d.Deployments), describedResources(d.Resources),
		describedPlaces(d.Ports, d.Files), describedOptions(d.Options, all), describedChanges(d.Changes))
	first := true
	for _, rows := range sections {
		if len(rows) < 2 {
			continue
		}
		if !first {
			fmt.Fprintln(c.out)
		}
		first = false
		if err := c.printTable(rows); err != nil {
			return err
		}
	}
	for _, note := range d.Notes {
		fmt.Fprintf(c.out, "\nnote: %s\n", plain(note))
	}
	if !all {
		fmt.Fprint(c.out, "\nThe other options have their defaults; --all lists them.\n")
	}
	return nil
}

// describedFacts is what there is once, below a heading.
func describedFacts(d *api.Description) [][]string {
	rows := table{{"ENVIRONMENT", d.Environment}}
	if d.Running {
		rows.add("process", fmt.Sprintf("%d, %s, up %s", d.PID, d.State, since(d.StartedAt)))
	} else {
		rows.add("process", "none: this is what 'tendril up' would run")
	}
	rows.add("tendril", d.Version)
	rows.add("app", d.AppVersion)
	for _, p := range d.Processes {
		rows.add("command", p.Name+": "+p.Command)
	}
	rows.add("region", d.Region)
	if d.Tasks != nil {
		rows.add("tasks", fmt.Sprintf("%d, %s", len(d.Tasks.Tasks), d.Tasks.File))
		rows.add("", d.Tasks.Off)
	}
	rows.add("election", d.Election)
	if d.Leader != nil {
		rows.add("leader", describedLeader(d.Leader))
	}
	if d.Scaling != nil && d.Running {
		rows.add("scaling", strings.ReplaceAll(scalingText(d.Scaling), "\n        ", "; "))
	} else if d.Scaling != nil {
		rows.add("scaling", fmt.Sprintf("%s, %d to %d", d.Scaling.Target, d.Scaling.MinSize, d.Scaling.MaxSize))
	}
	return rows
}

func describedLeader(l *api.Leader) string {
	text := "another instance"
	switch {
	case l.Local, l.Leading:
		text = "this instance"
	case l.Holder == "":
		text = "none known"
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
	rows := table{{"QUEUE", q.Name + " (" + q.Backend + ")"}}
	rows.add("delivers to", q.Target)
	rows.addQueue(q)
	if dead := q.DeadLetterQueue; dead != nil {
		rows.add("dead letters", dead.Name)
		rows.addQueue(dead)
	}
	return rows
}

func (t *table) addQueue(q *api.DescribedQueue) {
	t.add("  URL", q.URL)
	t.add("  ARN", q.ARN)
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		if name != "QueueArn" {
			t.add("  "+name, q.Attributes[name])
		}
	}
}

func describedDeployments(all []api.Deployment) [][]string {
	rows := [][]string{{"DEPLOYMENT", "STATE", "SINCE", "ERROR"}}
	for _, d := range all {
		rows = append(rows, []string{d.To, d.State, since(d.Since), d.Error})
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

func describedOptions(all []api.DescribedOption, defaults bool) [][]string {
	rows := [][]string{{"OPTION", "VALUE", "SET BY"}}
	for _, o := range all {
		if defaults || o.Layer != config.Default.String() {
			rows = append(rows, []string{o.Name, o.Value, originOf(o.OptionValue).String()})
		}
	}
	return rows
}

func describedChanges(all []api.OptionChange) [][]string {
	rows := [][]string{{"CHANGED SINCE", "VALUE IN THE FILES NOW", "SET BY", "IN FORCE AFTER"}}
	for _, o := range all {
		rows = append(rows, []string{o.Name, o.Value, originOf(o.OptionValue).String(), takesEffect(o)})
	}
	return rows
}

func takesEffect(o api.OptionChange) string {
	if o.Restart {
		return "a restart"
	}
	return "'tendril reload'"
}

func originOf(v api.OptionValue) config.Origin {
	return config.Origin{Layer: config.ParseLayer(v.Layer), Where: v.Where}
}

// explanationOf is what the running process says of an option.
func explanationOf(o config.Option, d *api.Description) *config.Explanation {
	said, _ := d.Option(o.Name)
	e := &config.Explanation{Option: o, Value: said.Value, From: originOf(said.OptionValue)}
	for _, set := range said.SetBy {
		e.Chain = append(e.Chain, config.Setting{Origin: originOf(set), Value: set.Value})
	}
	if len(e.Chain) == 0 {
		e.Chain = []config.Setting{{Origin: e.From, Value: e.Value}}
	}
	if o.Name != "queues" {
		return e
	}
	for _, q := range d.Queues {
		of := config.QueueExplanation{Name: q.Name}
		for _, s := range q.Settings {
			of.Settings = append(of.Settings, config.QueueSetting{Key: s.Name, Value: s.Value, From: originOf(s.OptionValue)})
		}
		e.Queues = append(e.Queues, of)
	}
	return e
}
