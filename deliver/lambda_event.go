package deliver

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tendril/queue"
)

const (
	eventStart = `{"Records":[`
	eventEnd   = `]}`
)

// source is where messages come from, as the function is told: the part of a
// record that is the same in all, rendered once.
type source struct {
	tail string // from eventSource to the record's end
}

// parseSource reads the ARN of a queue.
func parseSource(arn string) (source, error) {
	parts := strings.Split(arn, ":")
	valid := len(parts) == 6 && parts[0] == "arn" && parts[2] == "sqs" && isFieldValue(arn)
	for _, part := range parts {
		valid = valid && part != ""
	}
	if !valid {
		return source{}, fmt.Errorf("queue ARN %q: write one such as arn:aws:sqs:us-east-1:123456789012:jobs", arn)
	}
	b := appendString([]byte(`,"eventSource":"aws:sqs","eventSourceARN":`), arn)
	b = appendString(append(b, `,"awsRegion":`...), parts[3])
	return source{tail: string(append(b, '}'))}, nil
}

// recordSize is about the size of m's record where nothing has to be escaped.
func recordSize(m *queue.Message) int {
	size := 900 + len(m.Body) + len(m.Body)/16 + len(m.ReceiptHandle)
	for i := range m.Attributes {
		size += 120 + len(m.Attributes[i].Name) + len(m.Attributes[i].Value)*3/2
	}
	return size
}

// appendRecord renders m as one record of an event.
func (s *source) appendRecord(b []byte, m *queue.Message) []byte {
	b = appendMember(b, `{"messageId":`, m.ID)
	b = appendMember(b, `,"receiptHandle":`, m.ReceiptHandle)
	b = appendMember(b, `,"body":`, m.Body)
	b = appendSystemAttributes(b, m)
	b = appendMessageAttributes(b, m.Attributes)
	b = appendSum(append(b, `,"md5OfBody":"`...), md5.Sum([]byte(m.Body)))
	if len(m.Attributes) > 0 {
		b = appendSum(append(b, `,"md5OfMessageAttributes":"`...), attributesSum(m.Attributes))
	}
	return append(b, s.tail...)
}

// appendMember renders a name, punctuation included, and a string.
func appendMember(b []byte, name, value string) []byte {
	return appendString(append(b, name...), value)
}

// appendSystemAttributes renders what the queue says about m. All values are
// strings; what m does not have is left out.
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

// appendMillis renders a time as milliseconds since 1970; nothing for the zero time.
func appendMillis(b []byte, name string, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	b = append(b, name...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	return append(b, '"')
}

// appendMessageAttributes renders the message's own attributes. The two lists of
// values are always there and always empty, as SQS never came to fill them.
func appendMessageAttributes(b []byte, attributes []queue.Attribute) []byte {
	b = append(b, `,"messageAttributes":{`...)
	for i := range attributes {
		a := &attributes[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, a.Name)
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

// attributesSum is the digest that SQS gives of attributes sorted by name: of each
// the name, the type, a byte for the kind of value, and the value, where all but
// that byte have their length before them.
func attributesSum(attributes []queue.Attribute) [md5.Size]byte {
	var b []byte
	sized := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for i := range attributes {
		a := &attributes[i]
		sized(a.Name)
		sized(a.Type)
		kind := byte(1)
		if a.IsBinary() {
			kind = 2
		}
		b = append(b, kind)
		sized(a.Value)
	}
	return md5.Sum(b)
}

// appendString renders s as a JSON string. It escapes what JSON demands and the two
// line ends that JavaScript has beyond it; bytes that are not UTF-8 become the
// replacement character, as in encoding/json.
func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			b = append(b, `\u`...)
			for shift := 12; shift >= 0; shift -= 4 {
				b = append(b, hexDigits[r>>shift&15])
			}
		} else {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
