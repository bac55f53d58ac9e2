package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type deadLetterQueue struct {
	cli   *base.CLI
	queue *target.Queue
	// source is the queue whose redrive policy names this dead-letter queue, or "" if the search started here. It is the
	// destination of messages with an unknown source.
	source string
	count  int         // approximate on Amazon SQS
	newest int64       // 0 on Amazon SQS
	worker *api.Client // the local environment that receives from the queue, or nil
}

type deadLetterQueues []*deadLetterQueue

// findDeadLetterQueues returns the named queue's dead-letter queue, or the queue itself if it is a dead-letter queue.
// Without a name, it returns all dead-letter queues of the environment.
func findDeadLetterQueues(ctx context.Context, c *base.CLI, w *target.Flags,
	which *selector) (dead deadLetterQueues, err error) {
	queues, err := findCandidates(ctx, w)
	if err != nil {
		return nil, err
	}

	known := map[string]bool{}
	for _, p := range queues {
		dlq, err := deadLetterQueueOf(ctx, c, p)
		if base.ExitCode(err) == base.ExitNotFound && len(queues) > 1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := which.checkSupportedBy(dlq.queue); err != nil {
			return nil, err
		}
		if address := dlq.queue.Address(); !known[address] {
			known[address] = true
			dlq.worker = workerOf(w, p)
			dead = append(dead, dlq)
		}
	}

	if len(dead) == 0 {
		return nil, noDeadLetterQueue(target.NamesOf(queues)...)
	}

	if len(which.ids) > 0 { // looking them up in embedded queues first may save receives
		slices.SortStableFunc(dead, func(a, b *deadLetterQueue) int {
			return cmp.Compare(a.lookupOrder(), b.lookupOrder())
		})
	}

	return dead, nil
}

func (dlq *deadLetterQueue) lookupOrder() int {
	if dlq.queue.Remote != nil {
		return 1
	}
	return 0
}

func workerOf(w *target.Flags, p *target.Queue) *api.Client {
	if p.Remote == nil {
		return p.Client
	}
	client, err := w.Dial()
	if err != nil || !p.WorkedOnBy(&client.Instance) {
		return nil
	}
	return client
}

// findCandidates returns queues that may have or be dead-letter queues.
func findCandidates(ctx context.Context, w *target.Flags) (queues []*target.Queue, err error) {
	if w.IsNamed() {
		return w.FindAll(ctx)
	}

	client, err := w.Dial()
	if err != nil || !client.Instance.Embedded() {
		return w.FindAll(ctx)
	}

	if len(client.Instance.Queues) > 0 {
		if queues, err = w.FindAll(ctx); err != nil {
			return nil, err
		}
	}

	all, err := client.Queues(ctx)
	if err != nil {
		return nil, err
	}
	dead := api.DeadLetterQueues(all)
	for _, q := range all {
		if dead[q.Name] {
			queues = append(queues, &target.Queue{Name: q.Name, Client: client})
		}
	}

	if len(queues) == 0 {
		return nil, base.NotFoundf("no dead-letter queue found").
			Hint("create a queue with one: tendril queues create NAME")
	}
	return queues, nil
}

