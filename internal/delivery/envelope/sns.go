package envelope

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tendril/queue"
)

// The app receives these attributes in headers, such as X-Aws-Sqsd-Attr-Sns-Topic-Arn. Publishers cannot set them.
const (
	topicAttribute     = "sns-topic-arn"
	messageIDAttribute = "sns-message-id" // the same for every subscriber and delivery
	subjectAttribute   = "sns-subject"    // absent without a subject
)

// maxAttributes is SQS's limit; notifications may have more.
const maxAttributes = 10

// Kind is the kind of SNS envelope in a body, if any.
type Kind int

const (
	plain Kind = iota // includes raw message delivery
	wrapped
	// Confirmation asks the receiver to confirm a change of a subscription by requesting a URL.
	Confirmation
)

// SNS returns the message inside a notification, or a copy of m for other kinds. The inner message has the attributes
// of m, the notification's in order of name until there are ten, and up to three set by this package. It lacks
// attributes whose name is in use (ignoring case), invalid in SQS or reserved for scheduled runs, or whose value cannot
// be decoded.
func SNS(m *queue.Message) (inner queue.Message, kind Kind) {
	n, kind := parseNotification(m.Body)
	if kind != wrapped {
		return *m, kind
	}
	inner = *m
	inner.Body = *n.Message
	inner.Attributes = n.merge(m.Attributes)
	return inner, wrapped
}

type snsEnvelope struct {
	Type, MessageID, Topic string
	Subject, Message       *string
	Attributes             map[string]snsAttribute
}

type snsAttribute struct{ Type, Value string }

// Only an exact SNS envelope is accepted, because anything else may be an ordinary message.
func parseNotification(body string) (n snsEnvelope, kind Kind) {
	text := strings.TrimLeft(body, " \t\r\n")
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"TopicArn"`) {
		return n, plain
	}

	var fields map[string]json.RawMessage // a struct would also accept "TYPE"
	if json.Unmarshal([]byte(text), &fields) != nil {
		return n, plain
	}
	for name, into := range map[string]any{"Type": &n.Type, "MessageId": &n.MessageID, "TopicArn": &n.Topic,
		"Subject": &n.Subject, "Message": &n.Message, "MessageAttributes": &n.Attributes} {
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, into) != nil {
			return n, plain
		}
	}

	switch {
	case n.MessageID == "" || !strings.HasPrefix(n.Topic, "arn:") || n.Message == nil:
		return n, plain
	case n.Type == "Notification":
		return n, wrapped
	case n.Type == "SubscriptionConfirmation" || n.Type == "UnsubscribeConfirmation":
		return n, Confirmation
	}
	return n, plain
}

func (n *snsEnvelope) merge(outer []queue.Attribute) []queue.Attribute {
	merged := slices.DeleteFunc(slices.Clone(outer), func(a queue.Attribute) bool { return isSourceAttribute(a.Name) })
	free := maxAttributes - len(merged)
	for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
		if free <= 0 {
			break
		}
		a, ok := n.Attributes[name].translate(name)
		if ok && !isSourceAttribute(name) && !hasAttribute(merged, name) {
			merged = append(merged, a)
			free--
		}
	}

	merged = append(merged,
		queue.Attribute{Name: topicAttribute, Type: "String", Value: n.Topic},
		queue.Attribute{Name: messageIDAttribute, Type: "String", Value: n.MessageID})
	if n.Subject != nil && *n.Subject != "" {
		merged = append(merged, queue.Attribute{Name: subjectAttribute, Type: "String", Value: *n.Subject})
	}
	slices.SortFunc(merged, func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return merged
}

// translate returns false if the attribute is invalid in SQS, reserved or cannot be decoded.
func (a snsAttribute) translate(name string) (queue.Attribute, bool) {
	if !validName(name) || strings.HasPrefix(strings.ToLower(name), queue.RunPrefix) {
		return queue.Attribute{}, false
	}
	out := queue.Attribute{Name: name, Type: a.Type, Value: a.Value}
	kind, _, _ := strings.Cut(a.Type, ".")
	switch kind {
	case "String", "Number":
		return out, true
	case "Binary":
		raw, err := base64.StdEncoding.DecodeString(a.Value)
		out.Value = string(raw)
		return out, err == nil
	}
	return out, false
}

func isSourceAttribute(name string) bool {
	return slices.Contains([]string{topicAttribute, messageIDAttribute, subjectAttribute}, strings.ToLower(name))
}

// Attributes become HTTP headers, which ignore case.
func hasAttribute(attributes []queue.Attribute, name string) bool {
	return slices.ContainsFunc(attributes, func(a queue.Attribute) bool { return strings.EqualFold(a.Name, name) })
}

func validName(name string) bool {
	if name == "" || len(name) > 256 || name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	lower := strings.ToLower(name)
	return !strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.")
}
