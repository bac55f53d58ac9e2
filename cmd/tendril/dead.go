package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tendril/console"
	"tendril/queue"
)

type deadLetterQueue struct {
	queue *targetQueue
	// source is the name of the queue that was named, where messages go back to that do not say where they came
	// from; "" when the dead-letter queue itself was named.
	source string
	// count is how many messages it holds, about so on Amazon SQS.
	count int
	// newest is the place of its newest message, 0 on Amazon SQS.
	newest int64
	// worker is the console of the environment that works on the queue; nil where none runs here.
	worker *console.Client
}

// findDead finds the dead-letter queue of the queue that is named, or that
// queue itself when others send their dead letters there.
func (c messageCommands) findDead(ctx context.Context, cmd *cobra.Command, w *queueFlags) (*deadLetterQueue, error) {
	p, err := c.find(ctx, cmd, w)
	if err != nil {
		return nil, err
	}
	if p.remote != nil {
		g, err := remoteDead(ctx, p)
		if err != nil {
			return nil, err
		}
		c.warnOfReceives(g.queue.name)
		if client, err := c.dial(cmd); err == nil && p.workedOnBy(&client.Instance) {
			g.worker = client
		}
		return g, nil
	}
	g, err := embeddedDead(ctx, p)
	if err == nil {
		g.worker = p.client
	}
	return g, err
}

// findDeadFor is findDead for a selector: it refuses one that the queue cannot answer.
func (c messageCommands) findDeadFor(ctx context.Context, cmd *cobra.Command, w *queueFlags, which *selector) (
	*deadLetterQueue, error) {
	g, err := c.findDead(ctx, cmd, w)
	if err == nil {
		err = which.knownBy(g.queue)
	}
	return g, err
}

func embeddedDead(ctx context.Context, p *targetQueue) (*deadLetterQueue, error) {
	q, err := p.client.Queue(ctx, p.name)
	if err != nil {
		return nil, err
	}
	if q.DeadLetterQueue == "" && len(q.DeadLetterSources) == 0 {
		return nil, noDeadLetterQueue(p.name)
	}
	source := ""
	if q.DeadLetterQueue != "" {
		source = p.name
		if q, err = p.client.Queue(ctx, q.DeadLetterQueue); err != nil {
			return nil, err
		}
	}
	return &deadLetterQueue{queue: &targetQueue{name: q.Name, client: p.client}, source: source,
		count: int(q.Ledger.Live), newest: q.Newest}, nil
}

func remoteDead(ctx context.Context, p *targetQueue) (*deadLetterQueue, error) {
	attributes, err := p.remote.Attributes(ctx)
	if err != nil {
		return nil, err
	}
	name, _ := queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	if name == "" {
		sources, err := p.remote.DeadLetterSources(ctx)
		if err != nil {
			return nil, err
		}
		if len(sources) == 0 {
			return nil, noDeadLetterQueue(p.name)
		}
		return &deadLetterQueue{queue: p, count: counted(attributes)}, nil
	}
	dead, err := p.sqs.Queue(ctx, siblingURL(p.remote.URL(), name))
	if err != nil {
		return nil, fmt.Errorf("finding the dead-letter queue of %s: %w", p.name, err)
	}
	if attributes, err = dead.Attributes(ctx); err != nil {
		return nil, err
	}
	return &deadLetterQueue{queue: &targetQueue{name: dead.Name(), sqs: p.sqs, remote: dead}, source: p.name,
		count: counted(attributes)}, nil
}

func noDeadLetterQueue(name string) error {
	return fail(exitNotFound, fmt.Errorf("queue %s has no dead-letter queue", name),
		"create a queue with one: tendril queues create NAME")
}

// contents are the messages of the dead-letter queue; their source also knows where messages go back to.
func (g *deadLetterQueue) contents(which *selector) messageSource {
	p := g.queue.source(which)
	if remote, ok := p.(*sqsSource); ok {
		remote.source, remote.sources = g.source, g.sources
	}
	return p
}

// sources returns the names of the queues on Amazon SQS that send their dead letters here.
func (g *deadLetterQueue) sources(ctx context.Context) (names []string, err error) {
	urls, err := g.queue.remote.DeadLetterSources(ctx)
	for _, url := range urls {
		names = append(names, url[strings.LastIndexByte(url, '/')+1:])
	}
	return names, err
}

func (c messageCommands) newDeadList() *cobra.Command {
	which := &selector{all: true}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List dead letters, the oldest first",
		Args:    cobra.NoArgs,
	}
	w := addQueue(cmd)
	cmd.Flags().IntVarP(&which.limit, "limit", "n", 100, "Maximum dead letters to list.")
	cmd.Flags().StringVar(&which.match, "match", "", "List only those whose body contains this text.")
	addReason(cmd, which)
	addDeadFilter(cmd, which)
	var g *deadLetterQueue
	prints(c.cli, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) (messages []console.Message, err error) {
		if err := cmp.Or(checkLimit(which.limit), which.check(nil)); err != nil {
			return nil, err
		}
		if g, err = c.findDeadFor(ctx, cmd, w, which); err != nil {
			return nil, err
		}
		return collect(ctx, g.contents(which), which)
	}, view[[]console.Message]{func(messages []console.Message) error {
		return c.printDead(cmd.Context(), g, messages)
	}, messageIDs})
	return cmd
}

