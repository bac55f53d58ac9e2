package queues

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
	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

// NewQueues returns the command 'tendril queues'.
func NewQueues(c *base.CLI) *cobra.Command {
	cmd := base.Family("queues", "List, create, show, purge, delete, pause and resume queues",
		"Lists the queues with their messages, like 'tendril queues list'.", newQueuesList(c), newQueuesShow(c),
		newQueuesCreate(c), newQueuesPurge(c), newQueuesDelete(c), newQueuesPause(c), newQueuesResume(c))
	cmd.Example = "  tendril queues --watch\n  tendril queues show orders"
	listsQueues(c, cmd)
	return cmd
}

func newQueuesList(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the queues with their messages",
		Example: "  tendril queues list\n  tendril queues list --backend sqs --prefix orders",
		Args:    cobra.NoArgs,
	}
	listsQueues(c, cmd)
	return cmd
}

func listsQueues(c *base.CLI, cmd *cobra.Command) {
	var prefix string
	w := target.AddWhere(cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "", "List only queues with this name prefix.")
	base.Prints(c, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) ([]api.Queue, error) {
		return listQueues(ctx, c, cmd, w, prefix)
	}, List.View(c))
	base.AddWatch(c, cmd)
}

func listQueues(ctx context.Context, c *base.CLI, cmd *cobra.Command, w *target.Flags,
	prefix string) ([]api.Queue, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}

	queues := []api.Queue{}
	if w.Backend == target.BackendSQS {
		return listOnSQS(ctx, queues, prefix)
	}

	client, err := c.Dial(cmd)
	if err != nil {
		return nil, err
	}

	if !client.Instance.Embedded() {
		return nil, base.Usagef("environment %q has no embedded queues",
			client.Instance.Environment).Hint("add --backend sqs to list the queues of its account or queue server")
	}

	all, err := client.Queues(ctx)
	for _, q := range all {
		if strings.HasPrefix(q.Name, prefix) {
			queues = append(queues, q)
		}
	}

	return queues, err
}

func listOnSQS(ctx context.Context, queues []api.Queue, prefix string) ([]api.Queue, error) {
	sqs, err := aws.OpenSQS(ctx, nil)
	if err != nil {
		return nil, err
	}
	found, err := sqs.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, q := range found {
		attributes, err := q.Attributes(ctx)
		if err != nil {
			return nil, err
		}
		queues = append(queues, remoteQueue(q, attributes))
	}
	return queues, nil
}

func remoteQueue(q *aws.Queue, attributes map[string]string) api.Queue {
	out := api.Queue{Name: q.Name(), URL: q.URL(), ARN: attributes["QueueArn"], FIFO: q.FIFO()}
	out.Ledger.Visible = int64(target.Number(attributes, target.VisibleCount))
	out.Ledger.Delayed = int64(target.Number(attributes, target.DelayedCount))
	out.Ledger.InFlight = int64(target.Number(attributes, target.InFlightCount))
	out.Ledger.Live = int64(target.Counted(attributes))
	out.DeadLetterQueue, out.MaxReceives = queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	return out
}

// List describes how queues are listed.
var List = base.List[api.Queue]{
	Heading: []string{"QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "OLDEST", "DRAINS IN", "LONGEST", "DEAD LETTERS TO",
		"NOTE"},
	Name: func(q *api.Queue) string { return q.Name },
	Row: func(q *api.Queue) []string {
		return []string{q.Name, fmt.Sprint(q.Ledger.Visible), fmt.Sprint(q.Ledger.InFlight), fmt.Sprint(q.Ledger.Delayed),
			base.KnownSeconds(q.OldestSeconds), base.KnownSeconds(q.DrainSeconds), base.KnownSeconds(q.LongestDeliverySeconds),
			cmp.Or(q.DeadLetterQueue, "-"), queueNote(q)}
	},
}

func queueNote(q *api.Queue) string {
	note := base.QueueText(&q.Progress)
	if problem := q.Problem(); problem != "" {
		note = strings.TrimPrefix(note+"; "+base.Plain(problem), "; ")
	}
	return note
}

func newQueuesShow(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [QUEUE]",
		Short: "Show a queue: attributes, counts, ledger",
	}

	w := target.AddQueueArgument(cmd, target.OnlyQueue)
	base.Prints(c, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) (q api.Queue, err error) {
		p, err := target.Find(ctx, c, cmd, w)
		switch {
		case err != nil:
			return q, err
		case p.Remote == nil:
			return p.Client.Queue(ctx, p.Name)
		}
		attributes, err := p.Remote.Attributes(ctx)
		q = remoteQueue(p.Remote, attributes)
		q.Attributes = attributes
		return q, err
	}, base.ViewOf(func(q api.Queue) error { return printQueue(c, q) },
		func(q api.Queue) []string { return []string{q.Name} }))
	return cmd
}

func printQueue(c *base.CLI, q api.Queue) error {
	t := base.Table{{"queue", q.Name}}
	t.Add("url", q.URL)
	t.Add("arn", q.ARN)
	t.Add("state", q.State)
	t.Add("why", base.QueueText(&q.Progress))
	t.Add("messages", fmt.Sprintf("%d visible, %d in flight, %d delayed", q.Ledger.Visible, q.Ledger.InFlight,
		q.Ledger.Delayed))
	if q.DrainSeconds > 0 {
		t.Add("drains in", base.Seconds(q.DrainSeconds))
	}
	if q.LongestMessageID != "" {
		t.Add("longest delivery", base.Seconds(q.LongestDeliverySeconds)+", of message "+q.LongestMessageID)
	}
	if q.URL == "" {
		t.Add("ledger", ledgerText(q))
	}
	if q.DeadLetterQueue != "" {
		t.Add("dead letters to", fmt.Sprintf("%s after %d receives", q.DeadLetterQueue, q.MaxReceives))
	}

	t.Add("problem", q.Problem())
	t.Add("dead letters from", strings.Join(q.DeadLetterSources, ", "))
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		t.Add(name, q.Attributes[name])
	}

	return c.PrintTable(t)
}

