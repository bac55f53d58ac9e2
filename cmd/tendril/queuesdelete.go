package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"tendril/aws"
	"tendril/queue"
)

func (c queueCommands) newQueuesDelete() *cobra.Command {
	var yes, foreign bool
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
	cmd.Flags().BoolVar(&foreign, "untagged", false,
		"With --yes: also delete a queue on Amazon SQS without the tag of an environment.")
	return changes(c.cli, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (plan, error) {
		w.queue = args[0]
		p, err := c.find(ctx, cmd, w)
		if err != nil {
			return plan{}, err
		}
		if client, err := c.dial(cmd); err == nil && p.workedOnBy(&client.Instance) {
			return plan{}, fail(exitConflict, fmt.Errorf("environment %q works on queue %s", client.Instance.Environment,
				p.name), "stop it, and start it with other --queues before the queue is deleted")
		}
		if p.remote != nil {
			attributes, err := p.remote.Attributes(ctx)
			if err != nil {
				return plan{}, err
			}
			return plan{step("delete queue %s with about %s", p.name, plural(counted(attributes), "message")),
				func(ctx context.Context) error {
					return c.deleteRemote(ctx, p, counted(attributes), yes, foreign)
				}}, nil
		}
		q, err := p.client.Queue(ctx, p.name)
		if err != nil {
			return plan{}, err
		}
		messages := int(q.Ledger.Live)
		return plan{step("delete queue %s with %s", p.name, plural(messages, "message")),
			func(ctx context.Context) error {
				if err := c.confirmDeletion(p.name, messages, yes); err != nil {
					return err
				}
				n, err := p.client.DeleteQueue(ctx, p.name, p.name)
				return c.queueDeleted(p.name, n, err)
			}}, nil
	})
}

// confirmDeletion asks for the number of messages that go with a queue.
func (c queueCommands) confirmDeletion(name string, messages int, yes bool) error {
	return c.confirm(fmt.Sprintf("delete queue %s with %s", name, plural(messages, "message")), strconv.Itoa(messages),
		yes)
}

func (c queueCommands) queueDeleted(name string, messages int, err error) error {
	if err == nil {
		fmt.Fprintf(c.err, "queue %s was deleted with %s\n", name, plural(messages, "message"))
	}
	return err
}

// deleteRemote deletes a queue on Amazon SQS. The tag of an environment is the proof that tendril created it.
func (c queueCommands) deleteRemote(ctx context.Context, p *targetQueue, messages int, yes, foreign bool) error {
	tags, err := p.remote.Tags(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return err
	}
	if aws.OwnerOf(tags) != "" || yes && foreign {
		err = c.confirmDeletion(p.name, messages, yes)
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
	return c.queueDeleted(p.name, messages, err)
}
