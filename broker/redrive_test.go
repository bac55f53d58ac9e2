package broker

import (
	"fmt"
	"testing"
	"time"

	"tendril/queue"
)

func TestRedrivenMessageStartsAfresh(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "dead", nil)
	create(t, b, "older", map[string]string{"RedrivePolicy": policy(b, "dead", 1)})
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": policy(b, "dead", 2)})
	id := send(t, q, queue.Outgoing{Body: "a"})[0].ID
	receive := func(wantReceives, wantAttempt int) queue.Message {
		t.Helper()
		m := one(t, q)
		if m.ReceiveCount != wantReceives || m.Attempt != wantAttempt {
			t.Errorf("receive %d, attempt %d, want %d and %d", m.ReceiveCount, m.Attempt, wantReceives, wantAttempt)
		}
		return m
	}
	receive(1, 1)
	receive(2, 2)
	if msgs := take(t, q, 1); len(msgs) != 0 {
		t.Fatalf("%+v, want it dead-lettered", msgs)
	}
	if m := one(t, b.Queue("dead")); m.ReceiveCount != 3 || m.Attempt != 1 {
		t.Errorf("in the dead-letter queue: receive %d, attempt %d, want 3 and 1", m.ReceiveCount, m.Attempt)
	}
	dead, err := b.Message(t.Context(), "dead", id)
	if err != nil || dead.DeadAt.IsZero() {
		t.Fatal(dead, err)
	}
	create(t, b, "graves", nil)
	create(t, b, "other", map[string]string{"RedrivePolicy": policy(b, "graves", 1)})
	for _, move := range []struct {
		from, to string
		dead     bool
	}{{"dead", "graves", true}, {"graves", "", false}} {
		if n, err := b.Move(t.Context(), move.from, move.to, []string{id}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		to := move.to
		if to == "" {
			to = "work"
		}
		if m, err := b.Message(t.Context(), to, id); err != nil || m.DeadAt.IsZero() == move.dead ||
			m.FirstReceivedAt.IsZero() == move.dead {
			t.Errorf("moved to %s: %+v, %v", to, m, err)
		}
	}
	b = reopen(t, b)
	q = b.Queue("work")
	if m := receive(4, 1); time.Since(m.FirstReceivedAt) > time.Minute || m.DeadLetterSource != b.ARN("work") {
		t.Errorf("after the redrive: %+v", m)
	}
	receive(5, 2)
	if msgs := take(t, q, 1); len(msgs) != 0 {
		t.Errorf("%+v, want it dead-lettered again", msgs)
	}
}

func policy(b *Broker, dead string, most int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, b.ARN(dead), most)
}
