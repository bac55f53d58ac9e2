package aws

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

const (
	movesDead    = "arn:aws:sqs:eu-west-1:123456789012:jobs-dead"
	movesRefused = `{"__type":"com.amazonaws.sqs#UnsupportedOperation","message":"There is already a task running. ` +
		`Only one active task is allowed for a source queue arn at a given time."}`
)

func openMoves(t *testing.T, answers map[string]string) (q *Queue, asked map[string]map[string]any) {
	t.Helper()
	answers["GetQueueAttributes"] = `{"Attributes":{"QueueArn":"` + movesDead + `"}}`
	endpoint, asked := operatorServer(t, answers)
	t.Setenv("AWS_ENDPOINT_URL_SQS", endpoint)
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if q, err = s.Queue(t.Context(), "http://sqs.example/123456789012/jobs-dead"); err != nil {
		t.Fatal(err)
	}
	return q, asked
}

func TestMoveTask(t *testing.T) {
	answers := map[string]string{
		"StartMessageMoveTask": `{"TaskHandle":"h"}`,
		"ListMessageMoveTasks": `{"Results":[{"TaskHandle":"h","Status":"RUNNING","StartedTimestamp":7,` +
			`"ApproximateNumberOfMessagesMoved":3,"ApproximateNumberOfMessagesToMove":9},` +
			`{"Status":"COMPLETED","StartedTimestamp":5,"ApproximateNumberOfMessagesMoved":1}]}`,
		"CancelMessageMoveTask": `{"ApproximateNumberOfMessagesMoved":4}`,
	}
	q, asked := openMoves(t, answers)
	task, err := q.StartMove(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"SourceArn": movesDead,
		"MaxNumberOfMessagesPerSecond": float64(50)}, asked["StartMessageMoveTask"]); diff != "" {
		t.Error(diff)
	}
	if got, err := task.Progress(t.Context()); err != nil ||
		got != (MoveProgress{Status: "RUNNING", Moved: 3, ToMove: 9}) {
		t.Errorf("progress %+v, %v", got, err)
	}
	answers["ListMessageMoveTasks"] = `{"Results":[{"TaskHandle":"other","Status":"RUNNING","StartedTimestamp":8},` +
		`{"Status":"FAILED","StartedTimestamp":7,"ApproximateNumberOfMessagesMoved":5,"FailureReason":"because"}]}`
	if got, err := task.Progress(t.Context()); err != nil ||
		got != (MoveProgress{Status: "FAILED", Moved: 5, FailureReason: "because"}) {
		t.Errorf("progress %+v, %v", got, err)
	}
	if n, err := task.Cancel(t.Context()); n != 4 || err != nil || asked["CancelMessageMoveTask"]["TaskHandle"] != "h" {
		t.Errorf("cancelled after %d, %v", n, err)
	}
	answers["StartMessageMoveTask"] = movesRefused
	if _, err := q.StartMove(t.Context(), 0); !errors.Is(err, &queue.Error{Code: queue.CodeUnsupportedOperation}) {
		t.Errorf("beside a task that runs: %v", err)
	}
	if diff := cmp.Diff(map[string]any{"SourceArn": movesDead}, asked["StartMessageMoveTask"]); diff != "" {
		t.Error(diff)
	}
}

func TestServerWithoutMoveTasks(t *testing.T) {
	for _, answer := range []string{
		`{"__type":"com.amazonaws.sqs#UnsupportedOperation","message":"not here"}`,
		`{"__type":"InvalidAction","message":"The action StartMessageMoveTask is not valid for this endpoint."}`,
		`{"__type":"com.amazon.coral.service#UnknownOperationException"}`,
	} {
		q, _ := openMoves(t, map[string]string{"StartMessageMoveTask": answer})
		if _, err := q.StartMove(t.Context(), 0); !errors.Is(err, ErrNoMoveTasks) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestForeignServerWithoutMoveTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	t.Setenv("AWS_ENDPOINT_URL_SQS", testpeer.Moto(t, "sqs"))
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q, err := s.Create(t.Context(), "jobs-dead", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.StartMove(t.Context(), 0); !errors.Is(err, ErrNoMoveTasks) {
		var refused *refusal
		t.Errorf("%v %v, %+v", err, errors.As(err, &refused), refused)
	}
}
