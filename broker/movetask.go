package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// MoveStatus is the state of a [MoveTask], in the words of SQS.
type MoveStatus string

// The states of a move task. SQS has CANCELLING too; here a cancel takes effect at once.
const (
	MoveRunning   MoveStatus = "RUNNING"
	MoveCompleted MoveStatus = "COMPLETED"
	MoveCancelled MoveStatus = "CANCELLED"
	MoveFailed    MoveStatus = "FAILED"
)

// MoveRequest says what a [MoveTask] does to the messages of a dead-letter queue.
type MoveRequest struct {
	// Source and Destination are ARNs. An empty Destination means the queue that each message was dead-lettered from.
	Source, Destination string
	// Delete removes the messages for good instead; there is no destination then.
	Delete bool
	// Rate is the most messages moved per second, 1 to 500; 0 means as fast as the disk takes them.
	Rate int
	// Filter says which messages are meant.
	Filter Filter
}

// MoveTask is what is known of a task that moves, or deletes, the messages of a dead-letter queue.
type MoveTask struct {
	MoveRequest
	// Handle is the TaskHandle of the SQS API. A listing has it while the task is running only.
	Handle string
	Status MoveStatus
	// Moved counts the messages moved so far. ToMove is how many visible messages the source held when the task was
	// started; with a filter how many it meant, where these were counted soon enough.
	Moved, ToMove int64
	// FailureReason is the query code of the error that ended a failed task; "" otherwise.
	FailureReason string
	// StartedAt has millisecond precision.
	StartedAt time.Time
}

const (
	maxMoveRate   = 500 // messages per second (SQS)
	mostMoveTasks = 10  // that are remembered of one source (SQS lists as many)

	// countToMove is how long a task with a filter counts before it starts.
	countToMove = 2 * time.Second

	reasonNoQueue  = "AWS.SimpleQueueService.NonExistentQueue"
	reasonNoSource = "CouldNotDetermineMessageSource"
)

// moveTasks are the move tasks of all sources, by the number of the source queue, oldest first.
type moveTasks struct {
	mu       sync.Mutex
	bySource map[int64][]*moveTask
}

// moveTask is one task. The transactions that move its messages write its row too, so that the count is right
// however the process ends.
type moveTask struct {
	source *liveQueue
	high   int64 // the key up to which messages are moved: those that arrive later stay
	id     string
	ended  chan struct{} // closed when the task has ended

	// The lock of moveTasks guards the rest.
	MoveTask
	started bool // its goroutine runs, or has run
}

// moveHandle is a TaskHandle before it is encoded.
type moveHandle struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

// ErrMoveRunning is wrapped by the error of a move task whose source already has one.
var ErrMoveRunning = errors.New("another task of the source queue is running")

// errMoveRunning has the code and text that SQS was recorded with; its documentation names UnsupportedOperation.
var errMoveRunning = &queue.Error{Code: queue.CodeInvalidParameterValue, Err: ErrMoveRunning,
	Message: "There is already a task running. Only one active task is allowed for a source queue arn at a given time."}

// StartMoveTask begins to move the messages of a dead-letter queue, or to delete them, and returns the handle of the
// task.
//
// Visible messages that are there now are moved, as [Broker.Move] does: they keep id and receive count, and the
// destination's redrive policy counts anew. The task goes on after a restart. Errors: ResourceNotFound without such
// queues, InvalidParameterValue for a bad rate, for a source that is no dead-letter queue, and for a destination of
// another type, and, wrapping [ErrMoveRunning], while another task of the source runs.
func (b *Broker) StartMoveTask(ctx context.Context, req MoveRequest) (handle string, err error) {
	if req.Rate < 0 || req.Rate > maxMoveRate {
		return "", queue.Errorf(queue.CodeInvalidParameterValue,
			"Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a value between 1 and %d.",
			maxMoveRate)
	}
	from := b.byARN(req.Source)
	if from == nil {
		return "", errNoResource("SourceArn")
	}

	toMove, exact := int64(0), false
	if !req.Filter.IsZero() {
		if toMove, exact, err = b.Queue(from.name).Count(ctx, req.Filter, countToMove); err != nil {
			return "", err
		}
	}

	err = b.administer(ctx, from.name, func(q *liveQueue) error {
		if err := b.checkMoveTask(q, &req); err != nil {
			return err
		}
		t := &moveTask{source: q, id: newTaskID(), ended: make(chan struct{})}
		q.lock()
		t.high = req.Filter.reach(q.index.number, makeKey(q.index.number, q.index.counters.next-1))
		t.MoveTask = MoveTask{MoveRequest: req, Status: MoveRunning, ToMove: q.index.ledger().Visible, StartedAt: date(stamp())}
		q.mu.Unlock()
		if exact {
			t.ToMove = toMove
		}
		handle = t.handle()
		return b.writer.change(func(x *tx) error { return x.insertMoveTask(t) }, func() {
			b.moves.add(t)
			b.resumeMoves()
		})
	})
	return handle, err
}

