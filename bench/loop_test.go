package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// consumeWithSDK is a typical hand-written consumer. For every ten connections, a loop receives ten messages, posts
// them concurrently, and deletes them in one call.
func consumeWithSDK(queue, url string, connections int) error {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return err
	}
	queues := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.HTTPClient = wholeBodies{http.DefaultClient} })
	app := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	failed := make(chan error)
	for range (connections + 9) / 10 {
		go func() {
			for {
				if err := consumeTen(queues, app, queue, url); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// wholeBodies sends copies of request bodies. The SDK closes its own body when the response starts; if net/http is
// still writing it, net/http drops the response, and ten messages stay invisible.
type wholeBodies struct{ client *http.Client }

func (c wholeBodies) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.client.Do(r)
}

func consumeTen(queues *sqs.Client, app *http.Client, queue, url string) error {
	received, err := queues.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &queue,
		MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil || len(received.Messages) == 0 {
		return err
	}
	var (
		mu   sync.Mutex
		done []types.DeleteMessageBatchRequestEntry
		work sync.WaitGroup
	)
	for i, m := range received.Messages {
		work.Go(func() {
			answer, err := app.Post(url, "application/json", strings.NewReader(*m.Body))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				done = append(done,
					types.DeleteMessageBatchRequestEntry{Id: sdk.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
		})
	}
	work.Wait()
	if len(done) == 0 {
		return nil
	}
	_, err = queues.DeleteMessageBatch(context.Background(),
		&sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: done})
	return err
}
