package console

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/queue"
)

func TestRedriveIsATaskThatCanBeCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		ctx := t.Context()
		policy := fmt.Sprintf(`{"deadLetterTargetArn":%q}`, b.ARN("dead"))
		for name, attrs := range map[string]map[string]string{"dead": nil, "jobs2": nil} {
			if err := b.CreateQueue(ctx, name, attrs, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.CreateQueue(ctx, "work", map[string]string{"RedrivePolicy": policy}, nil); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			if _, err := b.Queue("dead").Send(ctx, []queue.Outgoing{{Body: "x"}}); err != nil {
				t.Fatal(err)
			}
		}
		q := &queueRoutes{broker: b, environment: func() api.Status { return api.Status{} }}
		r := &call{ctx: ctx, name: "dead"}
		if _, err := q.redriveTask(r); !errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			t.Errorf("without a task: %v", err)
		}
		got, err := q.redrive(r, api.RedriveRequest{To: "jobs2", Rate: 10})
		if err != nil || got.Status != "RUNNING" || got.ToMove != 30 || got.Rate != 10 {
			t.Errorf("started: %+v, %v", got, err)
		}
		time.Sleep(time.Second)
		got, err = q.cancelRedrive(r)
		if err != nil || got.Status != "CANCELLED" || got.Moved < 9 || got.Moved > 12 {
			t.Errorf("cancelled: %+v, %v", got, err)
		}
		if _, err := q.redrive(r, api.RedriveRequest{To: "none"}); !errors.Is(err, queue.ErrNoQueue) || err.Error() != `queue "none" not found` {
			t.Errorf("to a queue that does not exist: %v", err)
		}
		r.name = "nothing"
		for name, redrive := range map[string]func() (api.MoveTask, error){
			"start":  func() (api.MoveTask, error) { return q.redrive(r, api.RedriveRequest{}) },
			"show":   func() (api.MoveTask, error) { return q.redriveTask(r) },
			"cancel": func() (api.MoveTask, error) { return q.cancelRedrive(r) },
		} {
			if _, err := redrive(); !errors.Is(err, queue.ErrNoQueue) || err.Error() != `queue "nothing" not found` {
				t.Errorf("%s from a queue that does not exist: %v", name, err)
			}
		}
	})
}
