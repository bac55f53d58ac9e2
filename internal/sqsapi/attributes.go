package sqsapi

import (
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

type messageAttribute struct {
	name             string
	StringValue      *string
	BinaryValue      []byte
	DataType         string
	StringListValues []string `query:"StringListValue"`
	BinaryListValues [][]byte `query:"BinaryListValue"`
}

// attributeList is sorted by name. In JSON, it is an object.
type attributeList []messageAttribute

// sort keeps only the last of several attributes with the same name.
func (l *attributeList) sort() {
	slices.SortStableFunc(*l, func(a, b messageAttribute) int { return strings.Compare(a.name, b.name) })
	distinct := (*l)[:0]
	for i, a := range *l {
		if i+1 == len(*l) || (*l)[i+1].name != a.name {
			distinct = append(distinct, a)
		}
	}
	*l = distinct
}

// MarshalJSONTo is for the registry's client.
func (l attributeList) MarshalJSONTo(to *jsontext.Encoder) error {
	object := make(map[string]*messageAttribute, len(l))
	for i := range l {
		object[l[i].name] = &l[i]
	}
	return json.MarshalEncode(to, object)
}

// toQueue checks only which fields are set, because a [queue.Attribute] no longer shows that. The broker validates
// the rest.
func (l attributeList) toQueue() ([]queue.Attribute, error) {
	if len(l) == 0 {
		return nil, nil
	}
	attributes := make([]queue.Attribute, len(l))
	for i := range l {
		var err error
		if attributes[i], err = l[i].toQueue(); err != nil {
			return nil, err
		}
	}
	return attributes, nil
}

func (v *messageAttribute) toQueue() (queue.Attribute, error) {
	a := queue.Attribute{Name: v.name, Type: v.DataType}
	if len(v.StringListValues) > 0 || len(v.BinaryListValues) > 0 {
		return a, queue.Errorf(queue.CodeUnsupportedOperation,
			"Message attribute list values in SendMessage operation are not supported.")
	}

	if a.IsBinary() {
		if v.StringValue != nil {
			return a, v.wrongField("Binary")
		}
		a.Value = string(v.BinaryValue)
		return a, nil
	}
	if len(v.BinaryValue) > 0 {
		return a, v.wrongField("String")
	}
	if v.StringValue != nil {
		a.Value = *v.StringValue
	}
	return a, nil
}

func (v *messageAttribute) wrongField(field string) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, "The message attribute '%s' with type '%s' must use field '%s'.",
		v.name, v.DataType, field)
}

// traceAttribute is the only system attribute that senders can set.
const traceAttribute = "AWSTraceHeader"

// maxTrace is in bytes. X-Ray's own headers are below 500.
const maxTrace = 2048

// traceHeader returns the value of [traceAttribute], or "".
func (l attributeList) traceHeader() (header string, err error) {
	system, err := l.toQueue()
	for _, a := range system {
		if a.Name != traceAttribute {
			return "", queue.Errorf(queue.CodeInvalidParameterValue,
				"Message system attribute name '%s' is invalid.", a.Name)
		}
		if a.Type != "String" || a.Value == "" || len(a.Value) > maxTrace {
			return "", queue.Errorf(queue.CodeInvalidParameterValue,
				"The message system attribute '%s' must be a non-empty String of at most %d bytes.", a.Name, maxTrace)
		}
		header = strings.Clone(a.Value) // a.Value shares the request's memory
	}
	return header, err
}

// selectAttributes returns the attributes that match names, which may contain "prefix.*", or "All", ".*" or "*" for
// all.
func selectAttributes(attributes []queue.Attribute, names []string) []queue.Attribute {
	if len(attributes) == 0 || len(names) == 0 {
		return nil
	}
	if slices.ContainsFunc(names, func(name string) bool { return name == "All" || name == ".*" || name == "*" }) {
		return attributes
	}

	var selected []queue.Attribute
	for _, a := range attributes {
		isNamed := func(pattern string) bool {
			prefix, isPrefix := strings.CutSuffix(pattern, ".*")
			return a.Name == pattern || isPrefix && strings.HasPrefix(a.Name, prefix)
		}
		if slices.ContainsFunc(names, isNamed) {
			selected = append(selected, a)
		}
	}
	return selected
}

func appendBodyMD5(dst []byte, body string) []byte {
	sum := sqswire.BodyMD5(body)
	return hex.AppendEncode(dst, sum[:])
}

func appendAttributesMD5(dst []byte, attributes []queue.Attribute) []byte {
	if len(attributes) == 0 {
		return dst
	}
	sum := sqswire.AttributesMD5(attributes)
	return hex.AppendEncode(dst, sum[:])
}

func digestOf[T any](appendTo func(dst []byte, of T) []byte, of T) string {
	var text [2 * md5.Size]byte
	return string(appendTo(text[:0], of))
}

// systemAttributes are in output order. Times are in milliseconds since 1970; empty values are omitted. Read-only.
var systemAttributes = [...]struct {
	name string
	of   func(m *queue.Message) string
}{
	{"SenderId", func(m *queue.Message) string { return m.SenderID }},
	{"SentTimestamp", func(m *queue.Message) string { return millis(m.SentAt) }},
	{"ApproximateReceiveCount", func(m *queue.Message) string { return strconv.Itoa(m.ReceiveCount) }},
	{"ApproximateFirstReceiveTimestamp", func(m *queue.Message) string { return millis(m.FirstReceivedAt) }},
	{"SequenceNumber", func(m *queue.Message) string { return m.SequenceNumber }},
	{"MessageDeduplicationId", func(m *queue.Message) string { return m.DedupID }},
	{"MessageGroupId", func(m *queue.Message) string { return m.GroupID }},
	{traceAttribute, func(m *queue.Message) string { return m.TraceHeader }},
	{"DeadLetterQueueSourceArn", func(m *queue.Message) string { return m.DeadLetterSource }},
}

type systemSet uint16

// systemSetOf combines the names in the deprecated parameter and the current one. As in SQS, it ignores unknown names.
func systemSetOf(lists ...[]string) (set systemSet) {
	for _, name := range slices.Concat(lists...) {
		for i := range systemAttributes {
			if name == "All" || name == systemAttributes[i].name {
				set |= 1 << i
			}
		}
	}
	return set
}

type pair struct{ name, value string }

func (set systemSet) of(m *queue.Message, dst []pair) []pair {
	for i := range systemAttributes {
		if a := &systemAttributes[i]; set&(1<<i) != 0 {
			if value := a.of(m); value != "" {
				dst = append(dst, pair{a.name, value})
			}
		}
	}
	return dst
}

func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
