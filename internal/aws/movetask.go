package aws

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/queue"
)

// ErrNoMoveTasks means that the server does not support message move tasks.
var ErrNoMoveTasks = errors.New("the endpoint does not support message move tasks (StartMessageMoveTask)")

// MoveTask moves the messages of a dead-letter queue. It is not safe for concurrent use.
type MoveTask struct {
	queue   *Queue
	source  string
	handle  string
	started int64 // Unix milliseconds; 0 until reported
}

// MoveProgress is the progress of a [MoveTask]. It is zero until SQS lists the task.
type MoveProgress struct {
	// Status is RUNNING, COMPLETED, CANCELLING, CANCELLED or FAILED.
	Status string
	// Moved and ToMove are approximate; ToMove is 0 if unknown.
	Moved, ToMove int64
	FailureReason string
}

// StartMove starts moving all messages of this dead-letter queue back to their source queues, at most perSecond per
// second (1 to 500; 0 leaves the rate to SQS). It returns [ErrNoMoveTasks] if the server does not support move tasks.
// If a task is already running for the queue, the error code is queue.CodeUnsupportedOperation.
func (q *Queue) StartMove(ctx context.Context, perSecond int) (*MoveTask, error) {
	source, err := q.arn(ctx)
	if err != nil {
		return nil, err
	}
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &source}
	if perSecond > 0 {
		in.MaxNumberOfMessagesPerSecond = sdk.Int32(int32(perSecond))
	}
	out, err := callSDK(ctx, q, q.sqs.api.StartMessageMoveTask, in)
	if hasNoMoveTasks(err) {
		return nil, ErrNoMoveTasks
	}
	if err != nil {
		return nil, err
	}
	return &MoveTask{queue: q, source: source, handle: sdk.ToString(out.TaskHandle)}, nil
}

// hasNoMoveTasks reads the message, because SQS uses the same error code for a queue with a running task.
func hasNoMoveTasks(err error) bool {
	var refused *refusal
	if !errors.As(err, &refused) {
		return false
	}
	if errors.Is(err, &queue.Error{Code: queue.CodeUnsupportedOperation}) {
		return !strings.Contains(refused.message, "already a task running")
	}
	return refused.isForeign() || refused.status == http.StatusNotImplemented
}

func (q *Queue) arn(ctx context.Context) (string, error) {
	name := types.QueueAttributeNameQueueArn
	out, err := callSDK(ctx, q, q.sqs.api.GetQueueAttributes, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return "", err
	}
	return out.Attributes[string(name)], nil
}

// Progress returns the task's progress.
func (t *MoveTask) Progress(ctx context.Context) (MoveProgress, error) {
	out, err := callSDK(ctx, t.queue, t.queue.sqs.api.ListMessageMoveTasks,
		&sqs.ListMessageMoveTasksInput{SourceArn: &t.source, MaxResults: sdk.Int32(10)})
	if err != nil {
		return MoveProgress{}, err
	}

	for _, r := range out.Results { // newest first; only running tasks have handles
		running := sdk.ToString(r.TaskHandle) == t.handle
		ended := r.TaskHandle == nil && (t.started == 0 || r.StartedTimestamp == t.started)
		if !running && !ended {
			continue
		}
		if running {
			t.started = r.StartedTimestamp
		}
		return MoveProgress{sdk.ToString(r.Status), r.ApproximateNumberOfMessagesMoved,
			sdk.ToInt64(r.ApproximateNumberOfMessagesToMove), sdk.ToString(r.FailureReason)}, nil
	}
	return MoveProgress{}, nil
}

// Cancel stops the task and returns the approximate number of messages moved, which are not moved back.
func (t *MoveTask) Cancel(ctx context.Context) (moved int64, err error) {
	out, err := callSDK(ctx, t.queue, t.queue.sqs.api.CancelMessageMoveTask,
		&sqs.CancelMessageMoveTaskInput{TaskHandle: &t.handle})
	if err != nil {
		return 0, err
	}
	return out.ApproximateNumberOfMessagesMoved, nil
}
