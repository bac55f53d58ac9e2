package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
)

// NewEvents returns the command 'tendril events'.
func NewEvents(c *base.CLI) *cobra.Command {
	v := &eventsCommand{cli: c, filter: api.EventFilter{Limit: 100}}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show past events: starts, deployments, pauses, breakers, user actions",
		Long: `Shows the events of the environment, newest last: starts and stops, deployments, changes of the
leader, pauses, breakers, scaling, health, dead letters, and actions in the console. About 8 MiB of
events are kept in the data directory and can be read when no environment is running.`,
		Example: "  tendril events --kind deploy,pause --since 24h\n  tendril events -f --fleet",
		Args:    cobra.NoArgs,
	}

	flags := cmd.Flags()
	flags.BoolVarP(&v.follow, "follow", "f", false, "Follow new events until interrupted.")
	flags.StringSliceVar(&v.filter.Kinds, "kind", nil, "Kinds to show, by default all but read: "+strings.Join(event.Kinds(), ", ")+".")
	flags.DurationVar(&v.since, "since", 0, "Show only events of this period, such as 90m.")
	flags.StringVar(&v.filter.Match, "match", "", "Show only events that contain this text, case-insensitive.")
	flags.IntVarP(&v.filter.Limit, "limit", "n", v.filter.Limit, "Maximum events to show (1-1000).")
	base.Complete(cmd, "kind", event.Kinds()...)
	base.AddDataDir(cmd)
	v.instances = base.AddInstances(cmd)
	v.format = base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if err := v.completeFilter(); err != nil {
			return err
		}

		err := v.print(ctx, cmd)
		stopped := errors.Is(err, api.ErrNotRunning) || errors.Is(err, api.ErrOff)
		if stopped && !v.follow && !v.instances.Any() {
			return storedEvents(c, cmd, v.filter, *v.format, err)
		}
		return err
	})
	return cmd
}

type eventsCommand struct {
	cli       *base.CLI
	filter    api.EventFilter
	since     time.Duration
	follow    bool
	instances *base.Instances
	format    *base.Format
	last      eventlog.Event
}

// completeFilter validates the flags, and sets the filter's kinds and start.
func (v *eventsCommand) completeFilter() error {
	for _, kind := range v.filter.Kinds {
		if !slices.Contains(event.Kinds(), kind) {
			return base.Usagef("unknown event kind %q", kind).
				Hint("use one or more of " + strings.Join(event.Kinds(), ","))
		}
	}
	if len(v.filter.Kinds) == 0 {
		v.filter.Kinds = event.DefaultKinds()
	}

	if err := base.CheckShown(v.filter.Limit); err != nil {
		return err
	}

	if v.since < 0 {
		return base.Usagef("--since %s is out of range", v.since).Hint("use a duration such as 90m")
	}
	if v.since > 0 {
		v.filter.Since = time.Now().Add(-v.since)
	}
	return nil
}

func (v *eventsCommand) print(ctx context.Context, cmd *cobra.Command) error {
	client, err := v.cli.Dial(cmd)
	if err != nil {
		return err
	}
	chosen, err := v.instances.Choose(ctx, client)
	if err != nil {
		return err
	}
	answers := api.FromEach(ctx, client, chosen, func(ctx context.Context, on *api.Client) ([]eventlog.Event, error) {
		return on.Events(ctx, v.filter)
	})
	if err := base.PrintUnanswered(v.cli, answers); err != nil {
		return err
	}

	events := api.NewestEvents(answers, v.filter.Limit)
	if !v.follow {
		return printEvents(v.cli, events, *v.format)
	}
	for _, e := range slices.Backward(eventlog.OnePerAction(events)) {
		if err := v.printNew(e); err != nil {
			return err
		}
	}
	return followEach(ctx, v.cli, client, answers, v.printNew, v.followInstance)
}

// printNew skips an action that caused the last event.
func (v *eventsCommand) printNew(e eventlog.Event) error {
	if len(eventlog.OnePerAction([]eventlog.Event{e, v.last})) == 1 {
		return nil
	}
	v.last = e
	return v.format.PrintEach(v.cli, e, eventID(&e), eventText(&e))
}

func (v *eventsCommand) followInstance(ctx context.Context, on *api.Client, a *api.FromInstance[[]eventlog.Event],
	print func(eventlog.Event) error) error {
	f := v.filter
	if len(a.Answer) > 0 {
		f.After = a.Answer[0].ID
	}
	return on.FollowEvents(ctx, f, func(e eventlog.Event) error {
		e.Instance = a.Instance.Name
		return print(e)
	})
}

