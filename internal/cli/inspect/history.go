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

type history[E any] struct {
	cli       *base.CLI
	cmd       *cobra.Command
	from      entrySource[E]
	follow    bool
	limit     *int
	instances *base.Instances
	format    *base.Format
}

type entrySource[E any] interface {
	prepare(args []string) error
	// read returns an instance's entries, newest first.
	read(ctx context.Context, on *api.Client) ([]E, error)
	merge(answers []api.FromInstance[[]E]) []E
	// stored returns the entries of an environment that is stopped or has no console, or notRunning if none are kept.
	stored(notRunning error) ([]E, error)
	// explainNone returns an error if a mistake is the reason for no entries. client is nil if no environment is
	// running.
	explainNone(ctx context.Context, client *api.Client) error
	// followInstance calls each for entries newer than a's.
	followInstance(ctx context.Context, on *api.Client, a *api.FromInstance[[]E], each func(E) error) error
	// name returns the text of -o name, or "" if it was already printed.
	name(*E) string
	text(*E) string
}

func addHistory[E any](c *base.CLI, cmd *cobra.Command, entries string, from entrySource[E], match *string,
	limit *int) *cobra.Command {
	h := &history[E]{cli: c, cmd: cmd, from: from, limit: limit}
	flags := cmd.Flags()
	flags.BoolVarP(&h.follow, "follow", "f", false, "Follow new "+entries+" until interrupted.")
	flags.StringVar(match, "match", "", "Show only "+entries+" that contain this text, case-insensitive.")
	flags.IntVarP(limit, "limit", "n", *limit, "Maximum "+entries+" to show (1-1000).")
	base.AddDataDir(cmd)
	h.instances = base.AddInstances(cmd)
	h.format = base.AddOutput(cmd)
	cmd.RunE = base.Verb(h.run)
	return cmd
}

func (h *history[E]) run(ctx context.Context, args []string) error {
	if err := cmp.Or(base.CheckConsoleLimit(*h.limit), h.from.prepare(args)); err != nil {
		return err
	}

	client, err := h.cli.Dial(h.cmd)
	var answers []api.FromInstance[[]E]
	if err == nil {
		answers, err = h.readInstances(ctx, client)
	}

	entries := h.from.merge(answers)
	stopped := errors.Is(err, api.ErrNotRunning) || errors.Is(err, api.ErrOff)
	if stopped && !h.follow && !h.instances.Any() {
		client = nil
		entries, err = h.from.stored(err)
	}
	if err != nil {
		return err
	}

	if len(entries) == 0 && !h.instances.Any() {
		if err := h.from.explainNone(ctx, client); err != nil {
			return err
		}
	}
	if !h.follow && (*h.format == base.AsJSON || *h.format == base.AsYAML) {
		return h.format.Print(h.cli, append([]E{}, entries...), nil, nil)
	}
	for _, e := range entries {
		if err := h.print(e); err != nil {
			return err
		}
	}
	if !h.follow {
		return nil
	}
	return h.followEach(ctx, client, answers)
}

func (h *history[E]) readInstances(ctx context.Context, client *api.Client) ([]api.FromInstance[[]E], error) {
	chosen, err := h.instances.Choose(ctx, client)
	if err != nil {
		return nil, err
	}
	answers := api.FromEach(ctx, client, chosen, h.from.read)
	return answers, base.PrintUnanswered(h.cli, answers)
}

func (h *history[E]) print(e E) error {
	return h.format.PrintEach(h.cli, e, h.from.name(&e), h.from.text(&e))
}

func (h *history[E]) followEach(ctx context.Context, client *api.Client, answers []api.FromInstance[[]E]) error {
	following, ctx := errgroup.WithContext(ctx)
	var printing sync.Mutex
	each := func(e E) error {
		printing.Lock()
		defer printing.Unlock()
		return h.print(e)
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			continue
		}
		following.Go(func() error {
			err := h.from.followInstance(ctx, client.On(a.Instance.ID), a, each)
			if len(answers) == 1 || ctx.Err() != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			h.cli.PrintErrf("%s: the stream has ended\n", base.Plain(a.Instance.Name))
			return nil
		})
	}
	err := following.Wait()
	if err == nil || errors.Is(err, api.ErrNotRunning) {
		h.cli.PrintErrln("the environment has stopped")
		return nil
	}
	return err
}

