package sqsapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"tendril/queue"
)

type testMemory struct {
	free, least int64
}

func (m *testMemory) Acquire(_ context.Context, bytes int64) error {
	if bytes > m.free {
		return queue.ErrThrottled
	}
	m.free -= bytes
	m.least = min(m.least, m.free)
	return nil
}

func (m *testMemory) Release(bytes int64) { m.free += bytes }

// Memory stays reserved until the response is written. Without it, no message may be received or counted.
func TestReceiveTakesMemoryForItsAnswer(t *testing.T) {
	t.Parallel()
	memory := &testMemory{}
	h := newHandler(t, &Options{Memory: memory})
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"`+strings.Repeat("x", 300<<10)+`"}`)
	mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"second"}`)
	const receive = `{"QueueUrl":"jobs","MaxNumberOfMessages":10,"AttributeNames":["ApproximateReceiveCount"]}`
	if w := call(h, "ReceiveMessage", receive); w.Code == http.StatusOK || !strings.Contains(w.Body.String(), "Throttled") {
		t.Errorf("without memory: %d %s", w.Code, w.Body)
	}
	memory.free, memory.least = 4<<20, 4<<20
	answer := mustCall(t, h, "ReceiveMessage", receive)
	if !strings.Contains(answer, `"ApproximateReceiveCount":"1"`) || strings.Contains(answer, "second") {
		t.Errorf("received %d bytes: %.200s", len(answer), answer)
	}
	if memory.least != 4<<20-maxAnswerMemory || memory.free != 4<<20 {
		t.Errorf("%d bytes were left, and %d are after the answer", memory.least, memory.free)
	}
}
