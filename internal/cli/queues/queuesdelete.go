package queues

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

func newQueuesDelete(c *base.CLI) *cobra.Command {
	var untagged bool
	cmd := &cobra.Command{
		Use:   "delete QUEUE",
		Short: "Permanently delete a queue and all its messages",
		Long: `Deletes a queue with all its messages after you type their number. Its dead-letter queue stays.

A queue of the running environment is not deleted, nor a dead-letter queue in use. For a queue on
Amazon SQS without an environment's tag, such as one from 'tendril queues create', you confirm with
the queue's name instead, and --yes alone is not enough.`,
		Example: `  tendril queues delete scratch
  tendril queues delete scratch --yes
  tendril queues delete https://sqs.eu-west-1.amazonaws.com/123456789012/scratch --yes --untagged`,
	}

	w := target.AddQueueArgument(c, cmd, "")
	yes := base.AddYes(cmd)
	cmd.Flags().BoolVar(&untagged, "untagged", false,
		"With --yes: also delete a queue on Amazon SQS without an environment's tag.")
	return base.Changes(c, cmd, func(ctx context.Context, _ []string) (*base.Plan, error) {
		p, err := w.Find(ctx)
		if err != nil {
			return nil, err
		}
		if err := refuseNeeded(ctx, w, p); err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{"delete queue " + p.Name + " with " + text}, err
		}, func() error { return deleteQueue(ctx, c, p, *yes, untagged) }), nil
	})
}

func refuseNeeded(ctx context.Context, w *target.Flags, p *target.Queue) error {
	if client, err := w.Dial(); err == nil && p.WorkedOnBy(&client.Instance) {
		return base.Conflictf("environment %q uses queue %s", client.Instance.Environment, p.Name).
			Hint("stop it and restart it with other --queues before you delete the queue")
	}
	if p.Remote != nil {
		return nil // Amazon SQS permits deleting dead-letter queues in use
	}
	q, err := p.Client.Queue(ctx, p.Name)
	if err == nil && len(q.DeadLetterSources) > 0 {
		err = base.Conflictf("%s is the dead-letter queue of %s", p.Name,
			strings.Join(q.DeadLetterSources, ", ")).Hint("delete those first, or change their redrive policy")
	}
	return err
}

func deleteQueue(ctx context.Context, c *base.CLI, p *target.Queue, yes, untagged bool) error {
	q, err := p.Describe(ctx)
	if err != nil {
		return err
	}
	untaggedRemote, err := isUntaggedRemote(ctx, p)
	if err != nil {
		return err
	}

	messages := int(q.Ledger.Live)
	text := base.Plural(messages, "message")
	if !untaggedRemote || yes && untagged {
		err = c.Confirm("delete queue "+p.Name+" with "+text, strconv.Itoa(messages), "--yes", yes)
	} else {
		err = c.Confirm("delete queue "+p.Name+" without an environment's tag, with about "+text, p.Name,
			"--yes --untagged", false)
	}
	if err != nil {
		return err
	}

	if p.Remote != nil {
		err = p.Remote.DeleteQueue(ctx)
	} else {
		messages, err = p.Client.DeleteQueue(ctx, p.Name, p.Name)
	}
	if err == nil {
		c.PrintErrf("queue %s deleted with %s\n", p.Name, base.Plural(messages, "message"))
	}
	return err
}

// isUntaggedRemote returns true for a queue on Amazon SQS without an environment's tag, or with unreadable tags.
func isUntaggedRemote(ctx context.Context, p *target.Queue) (bool, error) {
	if p.Remote == nil {
		return false, nil
	}
	tags, err := p.Remote.Tags(ctx)
	if errors.Is(err, queue.ErrDenied) {
		return true, nil
	}
	return aws.OwnerOf(tags) == "", err
}
