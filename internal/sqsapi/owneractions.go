package sqsapi

import (
	"tendril/broker"
	"tendril/queue"
)

type addPermissionRequest struct {
	queueRequest
	Label         string   `required:"true"`
	AWSAccountIDs []string `json:"AWSAccountIds" query:"AWSAccountId" required:"true"`
	Actions       []string `query:"ActionName" required:"true"`
}

func addPermission(x *exchange, in *addPermissionRequest) (*nothing, error) {
	return nil, x.broker.AddPermission(x.ctx, x.queue, in.Label, in.AWSAccountIDs, in.Actions)
}

type removePermissionRequest struct {
	queueRequest
	Label string `required:"true"`
}

func removePermission(x *exchange, in *removePermissionRequest) (*nothing, error) {
	return nil, x.broker.RemovePermission(x.ctx, x.queue, in.Label)
}

type sourceRequest struct {
	SourceARN string `json:"SourceArn" required:"true"`
}

func (r *sourceRequest) queueName() (string, error) { return queue.NameInARN(r.SourceARN), nil }

type startMoveRequest struct {
	sourceRequest
	DestinationARN               string `json:"DestinationArn"`
	MaxNumberOfMessagesPerSecond *int
}

type startMoveResponse struct {
	TaskHandle string
}

func startMessageMoveTask(x *exchange, in *startMoveRequest) (*startMoveResponse, error) {
	// Without a destination, messages return to their source queues, which requires permission for all queues.
	if err := x.authorize(queue.NameInARN(in.DestinationARN)); err != nil {
		return nil, err
	}
	handle, err := x.broker.StartMoveTask(x.ctx, broker.MoveRequest{Source: in.SourceARN, Destination: in.DestinationARN,
		Rate: given(in.MaxNumberOfMessagesPerSecond)})
	return &startMoveResponse{handle}, err
}

// given makes an explicit 0 invalid, because the broker treats 0 as absent.
func given(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

type cancelMoveRequest struct {
	TaskHandle string `required:"true"`
}

type cancelMoveResponse struct {
	ApproximateNumberOfMessagesMoved int64
}

func cancelMessageMoveTask(x *exchange, in *cancelMoveRequest) (*cancelMoveResponse, error) {
	moved, err := x.broker.CancelMoveTask(x.ctx, in.TaskHandle)
	return &cancelMoveResponse{moved}, err
}

type listMovesRequest struct {
	sourceRequest
	MaxResults *int
}

type listMovesResponse struct {
	Results []moveResult `json:",omitempty" query:"*ResultEntry"`
}

// Times are in milliseconds since 1970.
type moveResult struct {
	TaskHandle                        string `json:",omitempty"`
	Status                            string
	SourceARN                         string `json:"SourceArn"`
	DestinationARN                    string `json:"DestinationArn,omitempty"`
	MaxNumberOfMessagesPerSecond      int64  `json:",omitzero"`
	ApproximateNumberOfMessagesMoved  int64
	ApproximateNumberOfMessagesToMove int64
	FailureReason                     string `json:",omitempty"`
	StartedTimestamp                  int64
}

func listMessageMoveTasks(x *exchange, in *listMovesRequest) (*listMovesResponse, error) {
	tasks, err := x.broker.MoveTasks(in.SourceARN, given(in.MaxResults))
	response := &listMovesResponse{}
	for i := range tasks {
		t := &tasks[i]
		if t.Delete { // SQS has no such tasks
			continue
		}
		response.Results = append(response.Results, moveResult{TaskHandle: t.Handle, Status: string(t.Status),
			SourceARN: t.Source, DestinationARN: t.Destination, MaxNumberOfMessagesPerSecond: int64(t.Rate),
			ApproximateNumberOfMessagesMoved: t.Moved, ApproximateNumberOfMessagesToMove: t.ToMove,
			FailureReason: t.FailureReason, StartedTimestamp: t.StartedAt.UnixMilli()})
	}
	return response, err
}
