package aws

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

const hard = "plain \"quoted\" \\ back\nnew\rret\ttab\x00\x1f\x7f é \u2028 😀 </script>"

func TestSecondsRoundUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0", 1: "1", time.Second: "1", 1500 * time.Millisecond: "2",
		queue.MaxVisibility: "43200"} {
		if got := string(appendSeconds(nil, "", &d)); got != want {
			t.Errorf("%s: %s s, want %s", d, got, want)
		}
	}
}

func TestRequestsEqualThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	wait, visibility, delay := 20*time.Second, 300*time.Second, 5*time.Second
	out := queue.Outgoing{Body: hard, Delay: &delay, GroupID: "g", DedupID: "d", TraceHeader: "Root=1",
		Attributes: []queue.Attribute{{Name: "s", Type: "String", Value: hard},
			{Name: "b", Type: "Binary", Value: "\x00\xff"}}}
	tests := []struct {
		name string
		ours func(q *Queue)
		sdks func(c *sqs.Client, url *string)
	}{
		{"receive", func(q *Queue) {
			_, _ = q.Receive(t.Context(), queue.ReceiveRequest{Max: 10, Wait: &wait, Visibility: &visibility, AttemptID: "a-1"})
		}, func(c *sqs.Client, url *string) {
			_, _ = c.ReceiveMessage(t.Context(),
				&sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
					VisibilityTimeout: 300, ReceiveRequestAttemptId: sdk.String("a-1"), MessageAttributeNames: []string{"All"},
					//lint:ignore SA1019 older servers know this name only, so we send both
					AttributeNames:              []types.QueueAttributeName{"All"},
					MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		}},
		{"delete", func(q *Queue) { q.Delete(t.Context(), []string{"r0", "r\"1"}) }, func(c *sqs.Client, url *string) {
			_, _ = c.DeleteMessageBatch(t.Context(),
				&sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
					{Id: sdk.String("0"), ReceiptHandle: sdk.String("r0")}, {Id: sdk.String("1"), ReceiptHandle: sdk.String("r\"1")}}})
		}},
		{"change", func(q *Queue) {
			q.ChangeVisibility(t.Context(), []queue.VisibilityChange{{ReceiptHandle: "r0", Visibility: time.Minute}})
		}, func(c *sqs.Client, url *string) {
			_, _ = c.ChangeMessageVisibilityBatch(t.Context(),
				&sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
					{Id: sdk.String("0"), ReceiptHandle: sdk.String("r0"), VisibilityTimeout: 60}}})
		}},
		{"send", func(q *Queue) { _, _ = q.Send(t.Context(), []queue.Outgoing{out}) }, func(c *sqs.Client, url *string) {
			_, _ = c.SendMessageBatch(t.Context(),
				&sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{{
					Id: sdk.String("0"), MessageBody: sdk.String(hard), DelaySeconds: 5, MessageGroupId: sdk.String("g"),
					MessageDeduplicationId: sdk.String("d"),
					MessageAttributes: map[string]types.MessageAttributeValue{
						"s": {DataType: sdk.String("String"), StringValue: sdk.String(hard)},
						"b": {DataType: sdk.String("Binary"), BinaryValue: []byte{0, 0xff}}},
					MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
						"AWSTraceHeader": {DataType: sdk.String("String"), StringValue: sdk.String("Root=1")}},
				}}})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var seen []*http.Request
			var bodies []any
			transport := roundTrip(func(r *http.Request) (*http.Response, error) {
				raw, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				var body any
				if err := json.Unmarshal(raw, &body); err != nil {
					t.Errorf("%s: %v", raw, err)
				}
				seen, bodies = append(seen, r), append(bodies, body)
				return reply(200, `{}`), nil
			})
			q := openCanned(t, transport, nil)
			test.ours(q)
			test.sdks(sqs.New(q.sqs.api.Options(), q.site.setEndpoint, func(o *sqs.Options) {
				o.HTTPClient = &http.Client{Transport: transport}
			}), &q.url)
			if len(seen) != 2 {
				t.Fatalf("%d requests, want ours and the SDK's", len(seen))
			}
			if diff := cmp.Diff(bodies[1], bodies[0]); diff != "" {
				t.Errorf("body, - SDK + ours:\n%s", diff)
			}
			if got, want := seen[0].URL.String(), seen[1].URL.String(); got != want {
				t.Errorf("URL %s, the SDK's is %s", got, want)
			}
			for _, name := range []string{"X-Amz-Target", "Content-Type", "X-Amzn-Query-Mode"} {
				if got, want := seen[0].Header.Get(name), seen[1].Header.Get(name); got != want {
					t.Errorf("%s is %q, the SDK's is %q", name, got, want)
				}
			}
		})
	}
}
