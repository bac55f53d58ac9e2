package aws

import (
	"encoding/base64"
	"strconv"
	"time"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

// appendSeconds rounds up, so that a timeout is never too short.
func appendSeconds(dst []byte, member string, d *time.Duration) []byte {
	if d == nil {
		return dst
	}
	return strconv.AppendInt(append(dst, member...), int64((*d+time.Second-1)/time.Second), 10)
}

func appendText(dst []byte, member, text string) []byte {
	if text == "" {
		return dst
	}
	return sqswire.AppendString(append(dst, member...), text)
}

// appendReceive requests system attributes under both parameter names, because some servers support only one.
func appendReceive(dst []byte, url string, req queue.ReceiveRequest) []byte {
	dst = sqswire.AppendString(append(dst, `{"QueueUrl":`...), url)
	dst = append(dst, `,"MaxNumberOfMessages":`...)
	dst = strconv.AppendInt(dst, int64(req.Max), 10)
	dst = appendSeconds(dst, `,"WaitTimeSeconds":`, req.Wait)
	dst = appendSeconds(dst, `,"VisibilityTimeout":`, req.Visibility)
	dst = appendText(dst, `,"ReceiveRequestAttemptId":`, req.AttemptID)
	return append(dst, `,"AttributeNames":["All"],"MessageSystemAttributeNames":["All"],"MessageAttributeNames":["All"]}`...)
}

func appendBatch(dst []byte, url string, n int, entry func(dst []byte, i int) []byte) []byte {
	dst = sqswire.AppendString(append(dst, `{"QueueUrl":`...), url)
	dst = append(dst, `,"Entries":[`...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"Id":"`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, '"')
		dst = entry(dst, i)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func appendReceipt(dst []byte, receipt string) []byte {
	return sqswire.AppendString(append(dst, `,"ReceiptHandle":`...), receipt)
}

func appendChange(dst []byte, c *queue.VisibilityChange) []byte {
	return appendSeconds(appendReceipt(dst, c.ReceiptHandle), `,"VisibilityTimeout":`, &c.Visibility)
}

func appendOutgoing(dst []byte, m *queue.Outgoing) []byte {
	dst = sqswire.AppendString(append(dst, `,"MessageBody":`...), m.Body)
	dst = appendSeconds(dst, `,"DelaySeconds":`, m.Delay)
	dst = appendText(dst, `,"MessageGroupId":`, m.GroupID)
	dst = appendText(dst, `,"MessageDeduplicationId":`, m.DedupID)
	if m.TraceHeader != "" {
		dst = append(dst, `,"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":`...)
		dst = sqswire.AppendString(dst, m.TraceHeader)
		dst = append(dst, "}}"...)
	}

	if len(m.Attributes) == 0 {
		return dst
	}

	dst = append(dst, `,"MessageAttributes":{`...)
	for i, a := range m.Attributes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendAttribute(dst, a)
	}
	return append(dst, '}')
}

func appendAttribute(dst []byte, a queue.Attribute) []byte {
	dst = sqswire.AppendString(dst, a.Name)
	dst = append(dst, `:{"DataType":`...)
	dst = sqswire.AppendString(dst, a.Type)
	if a.IsBinary() {
		dst = append(dst, `,"BinaryValue":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(a.Value))
		return append(dst, `"}`...)
	}
	dst = append(dst, `,"StringValue":`...)
	dst = sqswire.AppendString(dst, a.Value)
	return append(dst, '}')
}
