package console

import (
	"errors"
	"net/http"
	"testing"

	"tendril/api"
	"tendril/queue"
)

func TestReceivingThroughTheConsole(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx := t.Context()
	c := dial(t, &Options{Broker: b})
	if _, err := c.Send(ctx, "jobs", []queue.Outgoing{{Body: "a"}, {Body: "b"}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Receive(ctx, "jobs", api.ReceiveRequest{Max: 10})
	if err != nil || len(got) != 2 || got[0].Body != "a" || got[0].ReceiveCount != 1 || got[0].ReceiptHandle == "" {
		t.Fatalf("Receive = %+v, %v", got, err)
	}
	if again, err := c.Receive(ctx, "jobs", api.ReceiveRequest{}); err != nil || len(again) != 0 {
		t.Errorf("what is hidden was received again: %+v, %v", again, err)
	}
	if n, err := c.Acknowledge(ctx, "jobs", []string{got[0].ReceiptHandle}); n != 1 || err != nil {
		t.Errorf("Acknowledge = %d, %v", n, err)
	}
	if l := b.TotalLedger(); l.Done != 1 || l.Live != 1 {
		t.Errorf("ledger %+v", l)
	}
	var refusal *api.Error
	if _, err := c.Acknowledge(ctx, "jobs", []string{"no handle"}); !errors.As(err, &refusal) {
		t.Errorf("a wrong handle: %v", err)
	}
	long := 43_201
	for _, wrong := range []api.ReceiveRequest{{Max: 11}, {Max: -1}, {WaitSeconds: 21}, {VisibilitySeconds: &long}} {
		_, err := c.Receive(ctx, "jobs", wrong)
		if !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest || refusal.Hint == "" {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if _, err := c.Receive(ctx, "nothing", api.ReceiveRequest{}); !errors.Is(err, queue.ErrNoQueue) &&
		(!errors.As(err, &refusal) || refusal.Status != http.StatusNotFound) {
		t.Errorf("a queue that is not there: %v", err)
	}
}