// deadLetterQueueOf leaves worker unset.
func deadLetterQueueOf(ctx context.Context, c *base.CLI, p *target.Queue) (*deadLetterQueue, error) {
	q, err := p.Describe(ctx)
	if err != nil {
		return nil, err
	}

	dead, source := p, ""
	if q.DeadLetterQueue != "" {
		source = p.Name
		if dead, err = p.DeadLetterQueue(ctx, q.DeadLetterQueue); err == nil {
			q, err = dead.Describe(ctx)
		}
	} else {
		var sources []string
		if sources, err = p.DeadLetterSources(ctx); err == nil && len(sources) == 0 {
			err = noDeadLetterQueue(p.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	return &deadLetterQueue{cli: c, queue: dead, source: source, count: int(q.Ledger.Live), newest: q.Newest}, nil
}

func (d deadLetterQueues) names() []string {
	return base.Named(func(dlq **deadLetterQueue) string { return (*dlq).queue.Name })(d)
}

func (d deadLetterQueues) nameList() string { return strings.Join(d.names(), ", ") }

func (d deadLetterQueues) count() (n int) {
	for _, dlq := range d {
		n += dlq.count
	}
	return n
}

func (d deadLetterQueues) contents(which *selector) []messageSource {
	sources := make([]messageSource, len(d))
	for i := range d {
		sources[i] = d[i].contents(which)
	}
	return sources
}

func (d deadLetterQueues) forEach(ctx context.Context, which *selector,
	do func(context.Context, *deadLetterQueue, *selection) (int, error)) (n int, err error) {
	selection := which.begin()
	for _, dlq := range d {
		done, err := do(ctx, dlq, selection)
		n += done
		if err != nil {
			return n, err
		}
		if selection.full() {
			break
		}
	}
	return n, selection.notFound(d.names())
}

// refuseLimit rejects a limit for several queues, because finding the oldest messages would require reading all of
// them.
func (d deadLetterQueues) refuseLimit(w *target.Flags, which *selector) error {
	if which.limit == 0 || len(d) == 1 {
		return nil
	}
	return base.Usagef("--limit works on one queue, but there are %d dead-letter queues: %s", len(d),
		d.nameList()).Hint(fmt.Sprintf("name one: %s --queue %s", w.CommandPath(), d[0].queue.Name))
}

func noDeadLetterQueue(names ...string) error {
	return base.NotFoundf("%s no dead-letter queue", queuesHave(names)).
		Hint("create a queue with one: tendril queues create NAME")
}

func (dlq *deadLetterQueue) contents(which *selector) messageSource {
	p := sourceOf(dlq.queue, which)
	if remote, ok := p.(*sqsSource); ok {
		remote.beforeRead = func() { warnOfReceives(dlq.cli, dlq.queue.Name) }
		remote.source = dlq.source
		remote.sources = dlq.queue.DeadLetterSources
		remote.failures = dlq.recentFailures
	}
	return p
}

func newDeadList(c *base.CLI) *cobra.Command {
	which := &selector{all: true}
	var dead deadLetterQueues
	cmd := base.ListCommand("List dead letters, oldest first")
	cmd.Use = "list [QUEUE]"
	w := target.AddQueueArgument(c, cmd, target.AllDeadLetters)
	cmd.Flags().IntVarP(&which.limit, "limit", "n", 100, "Maximum dead letters to list.")
	cmd.Flags().StringVar(&which.filter.Match, "match", "", "List only dead letters whose body contains this text.")
	addReason(cmd, which)
	addDeadFilter(cmd, which)
	base.Prints(c, cmd, func(ctx context.Context, _ []string) (messages []api.Message, err error) {
		if err := cmp.Or(base.CheckLimit(which.limit), which.parse(nil)); err != nil {
			return nil, err
		}
		if dead, err = findDeadLetterQueues(ctx, c, w, which); err != nil {
			return nil, err
		}
		messages, err = collectAll(ctx, dead.contents(which), which.begin)
		return which.oldest(messages), err
	}, base.ViewOf(func(messages []api.Message) error { return printDead(c, dead, messages, which) }, messageIDs))
	return cmd
}

func printDead(c *base.CLI, dead deadLetterQueues, messages []api.Message, which *selector) error {
	if len(messages) == 0 {
		text := "no dead letters in %s\n"
		if which.hasFilter() {
			text = "no dead letter in %s matches the filter\n"
		}
		c.PrintErrf(text, dead.nameList())
		return nil
	}

	if err := c.PrintTable(deadList.Table(messages)); err != nil {
		return err
	}

	switch n := dead.count(); {
	case len(messages) < which.limit || n <= len(messages):
	case which.hasFilter():
		c.PrintErrf("the first %d that match; --limit shows more\n", len(messages))
	default:
		c.PrintErrf("%d of %s; --limit shows more\n", len(messages), base.Plural(n, "dead letter"))
	}

	return nil
}

// failedTimes prefers the times that tendril recorded in a copy to the message's own.
func failedTimes(m *api.Message) (sent, died time.Time) {
	if f := recordedFailure(m); f != nil {
		return f.SentAt, f.FailedAt
	}
	return m.SentAt, m.DeadAt
}

var deadList = base.List[api.Message]{
	Heading: []string{"ID", "AGE", "DEAD FOR", "RECEIVES", "FROM", "LAST FAILURE", "BODY"},
	Row: func(m *api.Message) []string {
		sent, died := failedTimes(m)
		receives := m.ReceiveCount
		if f := recordedFailure(m); f != nil {
			receives += f.Receives
		}
		reason := ""
		if last := lastAttempt(m); last != nil {
			reason = base.Preview(last.Summary(), 40)
		}
		return []string{m.ID, base.Since(sent), base.Since(died), fmt.Sprint(receives),
			cmp.Or(queue.NameInARN(sourceARN(m)), "-"), cmp.Or(reason, "-"), base.Preview(m.Body, previewWidth)}
	},
}

func (dlq *deadLetterQueue) recentFailures(ctx context.Context) map[string][]api.Attempt {
	failures := map[string][]api.Attempt{}
	if dlq.worker == nil {
		return failures
	}
	recent, err := dlq.worker.Deliveries(ctx, api.DefaultDeliveries)
	if err != nil {
		return failures
	}
	for _, d := range slices.Backward(recent) {
		if !d.Done() {
			failures[d.MessageID] = append(failures[d.MessageID], api.Attempt{At: d.At, Outcome: d.Outcome, Status: d.Status,
				Reason: d.Reason, Answer: d.Answer, DurationMS: d.DurationMS, ReceiveCount: d.ReceiveCount, RetryAt: d.RetryAt})
		}
	}
	return failures
}

type queueReason struct {
	Queue string `json:"queue"`
	api.ReasonGroup
}

func newDeadReasons(c *base.CLI) *cobra.Command {
	var dead deadLetterQueues
	cmd := &cobra.Command{
		Use:   "reasons [QUEUE]",
		Short: "Group dead letters by the reason of their last failure",
		Long: `Groups dead letters by the status of the last response and its message (from JSON, the title of an
HTML page, or the first line), largest group first.
# stands for a number, * for an ID. Messages without a recorded attempt are counted under -.
On Amazon SQS all dead letters are received. Their attempts are known with --dead-letter-reasons,
or if this instance made them recently.`,
		Example: `  tendril dead reasons
  tendril dead redrive --reason 'HTTP 503 database is locked'`,
	}

	w := target.AddQueueArgument(c, cmd, target.AllDeadLetters)
	base.Prints(c, cmd, func(ctx context.Context, _ []string) (groups []queueReason, err error) {
		if dead, err = findDeadLetterQueues(ctx, c, w, &selector{all: true}); err != nil {
			return nil, err
		}
		return dead.reasons(ctx)
	}, base.ViewOf(func(groups []queueReason) error { return printReasons(c, dead, groups) },
		base.Named(func(g *queueReason) string { return g.Reason })))
	return cmd
}

func (d deadLetterQueues) reasons(ctx context.Context) ([]queueReason, error) {
	all := []queueReason{}
	for _, dlq := range d {
		groups, err := dlq.reasons(ctx)
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			all = append(all, queueReason{dlq.queue.Name, group})
		}
	}
	slices.SortStableFunc(all, func(a, b queueReason) int { return cmp.Compare(b.Count, a.Count) })
	return all, nil
}

func (dlq *deadLetterQueue) reasons(ctx context.Context) ([]api.ReasonGroup, error) {
	if dlq.queue.Remote == nil {
		return dlq.queue.Client.Reasons(ctx, dlq.queue.Name)
	}

	everything := &selector{all: true}
	messages, err := collect(ctx, dlq.contents(everything), everything.begin())
	if err != nil {
		return nil, err
	}
	return groupByReason(messages, time.Now()), nil
}

func groupByReason(messages []api.Message, now time.Time) []api.ReasonGroup {
	groups := map[string]*api.ReasonGroup{}
	for i := range messages {
		reason := failureGroup(&messages[i])
		if groups[reason] == nil {
			groups[reason] = &api.ReasonGroup{Reason: reason}
		}
		groups[reason].Count++
		if a := lastAttempt(&messages[i]); a != nil {
			addFailureTime(groups[reason], a.At, now)
		}
	}

	list := []api.ReasonGroup{}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, *groups[reason])
	}
	return list
}

