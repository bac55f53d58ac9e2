package worker

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type redriven struct {
	*queuetest.Fake
	after int
}

func (q redriven) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	msgs, err := q.Fake.Receive(ctx, req)
	for i := range msgs {
		msgs[i].Attempt = msgs[i].ReceiveCount
		if msgs[i].ReceiveCount > q.after {
			msgs[i].Attempt -= q.after
		}
	}
	return msgs, err
}

func TestAttemptsAreCountedAnewAfterARedrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen, receives []int
		app := &testApp{handle: func(_ context.Context, m *queue.Message) queue.Result {
			mu.Lock()
			defer mu.Unlock()
			seen, receives = append(seen, m.Attempt), append(receives, m.ReceiveCount)
			if m.ReceiveCount == 2 {
				return queue.Result{Outcome: queue.Unreached, Reason: "connection refused"}
			}
			return queue.Result{Outcome: queue.Failed, Reason: "HTTP 500"}
		}}
		r := prepare(t, queuetest.NewFake(nil), app, nil)
		r.w = New(redriven{r.fake, 4}, app, &Options{VisibilityTimeout: time.Minute})
		r.run()
		r.send(1, "")
		after(7*time.Minute + time.Second)
		if want := []int{1, 2, 2, 3, 1, 2, 3}; len(seen) < len(want) || !slices.Equal(seen[:len(want)], want) {
			t.Errorf("attempts %v of receives %v, want %v", seen, receives, want)
		}
		r.stop()
	})
}
