package messages

import (
	"context"
	"errors"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
)

// redriveOnSQS moves all dead letters of a queue on Amazon SQS to where they came from, by a move task, and cancels it
// when ctx ends. With over false there is something left that has to be copied: the endpoint has no such tasks, or
// there are messages that tendril sent here. SQS does not know where those came from, so that a task fails at the first
// of them. A task with a target would leave the reasons on them: a copy of each is made then.
func redriveOnSQS(ctx context.Context, c *base.CLI, g *deadLetterQueue, perSecond int) (n int, over bool,
	err error) {
	task, err := g.queue.Remote.StartMove(ctx, perSecond)
	if errors.Is(err, aws.ErrNoMoveTasks) {
		c.PrintErrf("warning: %v: copying the messages instead\n", err)
		return 0, false, nil
	}
	if err != nil {
		return 0, true, err
	}
	n, err = followTask(ctx, c, task, g.count, "moved")
	if errors.Is(err, errNoSource) {
		c.PrintErrln("warning: Amazon SQS does not know where some messages came from: copying the rest instead")
		return n, false, nil
	}
	return n, true, err
}