func ledgerText(q api.Queue) string {
	l := q.Ledger
	return fmt.Sprintf("sent %d + moved in %d = done %d + dead-lettered %d + moved out %d + expired %d + purged %d + "+
		"live %d",
		l.Sent, l.MovedIn, l.Done, l.DeadLettered, l.MovedOut, l.Expired, l.Purged, l.Live)
}

func newQueuesPurge(c *base.CLI) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove all messages of a queue permanently",
	}
	w := target.AddQueueArgument(cmd, "")
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for confirmation.")
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) (*base.Plan, error) {
		p, err := target.Find(ctx, c, cmd, w)
		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{"remove all messages of queue " + p.Name + ": " + text}, err
		}, func() error { return purgeQueue(ctx, c, p, yes) }), err
	})
}

func purgeQueue(ctx context.Context, c *base.CLI, p *target.Queue, yes bool) error {
	if err := c.Confirm("remove all messages of "+p.Name, p.Name, yes); err != nil {
		return err
	}
	if p.Remote != nil {
		if err := p.Remote.Purge(ctx); err != nil {
			return err
		}
		c.PrintErrf("%s is being purged; Amazon SQS takes up to a minute\n", p.Name)
		return nil
	}
	n, err := p.Client.Purge(ctx, p.Name, p.Name, 0)
	return c.Summary("purged", n, err)
}

func newQueuesPause(c *base.CLI) *cobra.Command {
	var why api.Reason
	cmd := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Stop receiving from a queue, or from all; messages in flight will finish",
		Long: `Stops receiving from a queue, or from all queues. Messages in flight will finish. The pause survives restarts.

With a fleet key (--fleet-key-file of 'tendril up') it applies to all instances of the environment, also to those that
start later, and the command waits until they have applied it.`,
	}
	cmd.Flags().StringVar(&why.Reason, "reason", "", "Reason, shown in the status.")
	return actsOnReceiving(c, cmd, &why, "pause receiving from", func(ctx context.Context, client *api.Client,
		name string) (string, api.Paused, error) {
		answer, err := client.Pause(ctx, name, why)
		return "environment %q paused %s; resume with '" + strings.TrimSpace("tendril queues resume "+name) + "'\n", answer, err
	})
}

func newQueuesResume(c *base.CLI) *cobra.Command {
	var where api.Reason
	cmd := &cobra.Command{
		Use:   "resume [QUEUE]",
		Short: "Resume receiving from a queue, or from all",
		Long: `Undoes 'tendril queues pause'. With a fleet key it applies to all instances; those paused with --this stay
paused, except the one that answers.`,
	}
	return actsOnReceiving(c, cmd, &where, "resume receiving from", func(ctx context.Context, client *api.Client,
		name string) (string, api.Paused, error) {
		answer, err := client.Resume(ctx, name, where)
		return "environment %q is receiving from %s\n", answer, err
	})
}

// actsOnReceiving adds a change to cmd that affects the named queue, or all queues without a name. act returns a format
// string for the environment's name and the queues.
func actsOnReceiving(c *base.CLI, cmd *cobra.Command, where *api.Reason, would string, act func(context.Context,
	*api.Client, string) (string, api.Paused, error)) *cobra.Command {
	var all bool
	cmd.Flags().BoolVar(&where.This, "this", false, "Change one instance only, even with a fleet key.")
	cmd.Flags().BoolVar(&all, "all", false, "All queues (the default).")
	w := target.AddReceivedQueue(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) (*base.Plan, error) {
		if all && w.Queue != "" {
			return nil, base.Usagef("--all and queue %s exclude each other", w.Queue).Hint("use one of them")
		}
		client, name, err := workedQueue(c, cmd, w)
		return base.PlanOf(func() ([]string, error) {
			i := &client.Instance
			if name != "" && i.Queue(name).Name != name {
				return nil, base.NotFoundf("this environment does not receive from %s", name).
					Hint("it receives from " + target.QueueNames(i, ""))
			}
			return []string{would + " " + target.QueueNames(i, name)}, nil
		}, func() error {
			format, answer, err := act(ctx, client, name)
			if err != nil {
				return err
			}
			c.PrintErrf(format, client.Instance.Environment, target.QueueNames(&client.Instance, name))
			if answer.Revision == 0 {
				return nil
			}
			return base.AwaitRevision(ctx, c, client, answer.Revision, time.Minute, func(all *api.Instances, one *api.KnownInstance) (int64, error) {
				return one.Revision, nil
			})
		}), err
	})
}

// workedQueue returns the given queue, or the environment's only queue; "" if the environment has several.
func workedQueue(c *base.CLI, cmd *cobra.Command, w *target.Flags) (*api.Client, string, error) {
	client, err := c.Dial(cmd)
	if err != nil {
		return nil, "", err
	}

	name := ""
	if len(client.Instance.Queues) == 1 {
		name = client.Instance.Queues[0].Name
	}

	if w.Queue != "" {
		ref, err := target.ParseQueue(w.Queue)
		if err != nil {
			return nil, "", err
		}
		name = ref.Name
	}

	if len(client.Instance.Queues) == 0 {
		return nil, "", base.Conflictf("this process has no worker and only serves queues").
			Hint("pause the environment that receives from the queue, on its 'tendril up' machine")
	}

	return client, name, nil
}