// NewEvents returns the command 'tendril events'.
func NewEvents(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show past events: starts, deployments, pauses, breakers, user actions",
		Long: `Shows the events of the environment, newest last: starts and stops, deployments, changes of the
leader, pauses, breakers, scaling, health, dead letters, and actions in the console. About 8 MiB of
events are kept in the data directory and can be read when no environment is running.`,
		Example: "  tendril events --kind deploy,pause --since 24h\n  tendril events -f --fleet",
		Args:    cobra.NoArgs,
	}

	s := &eventSource{cli: c, cmd: cmd, filter: api.EventFilter{Limit: 100}}
	flags := cmd.Flags()
	flags.StringSliceVar(&s.filter.Kinds, "kind", nil, "Kinds to show, by default all but read: "+strings.Join(event.Kinds(), ", ")+".")
	flags.DurationVar(&s.since, "since", 0, "Show only events of this period, such as 90m.")
	base.Complete(cmd, "kind", event.Kinds()...)
	return addHistory(c, cmd, "events", s, &s.filter.Match, &s.filter.Limit)
}

type eventSource struct {
	cli    *base.CLI
	cmd    *cobra.Command
	filter api.EventFilter
	since  time.Duration
}

func (s *eventSource) prepare([]string) error {
	for _, kind := range s.filter.Kinds {
		if !slices.Contains(event.Kinds(), kind) {
			return base.Usagef("unknown event kind %q", kind).
				Hint("use one or more of " + strings.Join(event.Kinds(), ","))
		}
	}
	if len(s.filter.Kinds) == 0 {
		s.filter.Kinds = event.DefaultKinds()
	}

	if s.since < 0 {
		return base.Usagef("--since %s is out of range", s.since).Hint("use a duration such as 90m")
	}
	if s.since > 0 {
		s.filter.Since = time.Now().Add(-s.since)
	}
	return nil
}

func (s *eventSource) read(ctx context.Context, on *api.Client) ([]eventlog.Event, error) {
	return on.Events(ctx, s.filter)
}

func (s *eventSource) merge(answers []api.FromInstance[[]eventlog.Event]) []eventlog.Event {
	return oldestFirst(api.NewestEvents(answers, s.filter.Limit))
}

func oldestFirst(events []eventlog.Event) []eventlog.Event {
	events = eventlog.OnePerAction(events)
	slices.Reverse(events)
	return events
}

func (s *eventSource) stored(notRunning error) ([]eventlog.Event, error) {
	dir, err := s.cli.DataDir(s.cmd)
	if err != nil {
		return nil, err
	}
	f := &s.filter
	events, err := eventlog.Read(dir, eventlog.Query{Range: eventlog.Range{Newest: true, Limit: f.Limit}, Kinds: f.Kinds,
		Since: f.Since, Match: f.Match})
	if err != nil {
		return nil, fmt.Errorf("reading the events of %s: %w", dir, err)
	}
	if all, err := eventlog.Read(dir, eventlog.Query{Range: eventlog.Range{Limit: 1}}); err == nil && len(all) == 0 {
		return nil, notRunning
	}
	return oldestFirst(events), nil
}

func (s *eventSource) explainNone(context.Context, *api.Client) error { return nil }

func (s *eventSource) followInstance(ctx context.Context, on *api.Client, a *api.FromInstance[[]eventlog.Event],
	each func(eventlog.Event) error) error {
	f := s.filter
	var previous eventlog.Event
	if len(a.Answer) > 0 {
		previous = a.Answer[0]
		f.After = previous.ID
	}
	return on.FollowEvents(ctx, f, func(e eventlog.Event) error {
		alreadyShown := eventlog.SameAction(&previous, &e)
		previous = e
		if alreadyShown {
			return nil
		}
		e.Instance = a.Instance.Name
		return each(e)
	})
}

