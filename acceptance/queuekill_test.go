package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/losscheck"
	"tendril/internal/testing/testpeer"
)

type sqsAttribute = types.QueueAttributeName

func TestKilledQueueLosesNoAcknowledgedSend(t *testing.T) {
	resume(t)
	kills, enough := testpeer.Size(50, 300), testpeer.Size(100_000, 300_000)
	if testing.Short() {
		kills, enough = 5, 5_000
	}
	dir := t.TempDir()
	var url atomic.Pointer[string]
	var address atomic.Pointer[string]
	serve := func(listen string) *process {
		p, started := start(t, "serve", "--data-dir", dir, "--listen", listen, "--console", "off", "--log-format", "json")
		address.Store(&started.Endpoint)
		return p
	}
	listen := "127.0.0.1:" + testpeer.FreePort(t) // an ephemeral port could become a client's while the queue is down
	p := serve(listen)
	queueURL := createQueue(t, client(*address.Load()), "jobs", nil)
	url.Store(&queueURL)

	producers, stop := startProducers(t, 8, *address.Load(), queueURL)
	per := enough / kills
	for k := range kills {
		goal := int64((k + 1) * per)
		for producers.acked.Load() < goal {
			producers.wait()
		}
		time.AfterFunc(rand.N(20*time.Millisecond), p.kill)
		<-p.exited
		p = serve(listen)
	}
	stop()

	got := drain(t, client(*address.Load()), queueURL)
	problems := producers.log.Check(got)
	acked := int(producers.acked.Load())
	report(t, "%d acknowledged sends over %d kills: lost or wrong %d; %d more were stored without an acknowledgement",
		acked, kills, len(problems), len(got)-acked)
	for _, problem := range problems {
		t.Error(problem)
	}
	if acked < enough {
		t.Errorf("only %d sends were acknowledged, the test wants %d", acked, enough)
	}
}

type producers struct {
	acked atomic.Int64
	news  chan struct{}
	log   losscheck.Log
}

func startProducers(t *testing.T, n int, endpoint, queueURL string) (*producers, func()) {
	ps := &producers{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { ps.produce(ctx, i, client(endpoint), queueURL) })
	}
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return ps, stop
}

func (ps *producers) produce(ctx context.Context, who int, c *sqs.Client, queueURL string) {
	for seq := 0; ctx.Err() == nil; seq++ {
		in := &sqs.SendMessageBatchInput{QueueUrl: &queueURL}
		for i := range 10 {
			in.Entries = append(in.Entries,
				types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)),
					MessageBody: aws.String(fmt.Sprintf("%d/%d/%d", who, seq, i))})
		}
		out, err := c.SendMessageBatch(ctx, in)
		if err != nil {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		for _, ok := range out.Successful {
			var i int
			fmt.Sscan(*ok.Id, &i)
			ps.log.Sent(*ok.MessageId + " " + *in.Entries[i].MessageBody)
		}
		ps.acked.Add(int64(len(out.Successful)))
		select {
		case ps.news <- struct{}{}:
		default:
		}
	}
}

func (ps *producers) wait() { <-ps.news }

func drain(t *testing.T, c *sqs.Client, queueURL string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for {
		out, err := c.ReceiveMessage(t.Context(),
			&sqs.ReceiveMessageInput{QueueUrl: &queueURL, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return got
		}
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &queueURL}
		for i, m := range out.Messages {
			got[*m.MessageId+" "+*m.Body]++
			in.Entries = append(in.Entries,
				types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if del, err := c.DeleteMessageBatch(t.Context(), in); err != nil || len(del.Failed) > 0 {
			t.Fatalf("deleting: %v, failed %v", err, del)
		}
	}
}