// followEach calls print for one entry at a time.
func followEach[E any](ctx context.Context, c *base.CLI, client *api.Client, answers []api.FromInstance[[]E], print func(E) error,
	follow func(context.Context, *api.Client, *api.FromInstance[[]E], func(E) error) error) error {
	following, ctx := errgroup.WithContext(ctx)
	var printing sync.Mutex
	each := func(e E) error {
		printing.Lock()
		defer printing.Unlock()
		return print(e)
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			continue
		}
		following.Go(func() error {
			err := follow(ctx, client.On(a.Instance.ID), a, each)
			if len(answers) == 1 || ctx.Err() != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			c.PrintErrf("%s: the stream has ended\n", base.Plain(a.Instance.Name))
			return nil
		})
	}
	return streamEnd(c, following.Wait())
}

// storedEvents prints the events of the stopped environment. If there aren't any, it returns notRunning.
func storedEvents(c *base.CLI, cmd *cobra.Command, f api.EventFilter, format base.Format,
	notRunning error) error {
	dir, err := c.DataDir(cmd)
	if err != nil {
		return err
	}
	events, err := eventlog.Read(dir, eventlog.Query{Range: eventlog.Range{Newest: true, Limit: f.Limit}, Kinds: f.Kinds,
		Since: f.Since, Match: f.Match})
	if err != nil {
		return fmt.Errorf("reading the events of %s: %w", dir, err)
	}
	if stored, err := eventlog.Read(dir, eventlog.Query{Range: eventlog.Range{Limit: 1}}); err == nil && len(stored) == 0 {
		return notRunning
	}
	return printEvents(c, events, format)
}

// printEvents prints events, which must be sorted newest first, in reverse order.
func printEvents(c *base.CLI, events []eventlog.Event, format base.Format) error {
	events = append([]eventlog.Event{}, eventlog.OnePerAction(events)...)
	slices.Reverse(events)
	return base.PrintValue(c, format, events,
		base.ViewOf(texts(c, eventText), base.Named(eventID)))
}

func eventID(e *eventlog.Event) string { return strconv.FormatInt(e.ID, 10) }

func texts[E any](c *base.CLI, text func(*E) string) func([]E) error {
	return func(all []E) error {
		for i := range all {
			if _, err := c.Println(text(&all[i])); err != nil {
				return err
			}
		}
		return nil
	}
}

// NewLogs returns the command 'tendril logs'.
func NewLogs(c *base.CLI) *cobra.Command {
	filter := api.LineFilter{Limit: 200}
	var follow bool
	level := slog.LevelInfo
	cmd := &cobra.Command{
		Use:   "logs [PROCESS]",
		Short: "Show the last log lines of tendril and the app",
		Long: `Shows the last lines written by tendril and the app's processes. PROCESS is tendril or a process of
the app; web includes its replicas web-2 and so on. The running environment holds the last 4,000
lines. If none is running, the files in --app-log-dir are read.`,
		Example: "  tendril logs -f web\n  tendril logs --level warn --match timeout",
		Args:    cobra.MaximumNArgs(1),
	}

	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "Follow new lines until interrupted.")
	flags.StringVar(&filter.Match, "match", "", "Show only lines that contain this text, case-insensitive.")
	flags.TextVar(&level, "level", level, "Lowest level: debug, info, warn or error.")
	flags.IntVarP(&filter.Limit, "limit", "n", filter.Limit, "Maximum lines to show (1-1000).")
	base.Complete(cmd, "level", "debug", "info", "warn", "error")
	base.AddDataDir(cmd)
	base.AddSettings(cmd, "app-log-dir")
	instances := base.AddInstances(cmd)
	format := base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if err := base.CheckShown(filter.Limit); err != nil {
			return err
		}

		filter.Process = base.Argument(args)
		filter.Level = level
		client, err := c.Dial(cmd)
		var lines []eventlog.Line
		var answers []api.FromInstance[[]eventlog.Line]
		if err == nil {
			answers, err = readLines(ctx, c, client, instances, filter)
			lines = api.NewestLines(answers, filter.Limit)
			slices.Reverse(lines)
		}

		stopped := errors.Is(err, api.ErrNotRunning) || errors.Is(err, api.ErrOff)
		if stopped && !follow && !instances.Any() {
			client = nil
			lines, err = storedLines(c, cmd, &filter, err)
		}
		if err != nil {
			return err
		}

		if len(lines) == 0 && !instances.Any() {
			if err := checkProcess(ctx, c, cmd, client, filter.Process); err != nil {
				return err
			}
		}

		process := processNames()
		if !follow {
			return base.PrintValue(c, *format, append([]eventlog.Line{}, lines...),
				base.ViewOf(texts(c, lineText), base.Named(process)))
		}

		print := func(l eventlog.Line) error { return format.PrintEach(c, l, process(&l), lineText(&l)) }
		for _, l := range lines {
			if err := print(l); err != nil {
				return err
			}
		}
		return followEach(ctx, c, client, answers, print, func(ctx context.Context, on *api.Client, a *api.FromInstance[[]eventlog.Line], each func(eventlog.Line) error) error {
			f := filter
			if len(a.Answer) > 0 {
				f.After = a.Answer[0].ID
			}
			return on.FollowLogs(ctx, f, func(l eventlog.Line) error {
				l.Instance = a.Instance.Name
				return each(l)
			})
		})
	})

	return cmd
}

