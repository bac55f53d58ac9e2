package aws

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

// attribute is a message attribute as it lies in the buffer.
type attribute struct {
	name, typ, value []byte
	binary           bool
}

// received is one message as it lies in the buffer of an answer.
type received struct {
	id, receipt, body, bodySum, attributesSum []byte
	attributes                                []attribute
	sender, group, dedup, sequence, trace     []byte
	source                                    []byte
	receives                                  int64
	sentAt, firstReceivedAt                   time.Time
}

// messageReader turns answers of ReceiveMessage into messages. It can be used
// again for the next answer.
type messageReader struct {
	scanner
	message received
	checker *checker
	corrupt func(id, part string)
}

// read decodes buf, which it overwrites. Messages whose checksums do not match
// are reported to corrupt and left out.
func (r *messageReader) read(buf []byte, corrupt func(id, part string)) ([]queue.Message, error) {
	r.scanner = scanner{buf: buf}
	r.corrupt = corrupt
	var messages []queue.Message
	r.object(func(name []byte) {
		if string(name) != "Messages" {
			r.skip()
			return
		}
		messages = make([]queue.Message, 0, queue.MaxBatch)
		r.array(func() {
			r.readMessage()
			if r.err == nil && r.whole() {
				messages = append(messages, r.message.build())
			}
		})
	})
	if err := r.finish(); err != nil {
		return nil, err
	}
	return messages, nil
}

func (r *messageReader) readMessage() {
	m := &r.message
	*m = received{attributes: m.attributes[:0]}
	r.object(func(name []byte) {
		switch string(name) {
		case "MessageId":
			m.id = r.readText()
		case "ReceiptHandle":
			m.receipt = r.readText()
		case "Body":
			m.body = r.readText()
		case "MD5OfBody":
			m.bodySum = r.readText()
		case "MD5OfMessageAttributes":
			m.attributesSum = r.readText()
		case "Attributes":
			r.object(r.readSystemAttribute)
		case "MessageAttributes":
			m.attributes = m.attributes[:0]
			r.object(r.readAttribute)
		default:
			r.skip()
		}
	})
}

func (r *messageReader) readSystemAttribute(name []byte) {
	m := &r.message
	switch string(name) {
	case "ApproximateReceiveCount":
		m.receives = r.integer()
	case "SentTimestamp":
		m.sentAt = r.milliseconds()
	case "ApproximateFirstReceiveTimestamp":
		m.firstReceivedAt = r.milliseconds()
	case "SenderId":
		m.sender = r.readText()
	case "MessageGroupId":
		m.group = r.readText()
	case "MessageDeduplicationId":
		m.dedup = r.readText()
	case "SequenceNumber":
		m.sequence = r.readText()
	case "AWSTraceHeader":
		m.trace = r.readText()
	case "DeadLetterQueueSourceArn":
		m.source = r.readText()
	default:
		r.skip()
	}
}

// readAttribute reads the value of the attribute called name and puts it where
// it belongs in the order of names.
func (r *messageReader) readAttribute(name []byte) {
	a := attribute{name: name}
	var text, raw []byte
	r.object(func(member []byte) {
		switch string(member) {
		case "DataType":
			a.typ = r.readText()
		case "StringValue":
			text = r.readText()
		case "BinaryValue":
			raw = r.readText()
		default:
			r.skip()
		}
	})
	a.value = text
	if a.binary = (queue.Attribute{Type: string(a.typ)}).IsBinary(); a.binary {
		a.value = r.decodeBase64(raw)
	}
	at, twice := slices.BinarySearchFunc(r.message.attributes, a, func(x, y attribute) int {
		return bytes.Compare(x.name, y.name)
	})
	if twice {
		r.message.attributes[at] = a
		return
	}
	r.message.attributes = slices.Insert(r.message.attributes, at, a)
}

func (r *messageReader) decodeBase64(text []byte) []byte {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("before byte %d of the answer: a binary value is not base64", r.pos)
	}
	return raw
}

// integer consumes a string that holds a whole number.
func (r *messageReader) integer() int64 {
	text := r.readText()
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("before byte %d of the answer: expected a whole number", r.pos)
	}
	return n
}

