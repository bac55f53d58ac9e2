package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/queue"
)

func newQueuesDelete(c *cli) *cobra.Command {
	var yes, untagged bool
	cmd := &cobra.Command{
		Use:   "delete QUEUE",
		Short: "Delete a queue with all its messages for good",
		Long: `Deletes a queue with all its messages, once you have typed how many it holds. Its dead-letter
queue stays.

A queue that the running environment works on is refused, and one that takes the dead
letters of another queue. On Amazon SQS, a queue that tendril did not create has no tag of
an environment: it asks for the queue's name instead, and --yes alone is not enough.`,
		Example: `  tendril queues delete scratch
  tendril queues delete scratch --yes
  tendril queues delete https://sqs.eu-west-1.amazonaws.com/123456789012/scratch --yes --untagged`,
		Args: cobra.ExactArgs(1),
	}
	w := addWhere(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for confirmation.")
	cmd.Flags().BoolVar(&untagged, "untagged", false,
		"With --yes: also delete a queue on Amazon SQS without the tag of an environment.")
	return changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (plan, error) {
		w.queue = args[0]
		p, err := findQueue(c, ctx, cmd, w)
		if err == nil {
			err = refuseNeeded(c, ctx, cmd, p)
		}
		return plan{func(ctx context.Context) ([]string, error) {
			text, err := p.countText(ctx)
			return []string{"delete queue " + p.name + " with " + text}, err
		}, func(ctx context.Context) error {
			if p.remote != nil {
				return deleteRemote(c, ctx, p, yes, untagged)
			}
			q, err := p.client.Queue(ctx, p.name)
			if err != nil {
				return err
			}
			if err := confirmDeletion(c, p.name, int(q.Ledger.Live), yes); err != nil {
				return err
			}
			n, err := p.client.DeleteQueue(ctx, p.name, p.name)
			return queueDeleted(c, p.name, n, err)
		}}, err
	})
}

// refuseNeeded refuses a queue that the running environment works on, or that takes the dead letters of another.
func refuseNeeded(c *cli, ctx context.Context, cmd *cobra.Command, p *targetQueue) error {
	if client, err := c.dial(cmd); err == nil && p.workedOnBy(&client.Instance) {
		return fail(exitConflict, fmt.Errorf("environment %q works on queue %s", client.Instance.Environment, p.name),
			"stop it, and start it with other --queues before the queue is deleted")
	}
	if p.remote != nil {
		return nil // Amazon SQS allows it, also where its messages would go nowhere
	}
	q, err := p.client.Queue(ctx, p.name)
	if err == nil && len(q.DeadLetterSources) > 0 {
		err = fail(exitConflict, fmt.Errorf("%s takes the dead letters of %s", p.name,
			strings.Join(q.DeadLetterSources, ", ")), "delete those first, or give them another redrive policy")
	}
	return err
}

// confirmDeletion asks for the number of messages that go with a queue.
func confirmDeletion(c *cli, name string, messages int, yes bool) error {
	return c.confirm(fmt.Sprintf("delete queue %s with %s", name, plural(messages, "message")), strconv.Itoa(messages),
		yes)
}

func queueDeleted(c *cli, name string, messages int, err error) error {
	if err == nil {
		fmt.Fprintf(c.err, "queue %s was deleted with %s\n", name, plural(messages, "message"))
	}
	return err
}

// deleteRemote deletes a queue on Amazon SQS. The tag of an environment is the proof that tendril created it.
func deleteRemote(c *cli, ctx context.Context, p *targetQueue, yes, untagged bool) error {
	attributes, err := p.remote.Attributes(ctx)
	if err != nil {
		return err
	}
	tags, err := p.remote.Tags(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return err
	}
	messages := counted(attributes)
	if aws.OwnerOf(tags) != "" || yes && untagged {
		err = confirmDeletion(c, p.name, messages, yes)
	} else {
		err = c.confirm(fmt.Sprintf("delete queue %s, which tendril did not create, with about %s", p.name,
			plural(messages, "message")), p.name, false)
		var refused *exitError
		if errors.As(err, &refused) && refused.code == exitUsage {
			refused.hints = []string{"add --yes --untagged to confirm"}
		}
	}
	if err == nil {
		err = p.remote.DeleteQueue(ctx)
	}
	return queueDeleted(c, p.name, messages, err)
}
