package messages

import (
	"context"
	"errors"

	"tendril/internal/aws"
)

var errCopyRest = errors.New("the remaining messages must be copied")

// redriveOnSQS returns errCopyRest if the endpoint has no move tasks, or if tendril itself sent a message to the
// dead-letter queue, whose source SQS does not know. A task with a destination would keep tendril's reasons in the
// messages.
func (dlq *deadLetterQueue) redriveOnSQS(ctx context.Context, perSecond int) (int, error) {
	task, err := dlq.queue.Remote.StartMove(ctx, perSecond)
	if errors.Is(err, aws.ErrNoMoveTasks) {
		dlq.cli.PrintErrf("warning: %v: copying the messages instead\n", err)
		return 0, errCopyRest
	}
	if err != nil {
		return 0, err
	}
	n, err := followTask(ctx, dlq.cli, task, dlq.count, "moved")
	if errors.Is(err, errNoSource) {
		dlq.cli.PrintErrln("warning: Amazon SQS does not know the source of some messages: copying the rest instead")
		return n, errCopyRest
	}
	return n, err
}
