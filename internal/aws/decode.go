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

// Depth exceeds the five levels of SQS responses.
var answerLimits = sqswire.Limits{Depth: 64, Lenient: true}

type messageReader struct {
	json                   sqswire.Reader
	message                queue.Message // its strings share the response's memory
	bodySum, attributesSum string
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
			if part := damagedPart(m.Body, r.bodySum, m.Attributes, r.attributesSum); part != "" {
				corrupt(strings.Clone(m.ID), part)
				return
			}
			messages = append(messages, withOwnMemory(m))
		})
	})

	if err := r.json.Finish(); err != nil {
		return nil, err
	}

	return messages, nil
}

func (r *messageReader) readMessage() {
	m := &r.message
	*m = queue.Message{Attributes: m.Attributes[:0]}
	r.bodySum = ""
	r.attributesSum = ""
	r.json.Object(func(name string) {
		switch name {
		case "MessageId":
			m.ID = r.json.Text()
		case "ReceiptHandle":
			m.ReceiptHandle = r.json.Text()
		case "Body":
			m.Body = r.json.Text()
		case "MD5OfBody":
			r.bodySum = r.json.Text()
		case "MD5OfMessageAttributes":
			r.attributesSum = r.json.Text()
		case "Attributes":
			r.json.Object(r.readSystemAttribute)
		case "MessageAttributes":
			m.Attributes = m.Attributes[:0]
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
		m.ReceiveCount = int(r.integer())
	case "SentTimestamp":
		m.SentAt = r.milliseconds()
	case "ApproximateFirstReceiveTimestamp":
		m.FirstReceivedAt = r.milliseconds()
	case "SenderId":
		m.SenderID = r.json.Text()
	case "MessageGroupId":
		m.GroupID = r.json.Text()
	case "MessageDeduplicationId":
		m.DedupID = r.json.Text()
	case "SequenceNumber":
		m.SequenceNumber = r.json.Text()
	case "AWSTraceHeader":
		m.TraceHeader = r.json.Text()
	case "DeadLetterQueueSourceArn":
		m.DeadLetterSource = r.json.Text()
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
	r.setAttribute(a)
}

func (r *messageReader) setAttribute(a queue.Attribute) {
	m := &r.message
	i, found := slices.BinarySearchFunc(m.Attributes, a.Name,
		func(other queue.Attribute, name string) int { return strings.Compare(other.Name, name) })
	if found {
		m.Attributes[i] = a
		return
	}
	m.Attributes = slices.Insert(m.Attributes, i, a)
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

// withOwnMemory copies the strings into one allocation, except the ID, which outlives the message.
func withOwnMemory(m *queue.Message) queue.Message {
	size := len(m.ReceiptHandle) + len(m.Body) + len(m.SenderID) + len(m.GroupID) + len(m.DedupID) +
		len(m.SequenceNumber) + len(m.TraceHeader) + len(m.DeadLetterSource)
	for _, a := range m.Attributes {
		size += len(a.Name) + len(a.Type) + len(a.Value)
	}

	var memory strings.Builder
	memory.Grow(size)
	move := func(texts ...*string) {
		for _, text := range texts {
			start := memory.Len()
			memory.WriteString(*text)
			*text = memory.String()[start:]
		}
	}

	own := *m
	own.ID = strings.Clone(m.ID)
	own.Attributes = append([]queue.Attribute(nil), m.Attributes...) // nil if empty
	move(&own.Body, &own.ReceiptHandle, &own.SenderID, &own.GroupID, &own.DedupID, &own.SequenceNumber, &own.TraceHeader,
		&own.DeadLetterSource)
	for i := range own.Attributes {
		a := &own.Attributes[i]
		move(&a.Name, &a.Type, &a.Value)
	}
	return own
}

type entryResult struct {
	answered               bool
	sent                   queue.Sent
	bodySum, attributesSum string
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
			result.sent.ID = r.OwnText()
		case "SequenceNumber":
			result.sent.SequenceNumber = r.OwnText()
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

	storeResult(r, results, id, entryResult{answered: true, sent: queue.Sent{Err: entryError(code, message, senderFault)}})
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
