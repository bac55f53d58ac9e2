package deliver

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

const (
	eventStart = `{"Records":[`
	eventEnd   = `]}`
)

// recordEnd returns the end of each record, which is the same for all messages of a queue.
func recordEnd(arn string) (string, error) {
	parts := strings.Split(arn, ":")
	valid := len(parts) == 6 && parts[0] == "arn" && parts[2] == "sqs" && isFieldValue(arn)
	for _, part := range parts {
		valid = valid && part != ""
	}
	if !valid {
		return "", fmt.Errorf("invalid queue ARN %q: use one such as arn:aws:sqs:us-east-1:123456789012:jobs", arn)
	}
	b := sqswire.AppendString([]byte(`,"eventSource":"aws:sqs","eventSourceARN":`), arn)
	b = sqswire.AppendString(append(b, `,"awsRegion":`...), parts[3])
	return string(append(b, '}')), nil
}

// renderEvent returns an event with as many messages as fit, and their number. If that is 0, the event has only the
// first message, which is too large.
func renderEvent(part []*queue.Message, end string, maxBytes int) (event []byte, n int) {
	size := len(eventStart) + len(eventEnd)
	for _, m := range part {
		size += recordSize(m)
	}

	event = append(make([]byte, 0, min(size, maxBytes)), eventStart...)
	for n, m := range part {
		before := len(event)
		if n > 0 {
			event = append(event, ',')
		}
		event = appendRecord(event, m, end)
		if len(event)+len(eventEnd) <= maxBytes {
			continue
		}

		if n > 0 {
			event = event[:before] // the message starts the next event
		}
		return append(event, eventEnd...), n
	}
	return append(event, eventEnd...), len(part)
}

func recordSize(m *queue.Message) int {
	size := 900 + len(m.Body) + len(m.Body)/16 + len(m.ReceiptHandle)
	for i := range m.Attributes {
		size += 120 + len(m.Attributes[i].Name) + len(m.Attributes[i].Value)*3/2
	}
	return size
}

func appendRecord(b []byte, m *queue.Message, end string) []byte {
	b = appendMember(b, `{"messageId":`, m.ID)
	b = appendMember(b, `,"receiptHandle":`, m.ReceiptHandle)
	b = appendMember(b, `,"body":`, m.Body)
	b = appendSystemAttributes(b, m)
	b = appendMessageAttributes(b, m.Attributes)
	b = appendSum(append(b, `,"md5OfBody":"`...), md5.Sum([]byte(m.Body)))
	if len(m.Attributes) > 0 {
		b = appendSum(append(b, `,"md5OfMessageAttributes":"`...), sqswire.AttributesMD5(m.Attributes))
	}
	return append(b, end...)
}

func appendMember(b []byte, name, value string) []byte {
	return sqswire.AppendString(append(b, name...), value)
}

func appendSystemAttributes(b []byte, m *queue.Message) []byte {
	b = append(b, `,"attributes":{"ApproximateReceiveCount":"`...)
	b = strconv.AppendInt(b, int64(m.ReceiveCount), 10)
	b = append(b, '"')
	b = appendMillis(b, `,"SentTimestamp":"`, m.SentAt)
	b = appendMillis(b, `,"ApproximateFirstReceiveTimestamp":"`, m.FirstReceivedAt)
	for _, a := range [...]struct{ name, value string }{
		{`,"SenderId":`, m.SenderID},
		{`,"SequenceNumber":`, m.SequenceNumber},
		{`,"MessageGroupId":`, m.GroupID},
		{`,"MessageDeduplicationId":`, m.DedupID},
		{`,"AWSTraceHeader":`, m.TraceHeader},
		{`,"DeadLetterQueueSourceArn":`, m.DeadLetterSource},
	} {
		if a.value != "" {
			b = appendMember(b, a.name, a.value)
		}
	}

	return append(b, '}')
}

func appendMillis(b []byte, name string, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	b = append(b, name...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	return append(b, '"')
}

// Lambda's format includes stringListValues and binaryListValues, which SQS does not use.
func appendMessageAttributes(b []byte, attributes []queue.Attribute) []byte {
	b = append(b, `,"messageAttributes":{`...)
	for i := range attributes {
		a := &attributes[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = sqswire.AppendString(b, a.Name)
		if a.IsBinary() {
			b = append(b, `:{"binaryValue":"`...)
			b = base64.StdEncoding.AppendEncode(b, []byte(a.Value))
			b = append(b, '"')
		} else {
			b = appendMember(b, `:{"stringValue":`, a.Value)
		}
		b = appendMember(b, `,"stringListValues":[],"binaryListValues":[],"dataType":`, a.Type)
		b = append(b, '}')
	}

	return append(b, '}')
}

func appendSum(b []byte, sum [md5.Size]byte) []byte {
	return append(hex.AppendEncode(b, sum[:]), '"')
}
