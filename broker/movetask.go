package broker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"tendril/queue"
)

// MoveStatus is the status of a [MoveTask], named as in SQS.
type MoveStatus string

// SQS's CANCELLING is missing, because a cancellation takes effect at once.
const (
	MoveRunning   MoveStatus = "RUNNING"
	MoveCompleted MoveStatus = "COMPLETED"
	MoveCancelled MoveStatus = "CANCELLED"
	MoveFailed    MoveStatus = "FAILED"
)

// MoveRequest configures a [MoveTask].
type MoveRequest struct {
	// Source and Destination are ARNs. An empty Destination means the queue that each message was dead-lettered from.
	Source, Destination string
	// Delete deletes the messages instead of moving them; Destination must then be empty.
	Delete bool
	// Rate is in messages per second, 1 to 500; 0 means unlimited.
	Rate   int
	Filter Filter
}

// MoveTask is a task that moves or deletes the messages of a dead-letter queue.
type MoveTask struct {
	MoveRequest
	// Handle is the TaskHandle of SQS. [Broker.MoveTasks] sets it only for a running task.
	Handle string
	Status MoveStatus
	// Moved includes deleted messages. ToMove is the number of visible messages at the start; with a filter, it is
	// the number of matching messages, unless counting them took more than 2 seconds.
	Moved, ToMove int64
	// FailureReason is the Query-protocol code of the error that ended the task, or "".
	FailureReason string
	// StartedAt has millisecond precision.
	StartedAt time.Time
}

const (
	maxMoveRate  = 500 // messages per second (SQS)
	maxMoveTasks = 10  // per source queue; SQS lists at most as many

	countTimeout = 2 * time.Second

	reasonNoQueue  = "AWS.SimpleQueueService.NonExistentQueue"
	reasonNoSource = "CouldNotDetermineMessageSource"
)

type moveTasks struct {
	mu       sync.Mutex
	bySource map[int64][]*moveTask
}

// moveTask is a task in memory. The transactions that move messages also update its row, so Moved is correct after a
// crash.
type moveTask struct {
	source *liveQueue
	high   int64
	id     string
	ended  chan struct{}

	// The lock of moveTasks guards the fields below.
	MoveTask
	started bool
}

type moveHandle struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

// ErrMoveRunning means that the source already has a running task.
var ErrMoveRunning = errors.New("another move task of the source queue is running")

// errMoveRunning has SQS's actual code and text; the AWS documentation names UnsupportedOperation.
var errMoveRunning = &queue.Error{Code: queue.CodeInvalidParameterValue, Err: ErrMoveRunning,
	Message: "There is already a task running. Only one active task is allowed for a source queue arn at a given time."}

// StartMoveTask starts moving or deleting the visible messages of a dead-letter queue, as [Broker.Move] does, and
// returns the task's handle. The task resumes after a restart. If a queue is missing, the error is ResourceNotFound. If
// the source already has a running task, the error wraps [ErrMoveRunning]. For other invalid requests, it is
// InvalidParameterValue.
func (b *Broker) StartMoveTask(ctx context.Context, req MoveRequest) (handle string, err error) {
	if req.Rate < 0 || req.Rate > maxMoveRate {
		return "", errRange("MaxNumberOfMessagesPerSecond", maxMoveRate)
	}
	from := b.byARN(req.Source)
	if from == nil {
		return "", errNoResource("SourceArn")
	}

	matching := int64(0)
	exact := false
	if !req.Filter.IsZero() {
		if matching, exact, err = b.Queue(from.name).Count(ctx, req.Filter, countTimeout); err != nil {
			return "", err
		}
	}

	err = b.administer(ctx, from.name, func(q *liveQueue) error {
		if err := b.checkMoveTask(q, &req); err != nil {
			return err
		}
		t := q.newMoveTask(req)
		if exact {
			t.ToMove = matching
		}
		handle = t.handle()
		return b.writer.change(func(x *tx) { x.insertMoveTask(t) }, func() {
			b.moves.add(t)
			b.resumeMoves()
		})
	})
	return handle, err
}

func (q *liveQueue) newMoveTask(req MoveRequest) *moveTask {
	t := &moveTask{source: q, id: uuid.NewString(), ended: make(chan struct{})}
	q.lockAndExpire()
	defer q.mu.Unlock()
	t.high = lastMatch(req.Filter.Through, q.index.number, q.index.last())
	t.MoveTask = MoveTask{MoveRequest: req, Status: MoveRunning, ToMove: q.index.ledger().Visible,
		StartedAt: date(stamp())}
	return t
}