// checkMoveTask refuses a task of a source that is being administered.
func (b *Broker) checkMoveTask(q *liveQueue, req *MoveRequest) error {
	targets := b.deadLetterTargets()
	if !targets[q.arn] {
		return queue.Errorf(queue.CodeInvalidParameterValue, "Source queue must be configured as a Dead Letter Queue.")
	}
	if req.Delete && req.Destination != "" {
		return queue.Errorf(queue.CodeInvalidParameterValue, "Messages are deleted or moved to a destination, not both.")
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

// CancelMoveTask ends a running task and returns how many messages it has moved; these stay where they are. Errors:
// InvalidParameterValue for what is no handle, ResourceNotFound for the handle of a task that is unknown or has ended.
func (b *Broker) CancelMoveTask(ctx context.Context, handle string) (moved int64, err error) {
	var h moveHandle
	text, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || json.Unmarshal(text, &h) != nil || h.TaskID == "" || h.SourceARN == "" {
		return 0, queue.Errorf(queue.CodeInvalidParameterValue, "Value for parameter TaskHandle is invalid.")
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
	if cancelled, err := b.endMove(t, MoveCancelled, ""); err != nil || !cancelled {
		return 0, cmp.Or(err, error(errNoTask))
	}
	return b.moves.snapshot(t).Moved, nil
}

// MoveTasks returns the tasks of a source queue, named by its ARN: the most recent first, at most limit of them (1 to
// 10; 0 means 1). It returns ResourceNotFound without such a queue.
func (b *Broker) MoveTasks(source string, limit int) ([]MoveTask, error) {
	if limit == 0 {
		limit = 1
	}

	if limit < 1 || limit > mostMoveTasks {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"Value for parameter MaxResults is invalid. Reason: You must enter a value between 1 and %d.", mostMoveTasks)
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
		if list = append(list, task); len(list) == limit {
			break
		}
	}
	return list, nil
}

var errNoTask = queue.Errorf(queue.CodeResourceNotFound, "Task does not exist.")

func errNoResource(parameter string) error {
	return queue.Errorf(queue.CodeResourceNotFound,
		"The resource that you specified for the %s parameter doesn't exist.", parameter)
}

func (t *moveTask) handle() string {
	return base64.StdEncoding.EncodeToString(rawJSON(moveHandle{t.id, t.source.arn}))
}

// add enters a task and forgets the oldest ones of its source.
func (l *moveTasks) add(t *moveTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := append(l.bySource[t.source.index.number], t)
	l.bySource[t.source.index.number] = list[max(0, len(list)-mostMoveTasks):]
}

// running returns the running task of a source; nil when there is none.
func (l *moveTasks) running(source int64) *moveTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.bySource[source]
	if len(list) == 0 || list[len(list)-1].Status != MoveRunning {
		return nil
	}
	return list[len(list)-1]
}

// snapshot returns what is known of a task now.
func (l *moveTasks) snapshot(t *moveTask) MoveTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.MoveTask
}

// forget drops the tasks of a source that was deleted.
func (l *moveTasks) forget(source int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.bySource[source] {
		t.end(MoveFailed, reasonNoQueue)
	}
	delete(l.bySource, source)
}

// end ends a task that is running. The lock of moveTasks is held.
func (t *moveTask) end(status MoveStatus, reason string) {
	if t.Status == MoveRunning {
		t.Status, t.FailureReason = status, reason
		close(t.ended)
	}
}

// newTaskID returns a random UUID of version 4.
func newTaskID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}
