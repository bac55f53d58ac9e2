package sqsapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

func newClient(t testing.TB) *sqs.Client {
	t.Helper()
	return clientOf(t, newServer(t, newHandler(t, nil)))
}

func clientOf(t testing.TB, url string) *sqs.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

func newQueue(t testing.TB, c *sqs.Client, name string, attributes map[string]string) *string {
	t.Helper()
	out, err := c.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return out.QueueUrl
}

func TestSDKSendReceiveDelete(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	url := newQueue(t, c, "jobs", nil)
	attributes := map[string]types.MessageAttributeValue{
		"text":   {DataType: aws.String("String"), StringValue: aws.String("Zürich \n 😀")},
		"number": {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
		"blob":   {DataType: aws.String("Binary.png"), BinaryValue: []byte{0, 255, 10}},
	}
	const body = "<a & \"b\">\t\u2028 😀 \\u0041"
	sent, err := c.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: aws.String(body), MessageAttributes: attributes,
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"),
				StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(sent.MD5OfMessageSystemAttributes); got != "5f48eef650c1d0207456969c85af2fdd" {
		t.Errorf("digest of the system attributes %q", got)
	}
	received, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("received %v, %v", received, err)
	}
	m := received.Messages[0]
	if aws.ToString(m.Body) != body || aws.ToString(m.MessageId) != aws.ToString(sent.MessageId) {
		t.Errorf("received %q (%s), want %q (%s)", aws.ToString(m.Body), aws.ToString(m.MessageId), body,
			aws.ToString(sent.MessageId))
	}
	if diff := cmp.Diff(attributes, m.MessageAttributes, cmp.AllowUnexported(types.MessageAttributeValue{})); diff != "" {
		t.Errorf("attributes (-sent +received):\n%s", diff)
	}
	if aws.ToString(m.MD5OfMessageAttributes) != aws.ToString(sent.MD5OfMessageAttributes) {
		t.Errorf("digest of the attributes %q at the receive, %q at the send", aws.ToString(m.MD5OfMessageAttributes),
			aws.ToString(sent.MD5OfMessageAttributes))
	}
	if m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["AWSTraceHeader"] == "" ||
		m.Attributes["SenderId"] == "" {
		t.Errorf("system attributes %v", m.Attributes)
	}
	if _, err := c.ChangeMessageVisibility(ctx,
		&sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 60}); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}); err != nil {
		t.Error(err)
	}
	if got := count(t, c, url); got != "0/0/0" {
		t.Errorf("after the delete the queue holds %s", got)
	}
}

func count(t *testing.T, c *sqs.Client, url *string) string {
	t.Helper()
	out, err := c.GetQueueAttributes(context.Background(),
		&sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	a := out.Attributes
	return a["ApproximateNumberOfMessages"] + "/" + a["ApproximateNumberOfMessagesNotVisible"] + "/" +
		a["ApproximateNumberOfMessagesDelayed"]
}

func TestSDKBatches(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	url := newQueue(t, c, "jobs", nil)
	sent, err := c.SendMessageBatch(ctx,
		&sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("a"), MessageBody: aws.String("one")},
			{Id: aws.String("b"), MessageBody: aws.String("two"), DelaySeconds: 901},
			{Id: aws.String("c"), MessageBody: aws.String("three"), DelaySeconds: 900},
			{Id: aws.String("d"), MessageBody: aws.String("four")},
		}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent.Successful) != 3 || len(sent.Failed) != 1 || aws.ToString(sent.Failed[0].Id) != "b" ||
		!sent.Failed[0].SenderFault {
		t.Errorf("sent %+v", sent)
	}
	if got := count(t, c, url); got != "2/0/1" {
		t.Errorf("the queue holds %s", got)
	}
	received, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10})
	if err != nil || len(received.Messages) != 2 {
		t.Fatalf("received %v, %v", received, err)
	}
	var changes []types.ChangeMessageVisibilityBatchRequestEntry
	deletes := []types.DeleteMessageBatchRequestEntry{{Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense")}}
	for i, m := range received.Messages {
		id := aws.String(string(rune('a' + i)))
		changes = append(changes,
			types.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 99})
		deletes = append(deletes, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
	}
	changed, err := c.ChangeMessageVisibilityBatch(ctx,
		&sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: changes})
	if err != nil || len(changed.Successful) != 2 || len(changed.Failed) != 0 {
		t.Errorf("changed %+v, %v", changed, err)
	}
	deleted, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: deletes})
	if err != nil || len(deleted.Successful) != 2 || len(deleted.Failed) != 1 ||
		aws.ToString(deleted.Failed[0].Code) != "ReceiptHandleIsInvalid" {
		t.Errorf("deleted %+v, %v", deleted, err)
	}
	if got := count(t, c, url); got != "0/0/1" {
		t.Errorf("at the end the queue holds %s", got)
	}
}