func readLines(ctx context.Context, c *base.CLI, client *api.Client, of *base.Instances, filter api.LineFilter) (
	[]api.FromInstance[[]eventlog.Line], error) {
	chosen, err := of.Choose(ctx, client)
	if err != nil {
		return nil, err
	}
	answers := api.FromEach(ctx, client, chosen, func(ctx context.Context, on *api.Client) ([]eventlog.Line, error) {
		return on.Logs(ctx, filter)
	})
	return answers, base.PrintUnanswered(c, answers)
}

// checkProcess accepts a nil client, which means that no environment is running.
func checkProcess(ctx context.Context, c *base.CLI, cmd *cobra.Command, client *api.Client,
	name string) error {
	names, err := processesWithLines(ctx, c, cmd, client)
	if err != nil {
		return err
	}
	known := func(process string) bool { return eventlog.IsOf(process, name) }
	if name == "" || slices.ContainsFunc(names, known) {
		return nil
	}
	slices.Sort(names)
	return base.NotFoundf("process %q not found", name).
		Hint("choose one of " + strings.Join(slices.Compact(names), ", "))
}

func processesWithLines(ctx context.Context, c *base.CLI, cmd *cobra.Command, client *api.Client) ([]string, error) {
	names := []string{eventlog.Own}
	if client == nil {
		lines, err := storedLines(c, cmd, &api.LineFilter{Limit: 1}, api.ErrNotRunning)
		for _, l := range lines {
			names = append(names, l.Process)
		}
		return names, err
	}

	status, err := client.Status(ctx)
	for _, p := range status.App {
		names = append(names, p.Name)
	}
	return names, err
}

// processNames returns a function that returns a line's process the first time it occurs, and "" afterwards.
func processNames() func(*eventlog.Line) string {
	seen := map[string]bool{}
	return func(l *eventlog.Line) string {
		if seen[l.Process] {
			return ""
		}
		seen[l.Process] = true
		return l.Process
	}
}

func streamEnd(c *base.CLI, err error) error {
	if err == nil || errors.Is(err, api.ErrNotRunning) {
		c.PrintErrln("the environment has stopped")
		return nil
	}
	return err
}

// eventText returns a text such as
//
//	2026-01-02 03:04:05Z  pause        queue paused  queue=jobs reason="database upgrade"
func eventText(e *eventlog.Event) string {
	text, fields := e.Text, e.Fields
	if fields["action"] != "" {
		text, fields = e.Sentence()
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s%-11s  %s", base.Stamp(e.At), instanceText(e.Instance), base.Plain(e.Kind), base.Plain(text))
	separator := "  "
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := base.Plain(fields[name])
		if value == "" || strings.ContainsAny(value, " \"=") {
			value = `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
		}
		b.WriteString(separator + base.Plain(name) + "=" + value)
		separator = " "
	}
	return b.String()
}

func instanceText(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%-20s  ", base.Plain(name))
}

// lineText returns a text such as
//
//	2026-01-02 03:04:05Z  web-2   | listening on port 8080
func lineText(l *eventlog.Line) string {
	at := ""
	if !l.At.IsZero() {
		at = base.Stamp(l.At) + "  "
	}
	return fmt.Sprintf("%s%s%-7s | %s", at, instanceText(l.Instance), base.Plain(cmp.Or(l.Process, eventlog.Own)), base.Plain(l.Text))
}
