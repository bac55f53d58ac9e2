package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
)

// lookAtRemoteTask is how often Amazon SQS is asked how far a move task is.
const lookAtRemoteTask = time.Second

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
	n, err = followMove(ctx, c, g, task)
	if errors.Is(err, errNoSource) {
		c.PrintErrln("warning: Amazon SQS does not know where some messages came from: copying the rest instead")
		return n, false, nil
	}
	return n, true, err
}

// noSource is why a move task fails that comes to a message which was sent to the dead-letter queue directly.
const noSource = "CouldNotDetermineMessageSource"

var errNoSource = errors.New("the move ended early: " + noSource)

// followMove shows how far a task is until it ends.
func followMove(ctx context.Context, c *base.CLI, g *deadLetterQueue, task *aws.MoveTask) (int, error) {
	bar := c.Progress(g.count, "moved", true)
	defer func() { _ = bar.Finish() }()
	moved := 0
	for {
		now, err := task.Progress(ctx)
		if ctx.Err() == nil && err != nil {
			return moved, fmt.Errorf("the move goes on, but its progress is not known: %w", err)
		}
		if err == nil {
			moved = int(now.Moved)
			_ = bar.Set(moved)
		}
		switch now.Status {
		case "COMPLETED":
			return moved, nil
		case "CANCELLED", "CANCELLING":
			return moved, errors.New("the move was cancelled by another command")
		case "FAILED":
			early := fmt.Errorf("the move ended early: %s", cmp.Or(now.FailureReason, "no reason given"))
			if now.FailureReason == noSource {
				early = errNoSource
			}
			return moved, base.Fail(base.ExitFailed, early,
				"messages whose queue is gone, or that were sent here directly, can be moved with --to QUEUE")
		}
		select {
		case <-time.After(lookAtRemoteTask):
		case <-ctx.Done():
			late, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer stop()
			n, err := task.Cancel(late)
			if err != nil {
				return moved, fmt.Errorf("the move could not be cancelled, and may go on: %w", err)
			}
			return int(n), ctx.Err()
		}
	}
}
