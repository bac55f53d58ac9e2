package aws

import (
	"encoding/base64"
	"strconv"
	"time"

	"tendril/queue"
)

// appendText appends s as a JSON string. s must be valid UTF-8.
func appendText(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// seconds rounds up: what is asked to last d must not last shorter.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// appendReceive appends the body of a ReceiveMessage request. Both the old and
// the new name of the system attributes' list are sent, so that servers which
// know only one answer in full.
func appendReceive(dst []byte, url string, req queue.ReceiveRequest) []byte {
	dst = appendText(append(dst, `{"QueueUrl":`...), url)
	dst = append(dst, `,"MaxNumberOfMessages":`...)
	dst = strconv.AppendInt(dst, int64(req.Max), 10)
	if req.Wait != nil {
		dst = append(dst, `,"WaitTimeSeconds":`...)
		dst = strconv.AppendInt(dst, seconds(*req.Wait), 10)
	}
	if req.Visibility != nil {
		dst = append(dst, `,"VisibilityTimeout":`...)
		dst = strconv.AppendInt(dst, seconds(*req.Visibility), 10)
	}
	if req.AttemptID != "" {
		dst = appendText(append(dst, `,"ReceiveRequestAttemptId":`...), req.AttemptID)
	}
	return append(dst, `,"AttributeNames":["All"],"MessageSystemAttributeNames":["All"],"MessageAttributeNames":["All"]}`...)
}

// appendBatch appends the body of a batch request with n entries, numbered
// from 0; entry appends the members that follow the id.
func appendBatch(dst []byte, url string, n int, entry func(dst []byte, i int) []byte) []byte {
	dst = appendText(append(dst, `{"QueueUrl":`...), url)
	dst = append(dst, `,"Entries":[`...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"Id":"`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(entry(append(dst, '"'), i), '}')
	}
	return append(dst, "]}"...)
}

// appendReceipt appends the receipt handle of a batch entry.
func appendReceipt(dst []byte, receipt string) []byte {
	return appendText(append(dst, `,"ReceiptHandle":`...), receipt)
}

// appendChange appends a receipt handle and its new visibility timeout.
func appendChange(dst []byte, c queue.VisibilityChange) []byte {
	dst = append(appendReceipt(dst, c.ReceiptHandle), `,"VisibilityTimeout":`...)
	return strconv.AppendInt(dst, seconds(c.Visibility), 10)
}

// appendOutgoing appends a message to send. Empty optional parts are left out.
func appendOutgoing(dst []byte, m *queue.Outgoing) []byte {
	dst = appendText(append(dst, `,"MessageBody":`...), m.Body)
	if m.Delay != nil {
		dst = append(dst, `,"DelaySeconds":`...)
		dst = strconv.AppendInt(dst, seconds(*m.Delay), 10)
	}
	if m.GroupID != "" {
		dst = appendText(append(dst, `,"MessageGroupId":`...), m.GroupID)
	}
	if m.DedupID != "" {
		dst = appendText(append(dst, `,"MessageDeduplicationId":`...), m.DedupID)
	}
	if m.TraceHeader != "" {
		dst = append(dst, `,"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":`...)
		dst = append(appendText(dst, m.TraceHeader), "}}"...)
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
	dst = append(appendText(dst, a.Name), `:{"DataType":`...)
	dst = appendText(dst, a.Type)
	if a.IsBinary() {
		dst = append(dst, `,"BinaryValue":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(a.Value))
		return append(dst, `"}`...)
	}
	dst = append(dst, `,"StringValue":`...)
	return append(appendText(dst, a.Value), '}')
}