func TestSDKFIFO(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	url := newQueue(t, c, "steps.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	var last string
	for _, body := range []string{"1", "2", "2", "3"} {
		out, err := c.SendMessage(ctx,
			&sqs.SendMessageInput{QueueUrl: url, MessageBody: &body, MessageGroupId: aws.String("g")})
		if err != nil {
			t.Fatal(err)
		}
		if sequence := aws.ToString(out.SequenceNumber); sequence < last {
			t.Errorf("sequence number %s after %s", sequence, last)
		} else {
			last = sequence
		}
	}
	out, err := c.ReceiveMessage(ctx,
		&sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range out.Messages {
		got = append(got, aws.ToString(m.Body)+m.Attributes["MessageGroupId"])
	}
	if !slices.Equal(got, []string{"1g", "2g", "3g"}) {
		t.Errorf("received %v", got)
	}
}

func TestSDKQueueLife(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	dead := newQueue(t, c, "dead", nil)
	url := newQueue(t, c, "jobs", map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"3"}`,
	})
	if found, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")}); err != nil ||
		*found.QueueUrl != *url {
		t.Errorf("GetQueueUrl = %v, %v; want %s", found, err, *url)
	}
	var listed []string
	pages := sqs.NewListQueuesPaginator(c, &sqs.ListQueuesInput{MaxResults: aws.Int32(1)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page.QueueUrls...)
	}
	if !slices.Equal(listed, []string{*dead, *url}) {
		t.Errorf("listed %v", listed)
	}
	sources, err := c.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: dead})
	if err != nil || !slices.Equal(sources.QueueUrls, []string{*url}) {
		t.Errorf("sources %v, %v", sources, err)
	}
	if _, err := c.SetQueueAttributes(ctx,
		&sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"VisibilityTimeout": "7"}}); err != nil {
		t.Error(err)
	}
	got, err := c.GetQueueAttributes(ctx,
		&sqs.GetQueueAttributesInput{QueueUrl: url,
			AttributeNames: []types.QueueAttributeName{"VisibilityTimeout", "QueueArn"}})
	want := map[string]string{"VisibilityTimeout": "7", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:jobs"}
	if err != nil || !maps.Equal(got.Attributes, want) {
		t.Errorf("attributes %v, %v; want %v", got, err, want)
	}
	if _, err := c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: url}); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}); err != nil {
		t.Error(err)
	}
	_, err = c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")})
	if gone := new(types.QueueDoesNotExist); !errors.As(err, &gone) {
		t.Errorf("after DeleteQueue: %v", err)
	}
}

func TestSDKTags(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	out, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("jobs"), Tags: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.TagQueue(ctx,
		&sqs.TagQueueInput{QueueUrl: out.QueueUrl, Tags: map[string]string{"b": "2", "c": ""}}); err != nil {
		t.Error(err)
	}
	if _, err := c.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: out.QueueUrl, TagKeys: []string{"a"}}); err != nil {
		t.Error(err)
	}
	tags, err := c.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: out.QueueUrl})
	if want := map[string]string{"b": "2", "c": ""}; err != nil || !maps.Equal(tags.Tags, want) {
		t.Errorf("tags %v, %v; want %v", tags, err, want)
	}
}

func TestSDKErrors(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), newClient(t)
	url := newQueue(t, c, "jobs", nil)
	nothing := aws.String(strings.Replace(*url, "jobs", "nothing", 1))
	tests := []struct {
		name string
		call func() error
		want error
	}{
		{"no queue", func() error {
			_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: nothing, MessageBody: aws.String("x")})
			return err
		}, new(types.QueueDoesNotExist)},
		{"other attributes", func() error {
			_, err := c.CreateQueue(ctx,
				&sqs.CreateQueueInput{QueueName: aws.String("jobs"), Attributes: map[string]string{"DelaySeconds": "9"}})
			return err
		}, new(types.QueueNameExists)},
		{"bad handle", func() error {
			_, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: aws.String("x")})
			return err
		}, new(types.ReceiptHandleIsInvalid)},
		{"empty batch", func() error {
			_, err := c.SendMessageBatch(ctx,
				&sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{}})
			return err
		}, new(types.EmptyBatchRequest)},
		{"bad character", func() error {
			_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("\x01")})
			return err
		}, new(types.InvalidMessageContents)},
		{"unknown attribute", func() error {
			_, err := c.GetQueueAttributes(ctx,
				&sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"X"}})
			return err
		}, new(types.InvalidAttributeName)},
		{"bad address", func() error {
			_, err := c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: aws.String("http://localhost/jobs")})
			return err
		}, new(types.InvalidAddress)},
	}
	for _, test := range tests {
		err := test.call()
		if err == nil || !sameType(err, test.want) {
			t.Errorf("%s: %v, want a %T", test.name, err, test.want)
		}
	}
	var api smithy.APIError
	_, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 11})
	if !errors.As(err, &api) || api.ErrorCode() != "InvalidParameterValue" &&
		api.ErrorCode() != "InvalidParameterValueException" ||
		api.ErrorMessage() != "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, "+
			"if provided." {
		t.Errorf("eleven messages: %v", err)
	}
}

func sameType(err, want error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err) == reflect.TypeOf(want) {
			return true
		}
	}
	return false
}
