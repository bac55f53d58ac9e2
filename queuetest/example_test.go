package queuetest_test

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func consume(ctx context.Context, q *queuetest.Fake) error {
	messages, err := q.Receive(ctx, queue.ReceiveRequest{Max: 1})
	if err != nil || len(messages) == 0 {
		return err
	}
	if errs := q.Delete(ctx, []string{messages[0].ReceiptHandle}); errs != nil {
		return errs[0]
	}
	return nil
}

func ExampleFake() {
	ctx := context.Background()
	q := queuetest.NewFake(&queuetest.FakeOptions{Visibility: time.Nanosecond})
	sent, err := q.Send(ctx, []queue.Outgoing{{Body: "resize 17"}})
	if err != nil {
		fmt.Println(err)
		return
	}

	q.Fail(queuetest.FakeDelete, queuetest.FakeFault{Err: queue.Errorf(queue.CodeUnreachable, "no answer")})
	fmt.Println("first:", consume(ctx, q))
	fmt.Println("second:", consume(ctx, q))

	m, _ := q.Message(sent[0].ID)
	fmt.Println(m.Place, "after", m.Receives, "receives")
	// Output:
	// first: no answer
	// second: <nil>
	// deleted after 2 receives
}
