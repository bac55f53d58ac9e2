package sqsapi

import (
	"slices"
	"strings"

	"tendril/queue"
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