// milliseconds consumes a string that holds a time in milliseconds since 1970.
func (r *messageReader) milliseconds() time.Time {
	if n := r.integer(); n != 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

// whole checks the message just read against its checksums.
func (r *messageReader) whole() bool {
	m := &r.message
	part := ""
	if !r.checker.matchesBody(m.body, m.bodySum) {
		part = "body"
	} else if !r.checker.matchesAttributes(m.attributes, m.attributesSum) {
		part = "attributes"
	}
	if part != "" {
		r.corrupt(string(m.id), part)
	}
	return part == ""
}

// build copies the message out of the buffer: one piece of memory for all of its texts, so that a message which stays
// for long holds on to nothing else. The id has its own: it is remembered when the message is long done.
func (m *received) build() queue.Message {
	fields := [...][]byte{m.receipt, m.body, m.sender, m.group, m.dedup, m.sequence, m.trace, m.source}
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	for _, a := range m.attributes {
		size += len(a.name) + len(a.typ) + len(a.value)
	}
	var memory strings.Builder
	memory.Grow(size)
	keep := func(b []byte) string {
		start := memory.Len()
		memory.Write(b)
		return memory.String()[start:]
	}
	out := queue.Message{
		ID: string(m.id), Body: keep(m.body), ReceiptHandle: keep(m.receipt),
		ReceiveCount: int(m.receives), SentAt: m.sentAt, FirstReceivedAt: m.firstReceivedAt,
		SenderID: keep(m.sender), GroupID: keep(m.group), DedupID: keep(m.dedup), SequenceNumber: keep(m.sequence),
		TraceHeader: keep(m.trace), DeadLetterSource: keep(m.source),
	}
	if len(m.attributes) > 0 {
		out.Attributes = make([]queue.Attribute, len(m.attributes))
		for i, a := range m.attributes {
			out.Attributes[i] = queue.Attribute{Name: keep(a.name), Type: keep(a.typ), Value: keep(a.value)}
		}
	}
	return out
}

// entryResult is what a batch answer says of one entry.
type entryResult struct {
	answered bool
	err      error

	id, sequence, bodySum, attributesSum string
}

// readBatch decodes the answer to a batch of n entries whose ids are 0 to n-1.
func readBatch(buf []byte, n int) ([]entryResult, error) {
	s := scanner{buf: buf}
	results := make([]entryResult, n)
	s.object(func(name []byte) {
		switch string(name) {
		case "Successful":
			s.array(func() { readSuccess(&s, results) })
		case "Failed":
			s.array(func() { readFailure(&s, results) })
		default:
			s.skip()
		}
	})
	return results, s.finish()
}

func readSuccess(s *scanner, results []entryResult) {
	r := entryResult{answered: true}
	var id []byte
	s.object(func(name []byte) {
		switch string(name) {
		case "Id":
			id = s.readText()
		case "MessageId":
			r.id = string(s.readText())
		case "SequenceNumber":
			r.sequence = string(s.readText())
		case "MD5OfMessageBody":
			r.bodySum = string(s.readText())
		case "MD5OfMessageAttributes":
			r.attributesSum = string(s.readText())
		default:
			s.skip()
		}
	})
	s.place(results, id, r)
}

func readFailure(s *scanner, results []entryResult) {
	var id, code, message []byte
	var theirs = true
	s.object(func(name []byte) {
		switch string(name) {
		case "Id":
			id = s.readText()
		case "Code":
			code = s.readText()
		case "Message":
			message = s.readText()
		case "SenderFault":
			theirs = !s.flag()
		default:
			s.skip()
		}
	})
	s.place(results, id, entryResult{answered: true, err: entryError(string(code), string(message), theirs)})
}

// place puts r where the entry called id belongs.
func (s *scanner) place(results []entryResult, id []byte, r entryResult) {
	if s.err != nil {
		return
	}
	i, err := strconv.Atoi(string(id))
	if err != nil || i < 0 || i >= len(results) {
		s.err = fmt.Errorf("before byte %d of the answer: an entry that was not asked for", s.pos)
		return
	}
	results[i] = r
}

// SQS answers every send and every receive with MD5 digests of what it holds.
// They tell a damaged message from a whole one; they protect against accident
// only, not against people.

// checker computes digests into memory it keeps.
type checker struct {
	hash hash.Hash
	buf  []byte
	sum  [md5.Size]byte
	text [2 * md5.Size]byte
}

func newChecker() *checker { return &checker{hash: md5.New()} }

// body reports whether want is the digest of body. No digest is no objection.
func (c *checker) matchesBody(body, want []byte) bool {
	if len(want) == 0 {
		return true
	}
	c.hash.Reset()
	c.hash.Write(body)
	return c.matches(want)
}

// attributes reports whether want is the digest of attrs, which must be sorted
// by name.
func (c *checker) matchesAttributes(attrs []attribute, want []byte) bool {
	if len(want) == 0 {
		return true
	}
	c.buf = c.buf[:0]
	for _, a := range attrs {
		c.buf = sqswire.AppendAttribute(c.buf, a.name, a.typ, a.value, a.binary)
	}
	c.hash.Reset()
	c.hash.Write(c.buf)
	return c.matches(want)
}

func (c *checker) matches(want []byte) bool {
	hex.Encode(c.text[:], c.hash.Sum(c.sum[:0]))
	return bytes.EqualFold(c.text[:], want)
}

// sent returns the part of m, "body" or "attributes", that does not match the
// digests in the answer; "" when all is well.
func (c *checker) damagedPart(m *queue.Outgoing, r *entryResult) string {
	if !c.matchesBody([]byte(m.Body), []byte(r.bodySum)) {
		return "body"
	}
	if r.attributesSum == "" {
		return ""
	}
	attrs := make([]attribute, len(m.Attributes))
	for i, a := range m.Attributes {
		attrs[i] = attribute{name: []byte(a.Name), typ: []byte(a.Type), value: []byte(a.Value), binary: a.IsBinary()}
	}
	slices.SortFunc(attrs, func(x, y attribute) int { return bytes.Compare(x.name, y.name) })
	if !c.matchesAttributes(attrs, []byte(r.attributesSum)) {
		return "attributes"
	}
	return ""
}
