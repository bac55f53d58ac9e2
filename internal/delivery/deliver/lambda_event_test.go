package deliver

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

const jobsARN = "arn:aws:sqs:us-east-2:123456789012:jobs"

func render(t testing.TB, ms ...*queue.Message) []byte {
	t.Helper()
	l, err := NewLambda(&function{}, jobsARN, nil)
	if err != nil {
		t.Fatal(err)
	}
	event, n := renderEvent(ms, l.source, l.maxEvent)
	if n != len(ms) {
		t.Fatalf("%d of %d messages in the event", n, len(ms))
	}
	return event
}

// The digests were computed by other programs.
func TestEvent(t *testing.T) {
	t.Parallel()
	m := message(queue.Attribute{Name: "image", Type: "Binary.png", Value: "\x00\xff"}, text("kind", "a<b>&\"c\""),
		queue.Attribute{Name: "n", Type: "Number", Value: "7"})
	m.Body, m.ReceiptHandle = "Test message.", "AQEB/+="
	m.GroupID, m.DedupID, m.SequenceNumber = "g", "d", "18849496460467696128"
	m.TraceHeader, m.DeadLetterSource = "Root=1-5759e988-bd862e3fe1be46a994272793",
		"arn:aws:sqs:us-east-2:123456789012:first"
	want := `{"Records":[{"messageId":"059f36b4-87a3-44ab-83d2-661975830a7d","receiptHandle":"AQEB/+=","body":"Test message.",` +
		`"attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1795176000999","ApproximateFirstReceiveTimestamp":"1795179601000",` +
		`"SenderId":"123456789012","SequenceNumber":"18849496460467696128","MessageGroupId":"g","MessageDeduplicationId":"d",` +
		`"AWSTraceHeader":"Root=1-5759e988-bd862e3fe1be46a994272793","DeadLetterQueueSourceArn":"arn:aws:sqs:us-east-2:123456789012:first"},` +
		`"messageAttributes":{"image":{"binaryValue":"AP8=","stringListValues":[],"binaryListValues":[],"dataType":"Binary.png"},` +
		`"kind":{"stringValue":"a<b>&\"c\"","stringListValues":[],"binaryListValues":[],"dataType":"String"},` +
		`"n":{"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number"}},` +
		`"md5OfBody":"e4e68fb7bd0e697a0ae8f1bb342846b3","md5OfMessageAttributes":"8159d5e2e5a2a6f007304441f541a173",` +
		`"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-2:123456789012:jobs","awsRegion":"us-east-2"}]}`
	if diff := cmp.Diff(want, string(render(t, m))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEventOfABareMessage(t *testing.T) {
	t.Parallel()
	got := string(render(t, &queue.Message{ID: "a", ReceiptHandle: "r", Body: "Test message.", ReceiveCount: 1},
		&queue.Message{ID: "b"}))
	record := func(id, handle, body, count, sum string) string {
		return `{"messageId":"` + id + `","receiptHandle":"` + handle + `","body":"` + body +
			`","attributes":{"ApproximateReceiveCount":"` + count +
			`"},"messageAttributes":{},"md5OfBody":"` + sum + `","eventSource":"aws:sqs","eventSourceARN":"` + jobsARN +
			`","awsRegion":"us-east-2"}`
	}
	want := `{"Records":[` + record("a", "r", "Test message.", "1", "e4e68fb7bd0e697a0ae8f1bb342846b3") + "," +
		record("b", "", "", "0", "d41d8cd98f00b204e9800998ecf8427e") + `]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAttributesSum(t *testing.T) {
	t.Parallel()
	sum := sqswire.AttributesMD5([]queue.Attribute{{Name: "timestamp", Type: "Number", Value: "1493147359900"}})
	if got := hex.EncodeToString(sum[:]); got != "235c5c510d26fb653d073faed50ae77c" {
		t.Errorf("got %s", got)
	}
}

var anyText = rapid.OneOf(rapid.String(),
	rapid.StringOf(rapid.RuneFrom([]rune("a\"\\/<>&\b\f\n\r\t\x00\x1f\x7f\u2028\u2029é漢😀\ufffd"))))

func drawMessage(t *rapid.T) *queue.Message {
	m := &queue.Message{
		ID: rapid.StringN(1, 40, -1).Draw(t, "id"), Body: anyText.Draw(t, "body"), ReceiptHandle: anyText.Draw(t, "handle"),
		ReceiveCount: rapid.IntRange(1, 1000).Draw(t, "count"), SenderID: anyText.Draw(t, "sender"),
		GroupID: anyText.Draw(t, "group"), DedupID: anyText.Draw(t, "dedup"),
		SequenceNumber: rapid.StringMatching(`\d{0,20}`).Draw(t, "sequence"),
		TraceHeader:    anyText.Draw(t, "trace"), DeadLetterSource: anyText.Draw(t, "source"),
	}
	if rapid.Bool().Draw(t, "has times") {
		m.SentAt = time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(t, "sent"))
		m.FirstReceivedAt = m.SentAt.Add(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "wait")))
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, -1), 0, 10, rapid.ID[string]).Draw(t, "names") {
		a := queue.Attribute{Name: name,
			Type: rapid.SampledFrom([]string{"String", "Number", "Number.int", "Binary", "Binary.png"}).Draw(t, "type")}
		if a.IsBinary() {
			a.Value = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		} else {
			a.Value = anyText.Draw(t, "value")
		}
		m.Attributes = append(m.Attributes, a)
	}
	return m
}

func record(m *queue.Message) events.SQSMessage {
	sum := md5.Sum([]byte(m.Body))
	r := events.SQSMessage{
		MessageId: m.ID, ReceiptHandle: m.ReceiptHandle, Body: m.Body, Md5OfBody: hex.EncodeToString(sum[:]),
		Attributes:        map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.ReceiveCount)},
		MessageAttributes: map[string]events.SQSMessageAttribute{},
		EventSource:       "aws:sqs", EventSourceARN: jobsARN, AWSRegion: "us-east-2",
	}
	for name, value := range map[string]string{
		"SenderId": m.SenderID, "MessageGroupId": m.GroupID, "MessageDeduplicationId": m.DedupID,
		"SequenceNumber": m.SequenceNumber,
		"AWSTraceHeader": m.TraceHeader, "DeadLetterQueueSourceArn": m.DeadLetterSource,
	} {
		if value != "" {
			r.Attributes[name] = value
		}
	}
	if !m.SentAt.IsZero() {
		r.Attributes["SentTimestamp"] = strconv.FormatInt(m.SentAt.UnixMilli(), 10)
		r.Attributes["ApproximateFirstReceiveTimestamp"] = strconv.FormatInt(m.FirstReceivedAt.UnixMilli(), 10)
	}
	for _, a := range m.Attributes {
		attribute := events.SQSMessageAttribute{StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: a.Type}
		if a.IsBinary() {
			attribute.BinaryValue = []byte(a.Value)
		} else {
			attribute.StringValue = &a.Value
		}
		r.MessageAttributes[a.Name] = attribute
	}
	if len(m.Attributes) > 0 {
		sum := sqswire.AttributesMD5(m.Attributes)
		r.Md5OfMessageAttributes = hex.EncodeToString(sum[:])
	}
	return r
}

func TestPublicTypeReadsEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var ms []*queue.Message
		var want events.SQSEvent
		for range rapid.IntRange(1, 3).Draw(rt, "messages") {
			m := drawMessage(rt)
			ms, want.Records = append(ms, m), append(want.Records, record(m))
		}
		event := render(t, ms...)
		var got events.SQSEvent
		d := json.NewDecoder(bytes.NewReader(event))
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			rt.Fatalf("%v in %s", err, event)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestQueueARNs(t *testing.T) {
	t.Parallel()
	for arn, valid := range map[string]bool{
		jobsARN: true, jobsARN + ".fifo": true, "arn:aws-cn:sqs:cn-north-1:123456789012:a": true,
		"": false, "jobs": false, "arn:aws:sns:us-east-2:123456789012:jobs": false, "arn:aws:sqs::123456789012:jobs": false,
		"arn:aws:sqs:us-east-2:123456789012:jobs:x": false, "arn:aws:sqs:us-east-2:123456789012:": false,
		"arn:aws:sqs:us\n:1:jobs": false,
	} {
		if _, err := NewLambda(&function{}, arn, nil); (err == nil) != valid {
			t.Errorf("%q: %v", arn, err)
		}
	}
}

func TestEstimateIsEnough(t *testing.T) {
	t.Parallel()
	m := message(text("a", "b"),
		queue.Attribute{Name: "c", Type: "Binary", Value: base64.StdEncoding.EncodeToString(make([]byte, 500))})
	m.GroupID, m.DedupID, m.SequenceNumber = "group", "dedup", "18849496460467696128"
	if event := render(t, m, m, m); cap(event) > 2*len(event)+2000 ||
		cap(event) < len(eventStart)+len(eventEnd)+3*recordSize(m) {
		t.Errorf("room for %d bytes was made, %d were needed", cap(event), len(event))
	}
}
