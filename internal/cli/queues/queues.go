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
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
)

// NewQueues returns the command 'tendril queues'.
func NewQueues(c *base.CLI) *cobra.Command {
	list := base.ListCommand("List the queues with their messages")
	list.Example = "  tendril queues list\n  tendril queues list --backend sqs --prefix orders"
	family := base.Family("queues", "List, create, show, purge, delete, pause and resume queues",
		"Lists the queues with their messages, like 'tendril queues list'.", listsQueues(c, list), newQueuesShow(c),
		newQueuesCreate(c), newQueuesPurge(c), newQueuesDelete(c), newQueuesPause(c), newQueuesResume(c))
	family.Example = "  tendril queues --watch\n  tendril queues show orders"
	return listsQueues(c, family)
}

func listsQueues(c *base.CLI, cmd *cobra.Command) *cobra.Command {
	var prefix string
	w := target.AddWhere(c, cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "", "List only queues with this name prefix.")
	base.Prints(c, cmd, func(ctx context.Context, _ []string) ([]api.Queue, error) {
		return listQueues(ctx, w, prefix)
	}, List.View(c))
	base.AddWatch(c, cmd)
	return cmd
}

func listQueues(ctx context.Context, w *target.Flags, prefix string) ([]api.Queue, error) {
	client, sqs, err := w.OpenServer(ctx)
	if err != nil {
		return nil, err
	}
	if client != nil {
		st, err := client.Status(ctx)
		return slices.DeleteFunc(st.Queues, func(q api.Queue) bool { return !strings.HasPrefix(q.Name, prefix) }), err
	}

	found, err := sqs.List(ctx, prefix)
	queues := make([]api.Queue, len(found))
	for i, remote := range found {
		if queues[i], err = target.OnSQS(sqs, remote).Describe(ctx); err != nil {
			return nil, err
		}
		queues[i].Attributes = nil
	}
	return queues, err
}

// List describes how queues are listed.
var List = base.List[api.Queue]{
	Heading: []string{"QUEUE", "WAITING", "IN FLIGHT", "DELAYED", "OLDEST", "DRAINS IN", "LONGEST", "DEAD LETTERS TO",
		"NOTE"},
	Name: func(q *api.Queue) string { return q.Name },
	Row: func(q *api.Queue) []string {
		return []string{q.Name, fmt.Sprint(q.Ledger.Visible), fmt.Sprint(q.Ledger.InFlight), fmt.Sprint(q.Ledger.Delayed),
			base.KnownSeconds(q.OldestSeconds), base.KnownSeconds(q.DrainSeconds), base.KnownSeconds(q.LongestDeliverySeconds),
			cmp.Or(q.DeadLetterQueue, "-"), queueNote(q)}
	},
}

func queueNote(q *api.Queue) string {
	var notes base.Words
	notes.Add(base.QueueText(&q.Progress))
	notes.Add(base.Plain(q.Problem()))
	return notes.Join("; ")
}

func newQueuesShow(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "show [QUEUE]", Short: "Show a queue: attributes, counts, ledger"}
	w := target.AddQueueArgument(c, cmd, target.OnlyQueue)
	base.Prints(c, cmd, func(ctx context.Context, _ []string) (api.Queue, error) {
		p, err := w.Find(ctx)
		if err != nil {
			return api.Queue{}, err
		}
		return p.Describe(ctx)
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
	t.Add("messages", fmt.Sprintf("%d waiting, %d in flight, %d delayed", q.Ledger.Visible, q.Ledger.InFlight,
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

	return c.PrintFacts(t)
}

func ledgerText(q api.Queue) string {
	l := q.Ledger
	return fmt.Sprintf("sent %d + moved in %d = done %d + dead-lettered %d + moved out %d + expired %d + purged %d + "+
		"live %d",
		l.Sent, l.MovedIn, l.Done, l.DeadLettered, l.MovedOut, l.Expired, l.Purged, l.Live)
}

func newQueuesPurge(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "purge QUEUE", Short: "Permanently delete all messages in a queue"}
	w := target.AddQueueArgument(c, cmd, "")
	yes := base.AddYes(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, _ []string) (*base.Plan, error) {
		p, err := w.Find(ctx)
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{"remove all messages of queue " + p.Name + ": " + text}, err
		}, func() error { return purgeQueue(ctx, c, p, *yes) }), nil
	})
}