func (c messageCommands) printDead(ctx context.Context, g *deadLetterQueue, messages []console.Message) error {
	if len(messages) == 0 {
		fmt.Fprintf(c.err, "no dead letters in %s\n", g.queue.name)
		return nil
	}
	reasons := g.reasons(ctx)
	rows := [][]string{{"ID", "AGE", "DEAD FOR", "RECEIVES", "FROM", "LAST FAILURE", "BODY"}}
	for _, m := range messages {
		reason := cmp.Or(lastFailure(&m), reasons[m.ID])
		if _, f := queue.CutReason(m.Attributes); f != nil && m.DeadLetterSource == "" { // what it was before
			m.SentAt, m.DeadAt, m.DeadLetterSource = f.SentAt, f.FailedAt, f.Source
			m.ReceiveCount += f.Receives
			reason = f.Reason
		}
		rows = append(rows, []string{m.ID, since(m.SentAt), since(m.DeadAt), fmt.Sprint(m.ReceiveCount),
			cmp.Or(afterColon(m.DeadLetterSource), "-"), cmp.Or(preview(reason, 40), "-"), preview(m.Body, previewWidth)})
	}
	if err := c.printTable(rows); err != nil {
		return err
	}
	if g.count > len(messages) {
		fmt.Fprintf(c.err, "%d of %s; --limit shows more\n", len(messages), plural(g.count, "dead letter"))
	}
	return nil
}

// reasons are why messages failed last, as far as the running environment remembers.
func (g *deadLetterQueue) reasons(ctx context.Context) map[string]string {
	reasons := map[string]string{}
	if g.worker == nil {
		return reasons
	}
	recent, err := g.worker.Deliveries(ctx, console.DefaultDeliveries)
	if err != nil {
		return reasons // it delivers nothing, or not any more: the list is as good without
	}
	for _, d := range recent {
		if _, newer := reasons[d.MessageID]; !newer && !d.Done() {
			reasons[d.MessageID] = d.Reason
		}
	}
	return reasons
}

// lastFailure is why a message failed last; "" where that was not recorded.
func lastFailure(m *console.Message) string {
	if len(m.Attempts) == 0 {
		return ""
	}
	last := m.Attempts[len(m.Attempts)-1]
	line, _, _ := strings.Cut(strings.TrimSpace(last.Answer), "\n")
	if line == "" {
		return last.Reason
	}
	return last.Reason + ": " + line
}

func (c messageCommands) newDeadReasons() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reasons",
		Short: "Group dead letters by why they failed last",
		Long: `Groups the dead letters of an embedded queue by the status and the first line of the last
answer, the largest group first. # stands for a number, * for an id. Messages of which no
attempt was recorded are counted under -.`,
		Example: `  tendril dead reasons
  tendril dead redrive --reason 'HTTP 503 database is locked'`,
		Args: cobra.NoArgs,
	}
	w := addQueue(cmd)
	var name string
	prints(c.cli, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) ([]console.ReasonGroup, error) {
		p, err := c.find(ctx, cmd, w)
		if err != nil {
			return nil, err
		}
		if p.remote != nil {
			return nil, fail(exitUsage, errors.New("reasons are kept on the embedded queue only"),
				"Amazon SQS does not know why a message failed; look at the log")
		}
		g, err := embeddedDead(ctx, p)
		if err != nil {
			return nil, err
		}
		name = g.queue.name
		return p.client.Reasons(ctx, name)
	}, view[[]console.ReasonGroup]{func(groups []console.ReasonGroup) error { return c.printReasons(name, groups) },
		named(func(g *console.ReasonGroup) string { return g.Reason })})
	return cmd
}

func (c messageCommands) printReasons(name string, groups []console.ReasonGroup) error {
	if len(groups) == 0 {
		fmt.Fprintf(c.err, "no dead letters in %s\n", name)
		return nil
	}
	rows := [][]string{{"COUNT", "LAST DAY", "OLDEST", "NEWEST", "REASON"}}
	for _, g := range groups {
		day := 0
		for _, n := range g.Hours {
			day += n
		}
		rows = append(rows, []string{fmt.Sprint(g.Count), fmt.Sprint(day), since(g.First), since(g.Last),
			cmp.Or(g.Reason, "-")})
	}
	return c.printTable(rows)
}

func (c messageCommands) newDeadShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID...", Short: "Show dead letters whole", Args: cobra.MinimumNArgs(1)}
	w := addQueue(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		g, err := c.findDead(ctx, cmd, w)
		if err != nil {
			return err
		}
		which := &selector{ids: args}
		messages, err := collect(ctx, g.contents(which), which)
		if err != nil {
			return err
		}
		if err := printValue(c.cli, *f, messages, view[[]console.Message]{func(messages []console.Message) error {
			return c.printMessages(messages, true)
		}, messageIDs}); err != nil {
			return err
		}
		return absent(args, messages, g.queue.name)
	})
	return cmd
}

func absent(ids []string, messages []console.Message, queueName string) error {
	p := (&selector{ids: ids}).begin()
	for _, m := range messages {
		delete(p.missing, m.ID)
	}
	return p.lost(queueName)
}
