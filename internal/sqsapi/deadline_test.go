package sqsapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestG13FIFOReceiptEndsWithItsVisibility(t *testing.T) {
	t.Parallel()
	tests := []struct{ action, json, query string }{
		{"DeleteMessage", `"ReceiptHandle":"%s"`, "ReceiptHandle=%s"},
		{"ChangeMessageVisibility", `"ReceiptHandle":"%s","VisibilityTimeout":60`, "ReceiptHandle=%s&VisibilityTimeout=60"},
		{"DeleteMessageBatch", `"Entries":[{"Id":"e","ReceiptHandle":"%s"}]`,
			"DeleteMessageBatchRequestEntry.1.Id=e&DeleteMessageBatchRequestEntry.1.ReceiptHandle=%s"},
		{"ChangeMessageVisibilityBatch", `"Entries":[{"Id":"e","ReceiptHandle":"%s","VisibilityTimeout":60}]`,
			"ChangeMessageVisibilityBatchRequestEntry.1.Id=e&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=%s&" +
				"ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=60"},
	}
	for _, test := range tests {
		act := map[string]func(h *Handler, name, handle string) string{
			"JSON": func(h *Handler, name, handle string) string {
				return call(h, test.action, fmt.Sprintf(`{"QueueUrl":"%s",`+test.json+`}`, name, handle)).Body.String()
			},
			"Query": func(h *Handler, name, handle string) string {
				form := "Action=" + test.action + "&QueueUrl=" + name + "&" + fmt.Sprintf(test.query, url.QueryEscape(handle))
				return query(t, h, "/", form).Body.String()
			},
		}
		for protocol, act := range act {
			t.Run(test.action+" over "+protocol, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					h := newHandler(t, nil)
					for i := range 40 {
						name, after := fmt.Sprintf("q%d.fifo", i), time.Second
						if i == 0 {
							after -= time.Millisecond
						}
						handle := receiveFIFO(t, h, name)
						time.Sleep(after)
						answer := act(h, name, handle)
						if got := strings.Contains(answer, "The receipt handle has expired"); got != (after == time.Second) {
							t.Fatalf("%v after a receive for a second: expired %v; %s", after, got, answer)
						}
					}
				})
			})
		}
	}
}

func receiveFIFO(t *testing.T, h *Handler, name string) (handle string) {
	t.Helper()
	mustCall(t, h, "CreateQueue", `{"QueueName":"`+name+`","Attributes":{"FifoQueue":"true"}}`)
	mustCall(t, h, "SendMessage", `{"QueueUrl":"`+name+`","MessageBody":"m","MessageGroupId":"g",
		"MessageDeduplicationId":"d"}`)
	var received struct {
		Messages []struct{ ReceiptHandle string }
	}
	answer := mustCall(t, h, "ReceiveMessage", `{"QueueUrl":"`+name+`","VisibilityTimeout":1}`)
	if err := json.Unmarshal([]byte(answer), &received); err != nil || len(received.Messages) != 1 {
		t.Fatalf("received %s, %v", answer, err)
	}
	return received.Messages[0].ReceiptHandle
}