func (s *eventSource) name(e *eventlog.Event) string { return strconv.FormatInt(e.ID, 10) }

// NewLogs returns the command 'tendril logs'.
func NewLogs(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs [PROCESS]",
		Short: "Show the last log lines of tendril and the app",
		Long: `Shows the last lines written by tendril and the app's processes. PROCESS is tendril or a process of
the app; web includes its replicas web-2 and so on. The running environment holds the last 4,000
lines, at most 2 MiB. If none is running, the files in --app-log-dir are read.`,
		Example: "  tendril logs -f web\n  tendril logs --level warn --match timeout",
		Args:    cobra.MaximumNArgs(1),
	}

	s := &lineSource{cli: c, cmd: cmd, filter: api.LineFilter{Limit: 200}, named: map[string]bool{}}
	cmd.Flags().TextVar(&s.filter.Level, "level", slog.LevelInfo, "Lowest level: debug, info, warn or error.")
	base.Complete(cmd, "level", "debug", "info", "warn", "error")
	base.AddSettings(cmd, "app-log-dir")
	return addHistory(c, cmd, "lines", s, &s.filter.Match, &s.filter.Limit)
}

type lineSource struct {
	cli    *base.CLI
	cmd    *cobra.Command
	filter api.LineFilter
	named  map[string]bool // processes whose name was printed
}

func (s *lineSource) prepare(args []string) error {
	s.filter.Process = base.Argument(args)
	return nil
}

func (s *lineSource) read(ctx context.Context, on *api.Client) ([]eventlog.Line, error) {
	return on.Logs(ctx, s.filter)
}

func (s *lineSource) merge(answers []api.FromInstance[[]eventlog.Line]) []eventlog.Line {
	lines := api.NewestLines(answers, s.filter.Limit)
	slices.Reverse(lines)
	return lines
}

func (s *lineSource) stored(notRunning error) ([]eventlog.Line, error) {
	return storedLines(s.cli, s.cmd, &s.filter, notRunning)
}

func (s *lineSource) explainNone(ctx context.Context, client *api.Client) error {
	names, err := s.processes(ctx, client)
	if err != nil {
		return err
	}
	name := s.filter.Process
	isNamed := func(process string) bool { return eventlog.IsOf(process, name) }
	if name == "" || slices.ContainsFunc(names, isNamed) {
		return nil
	}
	slices.Sort(names)
	return base.NotFoundf("process %q not found", name).
		Hint("choose one of " + strings.Join(slices.Compact(names), ", "))
}

func (s *lineSource) processes(ctx context.Context, client *api.Client) ([]string, error) {
	names := []string{eventlog.Own}
	if client == nil {
		paths, err := logFiles(s.cli, s.cmd, api.ErrNotRunning)
		for _, path := range paths {
			process, _ := parseLogName(path)
			names = append(names, process)
		}
		return names, err
	}

	status, err := client.Status(ctx)
	for _, p := range status.App {
		names = append(names, p.Name)
	}
	return names, err
}

func (s *lineSource) followInstance(ctx context.Context, on *api.Client, a *api.FromInstance[[]eventlog.Line],
	each func(eventlog.Line) error) error {
	f := s.filter
	if len(a.Answer) > 0 {
		f.After = a.Answer[0].ID
	}
	return on.FollowLogs(ctx, f, func(l eventlog.Line) error {
		l.Instance = a.Instance.Name
		return each(l)
	})
}

func (s *lineSource) name(l *eventlog.Line) string {
	if s.named[l.Process] {
		return ""
	}
	s.named[l.Process] = true
	return l.Process
}

// text returns a text such as
//
//	2026-01-02 03:04:05Z  pause        queue paused  queue=jobs reason="database upgrade"
func (s *eventSource) text(e *eventlog.Event) string {
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

func (s *lineSource) text(l *eventlog.Line) string {
	at := ""
	if !l.At.IsZero() {
		at = base.Stamp(l.At) + "  "
	}
	return fmt.Sprintf("%s%s%-7s | %s", at, instanceText(l.Instance), base.Plain(cmp.Or(l.Process, eventlog.Own)), base.Plain(l.Text))
}
