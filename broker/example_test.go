package broker_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"tendril/broker"
	"tendril/queue"
)

// Open a directory, create a queue, and process its messages.
func Example() {
	dir, err := os.MkdirTemp("", "queues")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := broker.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	ctx := context.Background()
	if err := b.CreateQueue(ctx, "jobs", nil, nil); err != nil {
		log.Fatal(err)
	}
	jobs := b.Queue("jobs")
	if _, err := jobs.Send(ctx, []queue.Outgoing{{Body: "resize 17"}, {Body: "resize 18"}}); err != nil {
		log.Fatal(err) // no message was accepted
	}

	wait := 20 * time.Second
	messages, err := jobs.Receive(ctx, queue.ReceiveRequest{Max: queue.MaxBatch, Wait: &wait})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		fmt.Println(m.Body, "received", m.ReceiveCount, "time")
		if errs := jobs.Delete(ctx, []string{m.ReceiptHandle}); errs != nil {
			log.Fatal(errs)
		}
	}

	ledger, err := b.Ledger("jobs")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent", ledger.Sent, "done", ledger.Done, "live", ledger.Live)
	// Output:
	// resize 17 received 1 time
	// resize 18 received 1 time
	// sent 2 done 2 live 0
}

// Messages that fail too often move to a dead-letter queue. Once the cause is fixed, move them back.
func ExampleBroker_Move() {
	dir, err := os.MkdirTemp("", "queues")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := broker.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	ctx := context.Background()
	if err := b.CreateQueue(ctx, "failed", nil, nil); err != nil {
		log.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, b.ARN("failed"))
	if err := b.CreateQueue(ctx, "jobs", map[string]string{"RedrivePolicy": policy, "VisibilityTimeout": "0"}, nil); err != nil {
		log.Fatal(err)
	}
	jobs := b.Queue("jobs")
	if _, err := jobs.Send(ctx, []queue.Outgoing{{Body: "poison"}}); err != nil {
		log.Fatal(err)
	}
	for range 2 { // the second receive moves the message to the dead-letter queue
		if _, err := jobs.Receive(ctx, queue.ReceiveRequest{Max: 1}); err != nil {
			log.Fatal(err)
		}
	}

	dead, _, err := b.Browse(ctx, "failed", broker.BrowseRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dead[0].Body, "was received", dead[0].ReceiveCount, "time")
	moved, err := b.Move(ctx, "failed", "", []string{dead[0].ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("moved back:", moved)
	// Output:
	// poison was received 1 time
	// moved back: 1
}
