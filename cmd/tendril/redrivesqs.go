package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/aws"
	"tendril/queue"
)

// lookAtRemoteTask is how often Amazon SQS is asked how far a move task is.
const lookAtRemoteTask = time.Second

// redriveOnSQS moves all dead letters of a queue on Amazon SQS by a move task, and cancels it when ctx ends. With over
// false there is something left that has to be copied: the endpoint has no such tasks, or there are messages that
// tendril sent here. SQS does not know where those came from, so that a task without a target fails at the first of
// them; with a target it would leave the reason on them.
func (c messageCommands) redriveOnSQS(ctx context.Context, g *deadLetterQueue, to string, perSecond int) (n int,
	over bool, err error) {
	if to != "" {
		if copies, err := g.beginsWithReason(ctx); err != nil || copies {
			return 0, false, err
		}
	}
	task, err := g.startMove(ctx, to, perSecond)
	if errors.Is(err, aws.ErrNoMoveTasks) {
		fmt.Fprintf(c.err, "warning: %v: copying the messages instead\n", err)
		return 0, false, nil
	}
	if err != nil {
		return 0, true, err
	}
	n, err = c.followMove(ctx, g, task)
	if errors.Is(err, errNoSource) && to == "" {
		fmt.Fprintln(c.err, "warning: Amazon SQS does not know where some messages came from: copying the rest instead")
		return n, false, nil
	}
	return n, true, err
}

// beginsWithReason reports whether one of the first ten messages says why it failed. It asks for no more, since each
// look is a receive.
func (g *deadLetterQueue) beginsWithReason(ctx context.Context) (found bool, err error) {
	from := g.contents(&selector{})
	defer func() { err = errors.Join(err, from.release(ctx)) }()
	for portion, err := range from.read(ctx, queue.MaxBatch) {
		for i := range portion {
			_, f := queue.CutReason(portion[i].Attributes)
			found = found || f != nil
		}
		return found, err
	}
	return false, nil
}

// noSource is why a move task fails that comes to a message which was sent to the dead-letter queue directly.
const noSource = "CouldNotDetermineMessageSource"

var errNoSource = errors.New("the move ended early: " + noSource)

func (g *deadLetterQueue) startMove(ctx context.Context, to string, perSecond int) (*aws.MoveTask, error) {
	var target *aws.Queue
	if to != "" {
		var err error
		if target, err = g.queue.openRemote(ctx, to); err != nil {
			return nil, fmt.Errorf("finding the queue to move to: %w", err)
		}
	}
	return g.queue.remote.StartMove(ctx, target, perSecond)
}

// followMove shows how far a task is until it ends.
func (c messageCommands) followMove(ctx context.Context, g *deadLetterQueue, task *aws.MoveTask) (int, error) {
	bar := c.progress(g.count, "moved", true)
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
			return moved, fail(exitFailed, early,
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
