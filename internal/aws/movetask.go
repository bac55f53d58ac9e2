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

// ErrNoMoveTasks tells that a server which speaks the protocol of SQS has no message move tasks.
var ErrNoMoveTasks = errors.New("the endpoint has no message move tasks (StartMessageMoveTask)")

// MoveTask is a task of SQS that moves the messages of a dead-letter queue. One goroutine may use it at a time.
type MoveTask struct {
	queue   *Queue
	source  string // ARN
	handle  string
	started int64 // Unix milliseconds, as SQS says; 0 until then
}

// MoveProgress is how far a [MoveTask] is. The zero value is a task of which SQS says nothing yet.
type MoveProgress struct {
	// Status is that of the API: RUNNING, COMPLETED, CANCELLING, CANCELLED or FAILED.
	Status string
	// Moved and ToMove are approximate; ToMove is 0 where SQS does not say it.
	Moved, ToMove int64
	// FailureReason is the error code of a failed task; "" otherwise.
	FailureReason string
}

// StartMove starts to move all messages of this dead-letter queue to the queues that they came from. perSecond is the
// most messages per second, 1 to 500; 0 leaves it to SQS. The error is [ErrNoMoveTasks]
// where the server does not know the action; a queue has one running task at most (UnsupportedOperation).
func (q *Queue) StartMove(ctx context.Context, perSecond int) (*MoveTask, error) {
	source, err := q.arn(ctx)
	if err != nil {
		return nil, err
	}
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &source}
	if perSecond > 0 {
		in.MaxNumberOfMessagesPerSecond = sdk.Int32(int32(perSecond))
	}
	out, err := operate(ctx, q, q.sqs.api.StartMessageMoveTask, in)
	if hasNoMoveTasks(err) {
		return nil, ErrNoMoveTasks
	}
	if err != nil {
		return nil, err
	}
	return &MoveTask{queue: q, source: source, handle: sdk.ToString(out.TaskHandle)}, nil
}

// hasNoMoveTasks reports whether an error says that the server does not know the action. SQS itself answers so while another task of
// the queue runs, according to its documentation.
func hasNoMoveTasks(err error) bool {
	var refused *refusal
	if !errors.As(err, &refused) {
		return false
	}
	if errors.Is(err, &queue.Error{Code: queue.CodeUnsupportedOperation}) {
		return !strings.Contains(refused.message, "already a task running")
	}
	return refused.foreign() || refused.status == http.StatusNotImplemented
}

// arn asks for the ARN of the queue.
func (q *Queue) arn(ctx context.Context) (string, error) {
	name := types.QueueAttributeNameQueueArn
	out, err := operate(ctx, q, q.sqs.api.GetQueueAttributes, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return "", err
	}
	return out.Attributes[string(name)], nil
}

// Progress asks how far the task is.
func (t *MoveTask) Progress(ctx context.Context) (MoveProgress, error) {
	out, err := operate(ctx, t.queue, t.queue.sqs.api.ListMessageMoveTasks,
		&sqs.ListMessageMoveTasksInput{SourceArn: &t.source, MaxResults: sdk.Int32(10)})
	if err != nil {
		return MoveProgress{}, err
	}
	for _, r := range out.Results { // the latest first; only a running one has its handle
		if sdk.ToString(r.TaskHandle) == t.handle {
			t.started = r.StartedTimestamp
		} else if t.started != 0 && r.StartedTimestamp != t.started || r.TaskHandle != nil {
			continue
		}
		return MoveProgress{sdk.ToString(r.Status), r.ApproximateNumberOfMessagesMoved,
			sdk.ToInt64(r.ApproximateNumberOfMessagesToMove), sdk.ToString(r.FailureReason)}, nil
	}
	return MoveProgress{}, nil
}

// Cancel ends the task and returns about how many messages it has moved: these stay where they are.
func (t *MoveTask) Cancel(ctx context.Context) (moved int64, err error) {
	out, err := operate(ctx, t.queue, t.queue.sqs.api.CancelMessageMoveTask,
		&sqs.CancelMessageMoveTaskInput{TaskHandle: &t.handle})
	if err != nil {
		return 0, err
	}
	return out.ApproximateNumberOfMessagesMoved, nil
}
