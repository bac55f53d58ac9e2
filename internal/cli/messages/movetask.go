package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
)

type moveTask interface {
	Progress(ctx context.Context) (aws.MoveProgress, error)
	// Cancel returns the number of messages moved.
	Cancel(ctx context.Context) (int64, error)
}

type embeddedTask struct {
	queue *target.Queue
	moved int64
}

func (t *embeddedTask) Progress(ctx context.Context) (aws.MoveProgress, error) {
	task, err := t.queue.Client.RedriveTask(ctx, t.queue.Name)
	if err == nil {
		t.moved = task.Moved
	}
	return aws.MoveProgress{Status: task.Status, Moved: task.Moved, ToMove: task.ToMove,
		FailureReason: task.FailureReason}, err
}

// Cancel ignores errors, because the task may already have ended. It then returns the last known number.
func (t *embeddedTask) Cancel(ctx context.Context) (int64, error) {
	task, err := t.queue.Client.CancelRedrive(ctx, t.queue.Name)
	if err == nil {
		t.moved = task.Moved
	}
	return t.moved, nil
}

const (
	taskPollInterval       = 200 * time.Millisecond
	remoteTaskPollInterval = time.Second
)

// noSource is the failure of a move task that reaches a message sent directly to the dead-letter queue.
const noSource = "CouldNotDetermineMessageSource"

var errNoSource = errors.New("the task stopped early: " + noSource)

// followTask cancels the task if ctx is done. done is the word for the progress bar.
func followTask(ctx context.Context, c *base.CLI, task moveTask, total int, done string) (moved int, err error) {
	every := remoteTaskPollInterval
	if _, embedded := task.(*embeddedTask); embedded {
		every = taskPollInterval
	}

	bar := c.Progress(total, done, true)
	defer func() { _ = bar.Finish() }()
	for {
		now, err := task.Progress(ctx)
		if err != nil && ctx.Err() == nil {
			return moved, fmt.Errorf("reading the progress of the task, which continues: %w", err)
		}
		if err == nil {
			moved = int(now.Moved)
			_ = bar.Set(moved)
		}
		if ended, err := taskEnd(&now); ended {
			return moved, err
		}

		select {
		case <-time.After(every):
		case <-ctx.Done():
			cancelled, err := cancelTask(ctx, task)
			if err != nil {
				return moved, err
			}
			return cancelled, ctx.Err()
		}
	}
}

func taskEnd(p *aws.MoveProgress) (ended bool, err error) {
	switch p.Status {
	case "COMPLETED":
		return true, nil
	case "CANCELLED", "CANCELLING":
		return true, errors.New("the task was cancelled by another command")
	case "FAILED":
		return true, taskFailure(p.FailureReason)
	}
	return false, nil
}

func taskFailure(reason string) error {
	err := errNoSource
	if reason != noSource {
		err = fmt.Errorf("the task stopped early: %s", cmp.Or(reason, "no reason given"))
	}
	return base.Fail(base.ExitFailed, err,
		"add --to QUEUE to move messages whose source queue was deleted or that were sent here directly")
}

const cancelTimeout = 10 * time.Second

// cancelTask works even if the command was interrupted.
func cancelTask(ctx context.Context, task moveTask) (moved int, err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	n, err := task.Cancel(ctx)
	if err != nil {
		return 0, fmt.Errorf("cancelling the task, which may continue: %w", err)
	}
	return int(n), nil
}