func addFailureTime(group *api.ReasonGroup, at, now time.Time) {
	if group.First.IsZero() || at.Before(group.First) {
		group.First = at
	}
	if at.After(group.Last) {
		group.Last = at
	}
	if hours := int(now.Sub(at).Hours()); hours >= 0 && hours < len(group.Hours) {
		group.Hours[len(group.Hours)-1-hours]++
	}
}

func printReasons(c *base.CLI, dead deadLetterQueues, groups []queueReason) error {
	if len(groups) == 0 {
		c.PrintErrf("no dead letters in %s\n", dead.nameList())
		return nil
	}

	rows := [][]string{{"COUNT", "24 HOURS", "FIRST", "LAST", "QUEUE", "REASON"}}
	for _, g := range groups {
		day := 0
		for _, n := range g.Hours {
			day += n
		}
		rows = append(rows, []string{fmt.Sprint(g.Count), fmt.Sprint(day), agoText(g.First), agoText(g.Last), g.Queue,
			cmp.Or(g.Reason, "-")})
	}

	if len(dead) == 1 {
		rows = base.WithoutColumn(rows, "QUEUE")
	}

	return c.PrintTable(rows)
}

func agoText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return base.Since(t) + " ago"
}

func newDeadShow(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "show ID...", Short: "Show dead letters in full", Args: cobra.MinimumNArgs(1)}
	w := target.AddQueue(c, cmd, target.AllDeadLetters)
	f := base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		which := &selector{ids: args}
		dead, err := findDeadLetterQueues(ctx, c, w, which)
		if err != nil {
			return err
		}
		one := which.begin()
		messages, err := collectAll(ctx, dead.contents(which), func() *selection { return one })
		if err != nil {
			return err
		}
		err = f.Print(c, messages, messageIDs(messages), func() error { return printMessages(c, messages, true) })
		if err != nil {
			return err
		}
		return one.notFound(dead.names())
	})

	return cmd
}
