package aws

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

// received's strings share the response's memory; build copies them.
type received struct {
	id, receipt, body, bodySum, attributesSum     string
	attributes                                    []queue.Attribute
	sender, group, dedup, sequence, trace, source string
	receives                                      int64
	sentAt, firstReceivedAt                       time.Time
}

// SQS responses are five levels deep.
var answerLimits = sqswire.Limits{Depth: 64, Lenient: true}

type messageReader struct {
	json    sqswire.Reader
	message received
}

func readMessages(answer []byte, corrupt func(id, part string)) ([]queue.Message, error) {
	r := messageReader{json: sqswire.NewReader(string(answer), answerLimits)}
	var messages []queue.Message
	r.json.Object(func(name string) {
		if name != "Messages" {
			r.json.Skip()
			return
		}
		messages = make([]queue.Message, 0, queue.MaxBatch)
		r.json.List(func() {
			r.readMessage()
			if r.json.Failed() {
				return
			}
			m := &r.message
			if part := damagedPart(m.body, m.bodySum, m.attributes, m.attributesSum); part != "" {
				corrupt(strings.Clone(m.id), part)
				return
			}
			messages = append(messages, m.build())
		})
	})

	if err := r.json.Finish(); err != nil {
		return nil, err
	}

	return messages, nil
}

func (r *messageReader) readMessage() {
	m := &r.message
	*m = received{attributes: m.attributes[:0]}
	r.json.Object(func(name string) {
		switch name {
		case "MessageId":
			m.id = r.json.Text()
		case "ReceiptHandle":
			m.receipt = r.json.Text()
		case "Body":
			m.body = r.json.Text()
		case "MD5OfBody":
			m.bodySum = r.json.Text()
		case "MD5OfMessageAttributes":
			m.attributesSum = r.json.Text()
		case "Attributes":
			r.json.Object(r.readSystemAttribute)
		case "MessageAttributes":
			m.attributes = m.attributes[:0]
			r.json.Object(r.readAttribute)
		default:
			r.json.Skip()
		}
	})
}

func (r *messageReader) readSystemAttribute(name string) {
	m := &r.message
	switch name {
	case "ApproximateReceiveCount":
		m.receives = r.integer()
	case "SentTimestamp":
		m.sentAt = r.milliseconds()
	case "ApproximateFirstReceiveTimestamp":
		m.firstReceivedAt = r.milliseconds()
	case "SenderId":
		m.sender = r.json.Text()
	case "MessageGroupId":
		m.group = r.json.Text()
	case "MessageDeduplicationId":
		m.dedup = r.json.Text()
	case "SequenceNumber":
		m.sequence = r.json.Text()
	case "AWSTraceHeader":
		m.trace = r.json.Text()
	case "DeadLetterQueueSourceArn":
		m.source = r.json.Text()
	default:
		r.json.Skip()
	}
}

func (r *messageReader) readAttribute(name string) {
	a := queue.Attribute{Name: name}
	var text, encoded string
	r.json.Object(func(member string) {
		switch member {
		case "DataType":
			a.Type = r.json.Text()
		case "StringValue":
			text = r.json.Text()
		case "BinaryValue":
			encoded = r.json.Text()
		default:
			r.json.Skip()
		}
	})

	a.Value = text
	if a.IsBinary() {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			r.json.Reject("base64")
		}
		a.Value = string(raw)
	}
	r.message.setAttribute(a)
}

func (m *received) setAttribute(a queue.Attribute) {
	i, found := slices.BinarySearchFunc(m.attributes, a,
		func(x, y queue.Attribute) int { return strings.Compare(x.Name, y.Name) })
	if found {
		m.attributes[i] = a
		return
	}
	m.attributes = slices.Insert(m.attributes, i, a)
}

func (r *messageReader) integer() int64 {
	if r.json.Null() {
		return 0
	}
	n, err := strconv.ParseInt(r.json.Text(), 10, 64)
	if err != nil {
		r.json.Reject("a whole number")
	}
	return n
}

