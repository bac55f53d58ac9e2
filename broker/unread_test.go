package broker

import (
	"testing"
	"time"

	"tendril/queue"
)

func unread(t testing.TB, q *Queue, m queue.Message) {
	t.Helper()
	change := queue.VisibilityChange{ReceiptHandle: m.ReceiptHandle, Unread: true}
	if errs := q.ChangeVisibility(t.Context(), []queue.VisibilityChange{change}); errs != nil {
		t.Fatal(errs)
	}
}

// Later receipt handles must stay valid, although their serial numbers exceed the receive count.
func TestUnreadSurvivesARestart(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work.fifo",
		map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "600"})
	send(t, q, queue.Outgoing{Body: "a", GroupID: "a"}, queue.Outgoing{Body: "b", GroupID: "b"})
	for range 3 {
		for _, m := range take(t, q, 2) {
			unread(t, q, m)
		}
	}
	flying := one(t, q)
	if flying.ReceiveCount != 1 {
		t.Errorf("received %d times, want 1", flying.ReceiveCount)
	}
	b = reopen(t, b)
	q = b.Queue("work.fifo")
	stored, err := b.Message(t.Context(), "work.fifo", flying.ID)
	if err != nil || stored.ReceiveCount != 1 || stored.State != InFlight {
		t.Errorf("stored: %+v, %v", stored, err)
	}
	other := one(t, q)
	if other.ReceiveCount != 1 || other.ID == flying.ID || time.Since(other.FirstReceivedAt) > time.Minute {
		t.Errorf("after the restart: %+v", other)
	}
	remove(t, q, flying.ReceiptHandle, other.ReceiptHandle)
	if l, _ := b.Ledger("work.fifo"); l.Done != 2 {
		t.Errorf("%d done, want both", l.Done)
	}
}
