package messages

import (
	"context"
	"errors"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
)

// redriveOnSQS runs a move task. If over is false, the remaining messages must be copied: the endpoint has no move
// tasks, or tendril itself sent a message to the dead-letter queue, whose source SQS does not know. A task with a
// destination would keep tendril's reasons in the messages.
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
		c.PrintErrln("warning: Amazon SQS does not know the source of some messages: copying the rest instead")
		return n, false, nil
	}
	return n, true, err
}