func (b *Broker) checkMoveTask(q *liveQueue, req *MoveRequest) error {
	targets := b.deadLetterTargets()
	if !targets[q.arn] {
		return errInvalid("Source queue must be configured as a Dead Letter Queue.")
	}
	if req.Delete && req.Destination != "" {
		return errInvalid("Messages are deleted or moved to a destination, not both.")
	}
	if req.Destination != "" {
		to := b.byARN(req.Destination)
		if to == nil {
			return errNoResource("DestinationArn")
		}
		if err := checkMove(q, to); err != nil {
			return err
		}
	}

	if b.moves.running(q.index.number) != nil {
		return errMoveRunning
	}
	return nil
}

// CancelMoveTask ends a running task and returns the number of messages it has moved. For an invalid handle, the error
// is InvalidParameterValue; for an unknown or ended task, ResourceNotFound.
func (b *Broker) CancelMoveTask(ctx context.Context, handle string) (moved int64, err error) {
	var h moveHandle
	text, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || json.Unmarshal(text, &h) != nil || h.TaskID == "" || h.SourceARN == "" {
		return 0, errInvalid("Value for parameter TaskHandle is invalid.")
	}
	q := b.byARN(h.SourceARN)
	if q == nil {
		return 0, errNoResource("SourceArn")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}

	t := b.moves.running(q.index.number)
	if t == nil || t.id != h.TaskID {
		return 0, errNoTask
	}
	cancelled, err := b.endMove(t, MoveCancelled, "")
	if err != nil {
		return 0, err
	}
	if !cancelled {
		return 0, errNoTask
	}
	return b.moves.snapshot(t).Moved, nil
}

// MoveTasks returns up to limit tasks (1 to 10; 0 means 1) of the source queue with the given ARN, most recent first.
// If the queue is missing, the error is ResourceNotFound.
func (b *Broker) MoveTasks(source string, limit int) ([]MoveTask, error) {
	if limit == 0 {
		limit = 1
	}
	if limit < 1 || limit > maxMoveTasks {
		return nil, errRange("MaxResults", maxMoveTasks)
	}
	q := b.byARN(source)
	if q == nil {
		return nil, errNoResource("SourceArn")
	}

	b.moves.mu.Lock()
	defer b.moves.mu.Unlock()
	list := []MoveTask{}
	for _, t := range slices.Backward(b.moves.bySource[q.index.number]) {
		task := t.MoveTask
		if task.Status == MoveRunning {
			task.Handle = t.handle()
		}
		list = append(list, task)
		if len(list) == limit {
			break
		}
	}
	return list, nil
}

func errRange(parameter string, most int) error {
	return errInvalid("Value for parameter %s is invalid. Reason: You must enter a value between 1 and %d.", parameter,
		most)
}

var errNoTask = queue.Errorf(queue.CodeResourceNotFound, "Task does not exist.")

func errNoResource(parameter string) error {
	return queue.Errorf(queue.CodeResourceNotFound,
		"The resource that you specified for the %s parameter doesn't exist.", parameter)
}

func (t *moveTask) handle() string {
	return base64.StdEncoding.EncodeToString(rawJSON(moveHandle{t.id, t.source.arn}))
}

func (l *moveTasks) add(t *moveTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := append(l.bySource[t.source.index.number], t)
	l.bySource[t.source.index.number] = list[max(0, len(list)-maxMoveTasks):]
}

func (l *moveTasks) running(source int64) *moveTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.bySource[source]
	if len(list) == 0 || list[len(list)-1].Status != MoveRunning {
		return nil
	}
	return list[len(list)-1]
}

func (l *moveTasks) snapshot(t *moveTask) MoveTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.MoveTask
}

func (l *moveTasks) forget(source int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.bySource[source] {
		t.end(MoveFailed, reasonNoQueue)
	}
	delete(l.bySource, source)
}

// The caller must hold the lock of moveTasks.
func (t *moveTask) end(status MoveStatus, reason string) {
	if t.Status == MoveRunning {
		t.Status = status
		t.FailureReason = reason
		close(t.ended)
	}
}
