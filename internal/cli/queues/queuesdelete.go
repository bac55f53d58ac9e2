package queues

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

func newQueuesDelete(c *base.CLI) *cobra.Command {
	var yes, untagged bool
	cmd := &cobra.Command{
		Use:   "delete QUEUE",
		Short: "Delete a queue with all its messages permanently",
		Long: `Deletes a queue with all its messages after you type their number. Its dead-letter queue stays.

A queue of the running environment is not deleted, nor a dead-letter queue in use. A queue on Amazon
SQS that tendril did not create has no environment tag: you confirm with the queue's name instead,
and --yes alone is not enough.`,
		Example: `  tendril queues delete scratch
  tendril queues delete scratch --yes
  tendril queues delete https://sqs.eu-west-1.amazonaws.com/123456789012/scratch --yes --untagged`,
	}

	w := target.AddQueueArgument(cmd, "")
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for confirmation.")
	cmd.Flags().BoolVar(&untagged, "untagged", false,
		"With --yes: also delete a queue on Amazon SQS without an environment tag.")
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) (*base.Plan, error) {
		p, err := target.Find(ctx, c, cmd, w)
		if err == nil {
			err = refuseNeeded(ctx, c, cmd, p)
		}

		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{"delete queue " + p.Name + " with " + text}, err
		}, func() error {
			if p.Remote != nil {
				return deleteRemote(ctx, c, p, yes, untagged)
			}
			q, err := p.Client.Queue(ctx, p.Name)
			if err != nil {
				return err
			}
			if err := confirmDeletion(c, p.Name, int(q.Ledger.Live), yes); err != nil {
				return err
			}
			n, err := p.Client.DeleteQueue(ctx, p.Name, p.Name)
			return queueDeleted(c, p.Name, n, err)
		}), err
	})
}

func refuseNeeded(ctx context.Context, c *base.CLI, cmd *cobra.Command, p *target.Queue) error {
	if client, err := c.Dial(cmd); err == nil && p.WorkedOnBy(&client.Instance) {
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

func confirmDeletion(c *base.CLI, name string, messages int, yes bool) error {
	return c.Confirm(fmt.Sprintf("delete queue %s with %s", name, base.Plural(messages, "message")), strconv.Itoa(messages),
		yes)
}

func queueDeleted(c *base.CLI, name string, messages int, err error) error {
	if err == nil {
		c.PrintErrf("queue %s deleted with %s\n", name, base.Plural(messages, "message"))
	}
	return err
}

// deleteRemote requires an additional confirmation unless a tag shows that tendril created the queue.
func deleteRemote(ctx context.Context, c *base.CLI, p *target.Queue, yes, untagged bool) error {
	attributes, err := p.Remote.Attributes(ctx)
	if err != nil {
		return err
	}

	tags, err := p.Remote.Tags(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return err
	}

	messages := target.Counted(attributes)
	if aws.OwnerOf(tags) != "" || yes && untagged {
		err = confirmDeletion(c, p.Name, messages, yes)
	} else {
		err = c.Confirm(fmt.Sprintf("delete queue %s, which tendril did not create, with about %s", p.Name,
			base.Plural(messages, "message")), p.Name, false)
		var refused *base.ExitError
		if errors.As(err, &refused) && refused.Code == base.ExitUsage {
			refused.Hints = []string{"add --yes --untagged to confirm"}
		}
	}

	if err == nil {
		err = p.Remote.DeleteQueue(ctx)
	}

	return queueDeleted(c, p.Name, messages, err)
}
