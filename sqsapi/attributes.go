package sqsapi

import (
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
	"tendril/sqswire"
)

// attributeValue is one message attribute on the wire. BinaryValue is base64
// in JSON.
type attributeValue struct {
	StringValue      *string
	BinaryValue      []byte
	DataType         string
	StringListValues []string
	BinaryListValues [][]byte
}

// messageAttributes turns the attributes of a send into the queue's form,
// sorted by name. The broker judges names, types and sizes; here is only
// what it cannot see, which field held the value.
func messageAttributes(wire map[string]attributeValue) ([]queue.Attribute, error) {
	if len(wire) == 0 {
		return nil, nil
	}
	attributes := make([]queue.Attribute, 0, len(wire))
	for name, value := range wire {
		a, err := value.attribute(name)
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, a)
	}
	slices.SortFunc(attributes, func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return attributes, nil
}

func (v attributeValue) attribute(name string) (queue.Attribute, error) {
	a := queue.Attribute{Name: name, Type: v.DataType}
	if len(v.StringListValues) > 0 || len(v.BinaryListValues) > 0 {
		return a, queue.Errorf(queue.CodeUnsupportedOperation,
			"Message attribute list values in SendMessage operation are not supported.")
	}
	field, other := "String", len(v.BinaryValue) > 0
	if a.IsBinary() {
		field, other = "Binary", v.StringValue != nil
		a.Value = string(v.BinaryValue)
	} else if v.StringValue != nil {
		a.Value = *v.StringValue
	}
	if other {
		return a, queue.Errorf(queue.CodeInvalidParameterValue,
			"The message attribute '%s' with type '%s' must use field '%s'.", name, v.DataType, field)
	}
	return a, nil
}

// traceAttribute is the one system attribute that a producer may set.
const traceAttribute = "AWSTraceHeader"

// maxTrace bounds the trace header, which counts towards no size limit of
// SQS. X-Ray's own is below 500 bytes.
const maxTrace = 2048

// traceHeader returns the AWSTraceHeader among the system attributes of a
// send, as a list of one or none for its digest.
func traceHeader(wire map[string]attributeValue) ([]queue.Attribute, error) {
	attributes, err := messageAttributes(wire)
	if err != nil {
		return nil, err
	}
	for _, a := range attributes {
		if a.Name != traceAttribute {
			return nil, queue.Errorf(queue.CodeInvalidParameterValue,
				"Message system attribute name '%s' is invalid.", a.Name)
		}
		if a.Type != "String" || a.Value == "" || len(a.Value) > maxTrace {
			return nil, queue.Errorf(queue.CodeInvalidParameterValue,
				"The message system attribute '%s' must be a non-empty String of at most %d bytes.", a.Name, maxTrace)
		}
	}
	return attributes, nil
}

// selectAttributes returns those of a message's attributes that a receive
// asked for: by exact name, by "prefix.*", or all of them by "All" or ".*".
func selectAttributes(attributes []queue.Attribute, names []string) []queue.Attribute {
	if len(attributes) == 0 || len(names) == 0 {
		return nil
	}
	if slices.Contains(names, "All") || slices.Contains(names, ".*") {
		return attributes
	}
	var selected []queue.Attribute
	for _, a := range attributes {
		if slices.ContainsFunc(names, func(name string) bool { return attributeMatches(a.Name, name) }) {
			selected = append(selected, a)
		}
	}
	return selected
}

func attributeMatches(name, pattern string) bool {
	if prefix, ok := strings.CutSuffix(pattern, ".*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return name == pattern
}

// bodyMD5 returns the MD5 digest of a message body in hexadecimal, which
// clients compare with their own. It guards against corruption, not against
// attackers.
func bodyMD5(body string) string { return string(appendBodyMD5(nil, body)) }

func appendBodyMD5(dst []byte, body string) []byte {
	sum := md5.Sum([]byte(body))
	return hex.AppendEncode(dst, sum[:])
}

// attributesMD5 returns the digest of attributes in hexadecimal, "" for none.
func attributesMD5(attributes []queue.Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	return string(appendAttributesMD5(nil, attributes))
}

func appendAttributesMD5(dst []byte, attributes []queue.Attribute) []byte {
	sum := sqswire.AttributesMD5(attributes)
	return hex.AppendEncode(dst, sum[:])
}

// systemSet is the set of system attributes that a receive asked for, one bit
// for each.
type systemSet uint16

// The system attributes, in the order in which they are written.
const (
	senderID systemSet = 1 << iota
	sentTimestamp
	receiveCount
	firstReceiveTimestamp
	sequenceNumber
	deduplicationID
	groupID
	traceHeaderValue
	deadLetterSource
	systemEnd
)

// systemNames is never written to.
var systemNames = map[string]systemSet{
	"All":                              systemEnd - 1,
	"SenderId":                         senderID,
	"SentTimestamp":                    sentTimestamp,
	"ApproximateReceiveCount":          receiveCount,
	"ApproximateFirstReceiveTimestamp": firstReceiveTimestamp,
	"SequenceNumber":                   sequenceNumber,
	"MessageDeduplicationId":           deduplicationID,
	"MessageGroupId":                   groupID,
	traceAttribute:                     traceHeaderValue,
	"DeadLetterQueueSourceArn":         deadLetterSource,
}

// systemSetOf unites the names of the old and the new request parameter.
// Names that SQS does not know are ignored, as it does itself.
func systemSetOf(lists ...[]string) systemSet {
	var set systemSet
	for _, names := range lists {
		for _, name := range names {
			set |= systemNames[name]
		}
	}
	return set
}

// pair is a system attribute with its value; numbers are text there, times
// are milliseconds since 1970.
type pair struct{ name, value string }

// of appends the attributes of the set that m has.
func (set systemSet) of(m *queue.Message, dst []pair) []pair {
	add := func(bit systemSet, name, value string) {
		if set&bit != 0 && value != "" {
			dst = append(dst, pair{name, value})
		}
	}
	add(senderID, "SenderId", m.SenderID)
	if set&sentTimestamp != 0 {
		add(sentTimestamp, "SentTimestamp", millis(m.SentAt))
	}
	if set&receiveCount != 0 {
		add(receiveCount, "ApproximateReceiveCount", strconv.Itoa(m.ReceiveCount))
	}
	if set&firstReceiveTimestamp != 0 {
		add(firstReceiveTimestamp, "ApproximateFirstReceiveTimestamp", millis(m.FirstReceivedAt))
	}
	add(sequenceNumber, "SequenceNumber", m.SequenceNumber)
	add(deduplicationID, "MessageDeduplicationId", m.DedupID)
	add(groupID, "MessageGroupId", m.GroupID)
	add(traceHeaderValue, traceAttribute, m.TraceHeader)
	add(deadLetterSource, "DeadLetterQueueSourceArn", m.DeadLetterSource)
	return dst
}

func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