func (r *messageReader) milliseconds() time.Time {
	if n := r.integer(); n != 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

// The copies share one allocation, except the ID, which outlives the message.
func (m *received) build() queue.Message {
	size := len(m.receipt) + len(m.body) + len(m.sender) + len(m.group) + len(m.dedup) + len(m.sequence) + len(m.trace) +
		len(m.source)
	for _, a := range m.attributes {
		size += len(a.Name) + len(a.Type) + len(a.Value)
	}

	var memory strings.Builder
	memory.Grow(size)
	keep := func(s string) string {
		start := memory.Len()
		memory.WriteString(s)
		return memory.String()[start:]
	}
	out := queue.Message{
		ID: strings.Clone(m.id), Body: keep(m.body), ReceiptHandle: keep(m.receipt),
		ReceiveCount: int(m.receives), SentAt: m.sentAt, FirstReceivedAt: m.firstReceivedAt,
		SenderID: keep(m.sender), GroupID: keep(m.group), DedupID: keep(m.dedup), SequenceNumber: keep(m.sequence),
		TraceHeader: keep(m.trace), DeadLetterSource: keep(m.source),
	}
	if len(m.attributes) > 0 {
		out.Attributes = make([]queue.Attribute, len(m.attributes))
		for i, a := range m.attributes {
			out.Attributes[i] = queue.Attribute{Name: keep(a.Name), Type: keep(a.Type), Value: keep(a.Value)}
		}
	}
	return out
}

type entryResult struct {
	answered bool
	err      error

	id, sequence, bodySum, attributesSum string
}

func readBatch(answer []byte, n int) ([]entryResult, error) {
	r := sqswire.NewReader(string(answer), answerLimits)
	results := make([]entryResult, n)
	r.Object(func(name string) {
		switch name {
		case "Successful":
			r.List(func() { readSuccess(&r, results) })
		case "Failed":
			r.List(func() { readFailure(&r, results) })
		default:
			r.Skip()
		}
	})
	if err := r.Finish(); err != nil {
		return nil, err
	}
	return results, nil
}

func readSuccess(r *sqswire.Reader, results []entryResult) {
	result := entryResult{answered: true}
	var id string
	r.Object(func(name string) {
		switch name {
		case "Id":
			id = r.Text()
		case "MessageId":
			result.id = r.OwnText()
		case "SequenceNumber":
			result.sequence = r.OwnText()
		case "MD5OfMessageBody":
			result.bodySum = r.Text()
		case "MD5OfMessageAttributes":
			result.attributesSum = r.Text()
		default:
			r.Skip()
		}
	})

	storeResult(r, results, id, result)
}

func readFailure(r *sqswire.Reader, results []entryResult) {
	var id, code, message string
	var senderFault bool
	r.Object(func(name string) {
		switch name {
		case "Id":
			id = r.Text()
		case "Code":
			code = r.OwnText()
		case "Message":
			message = r.OwnText()
		case "SenderFault":
			senderFault = readFlag(r)
		default:
			r.Skip()
		}
	})

	storeResult(r, results, id, entryResult{answered: true, err: entryError(code, message, senderFault)})
}

// readFlag also accepts strings, because some servers encode booleans as strings.
func readFlag(r *sqswire.Reader) bool {
	if r.Peek() != '"' {
		return r.Bool()
	}
	value, err := strconv.ParseBool(r.Text())
	if err != nil {
		r.Reject("true or false")
	}
	return value
}

func storeResult(r *sqswire.Reader, results []entryResult, id string, result entryResult) {
	if r.Failed() {
		return
	}
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(results) {
		r.Reject("an entry of the request")
		return
	}
	results[i] = result
}

func damagedPart(body, bodySum string, attributes []queue.Attribute, attributesSum string) string {
	if bodySum != "" && !isDigest(sqswire.BodyMD5(body), bodySum) {
		return "body"
	}
	if attributesSum != "" && !isDigest(sqswire.AttributesMD5(attributes), attributesSum) {
		return "attributes"
	}
	return ""
}

func isDigest(sum [md5.Size]byte, text string) bool {
	var digits [2 * md5.Size]byte
	hex.Encode(digits[:], sum[:])
	return bytes.EqualFold(digits[:], []byte(text))
}