func purgeQueue(ctx context.Context, c *base.CLI, p *target.Queue, yes bool) error {
	if err := c.Confirm("remove all messages of "+p.Name, p.Name, "--yes", yes); err != nil {
		return err
	}
	if p.Remote == nil {
		n, err := p.Client.Purge(ctx, p.Name, p.Name, 0)
		return c.Summary("purged", n, err)
	}

	if err := p.Remote.Purge(ctx); err != nil {
		return err
	}
	c.PrintErrf("%s is being purged, which takes up to a minute on Amazon SQS\n", p.Name)
	return nil
}

func newQueuesPause(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Stop receiving from a queue, or from all; messages in flight will finish",
		Long: `Stops receiving from a queue, or from all queues. Messages in flight will finish. The pause survives restarts.

With a fleet key (--fleet-key-file of 'tendril up') it applies to all instances of the environment, also to those that
start later, and the command waits until they have applied it.`,
	}

	request := &api.Reason{}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "Reason, shown in the status.")
	return changesReceiving(c, cmd, request, "pause", (*api.Client).Pause, func(environment, queues, name string) string {
		resume := strings.TrimSpace("tendril queues resume " + name)
		return fmt.Sprintf("environment %q paused %s; resume with '%s'", environment, queues, resume)
	})
}

func newQueuesResume(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [QUEUE]",
		Short: "Resume receiving from a queue, or from all",
		Long: `Undoes 'tendril queues pause'. With a fleet key it applies to all instances; those paused with --this stay
paused, except the one that runs this command.`,
	}
	return changesReceiving(c, cmd, &api.Reason{}, "resume", (*api.Client).Resume, func(environment, queues, _ string) string {
		return fmt.Sprintf("environment %q resumed %s", environment, queues)
	})
}

func changesReceiving(c *base.CLI, cmd *cobra.Command, request *api.Reason, verb string,
	do func(client *api.Client, ctx context.Context, name string, request api.Reason) (api.Paused, error),
	doneText func(environment, queues, name string) string) *cobra.Command {
	var all bool
	cmd.Flags().BoolVar(&request.This, "this", false, "Change one instance only, even with a fleet key.")
	cmd.Flags().BoolVar(&all, "all", false, "All queues (the default).")
	w := target.AddReceivedQueue(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if all && w.Queue != "" {
			return base.Usagef("--all and queue %s exclude each other", w.Queue).Hint("use one of them")
		}
		return nil
	}

	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (*base.Plan, error) {
		i := &client.Instance
		name, err := receivedQueue(i, w)
		if err != nil {
			return nil, err
		}
		queues := target.QueueNames(i, name)
		return base.PlanOf(func() ([]string, error) {
			if name != "" && i.Queue(name).Name != name {
				return nil, base.NotFoundf("this environment does not receive from %s", name).
					Hint("it receives from " + target.QueueNames(i, ""))
			}
			return []string{verb + " receiving from " + queues}, nil
		}, func() error {
			done, err := do(client, ctx, name, *request)
			if err != nil {
				return err
			}
			c.PrintErrln(doneText(i.Environment, queues, name))
			if done.Revision == 0 {
				return nil
			}
			applied := func(_ *api.Instances, one *api.KnownInstance) bool { return one.Revision >= done.Revision }
			neverFails := func(*api.Instances) error { return nil }
			return base.AwaitRevision(ctx, c, client, time.Minute, applied, neverFails)
		}), nil
	})
}

func receivedQueue(i *api.Instance, w *target.Flags) (string, error) {
	switch {
	case len(i.Queues) == 0:
		return "", base.Conflictf("this process has no worker and only serves queues").
			Hint("use the environment that receives from the queue, on its 'tendril up' machine")
	case len(i.Queues) == 1 && w.Queue == "":
		return i.Queues[0].Name, nil
	}
	ref, err := target.ParseQueue(w.Queue)
	return ref.Name, err
}
