package deliver

import (
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

const (
	attributePrefix = "X-Aws-Sqsd-Attr-"
	// droppedName is the attribute name under which the count of attributes
	// that did not travel is told.
	droppedName = "Dropped"
	// maxCoreValue bounds the value of a header that is not an attribute but
	// holds text from outside, such as a task's name.
	maxCoreValue = queue.MaxPath
)

// head renders the part of a request before its body. All that is the same for
// every message is rendered once.
type head struct {
	ordinary string // an ordinary message's, from the request line to the path header
	fixed    string // the lines after the request line that every request has
	budget   int    // bytes for all headers of attributes and traces together
}

func newHead(t *target, opts *HTTPOptions) *head {
	h := &head{budget: opts.HeaderBudget}
	h.fixed = " HTTP/1.1\r\n" + field("Host", t.host) + field("User-Agent", userAgent(opts.Version)) +
		field("Content-Type", opts.MimeType) + field("X-Aws-Sqsd-Queue", opts.QueueName)
	if opts.KeepAlive < 0 {
		h.fixed += field("Connection", "close")
	}
	h.ordinary = "POST " + opts.Path + h.fixed + field("X-Aws-Sqsd-Path", opts.Path)
	return h
}

func userAgent(version string) string {
	if version == "" {
		return "aws-sqsd/3.0 tendril"
	}
	return "aws-sqsd/3.0 tendril/" + version
}

func field(name, value string) string { return name + ": " + value + "\r\n" }

// append renders the head for m, as that of a scheduled run unless run is nil, with a
// body of size bytes to follow, as a part of trace. It returns how many attributes
// were dropped.
func (h *head) append(b []byte, m *queue.Message, run *scheduledRun, size int, trace *TraceContext) (out []byte,
	dropped int) {
	if run == nil {
		b = append(b, h.ordinary...)
	} else {
		b = h.appendRun(b, run)
	}
	b = appendField(b, "X-Aws-Sqsd-Msgid", m.ID)
	b = append(b, "X-Aws-Sqsd-Receive-Count: "...)
	b = strconv.AppendInt(b, int64(m.ReceiveCount), 10)
	b = append(b, "\r\n"...)
	if m.Attempt > 0 {
		b = append(b, "X-Tendril-Attempt: "...)
		b = strconv.AppendInt(b, int64(m.Attempt), 10)
		b = append(b, "\r\n"...)
	}
	b = appendTime(b, "X-Aws-Sqsd-First-Received-At", m.FirstReceivedAt)
	b = appendTime(b, "X-Aws-Sqsd-Sent-At", m.SentAt)
	b = appendField(b, "X-Aws-Sqsd-Sender-Id", m.SenderID)
	before := len(b)
	b = trace.append(b, h.budget)
	b, dropped = appendAttributes(b, m.Attributes, h.budget-(len(b)-before))
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(size), 10)
	return append(b, "\r\n\r\n"...), dropped
}

func (h *head) appendRun(b []byte, run *scheduledRun) []byte {
	b = append(b, "POST "...)
	b = append(b, run.target...)
	b = append(b, h.fixed...)
	b = appendField(b, "X-Aws-Sqsd-Path", run.path)
	if run.task != "" {
		b = appendField(b, "X-Aws-Sqsd-Taskname", run.task)
	}
	if run.scheduledAt != "" {
		b = appendField(b, "X-Aws-Sqsd-Scheduled-At", run.scheduledAt)
	}
	return b
}

// appendAttributes renders one header per attribute that is text, that no
// earlier attribute shares a header with, that a header can carry, and that
// room bytes have place for. The others that are text are counted, and the count
// is told to the app. An attribute of its own called "dropped" gives way to it.
func appendAttributes(b []byte, attributes []queue.Attribute, room int) (out []byte, dropped int) {
	reserved := -1
	for i := range attributes {
		a := &attributes[i]
		if !isForwarded(a) {
			continue
		}
		size := len(attributePrefix) + len(a.Name) + len(": ") + len(a.Value) + len("\r\n")
		if size > room || !isToken(a.Name) || !isFieldValue(a.Value) || isRepeated(attributes[:i], a.Name) {
			dropped++
			continue
		}
		room -= size
		if strings.EqualFold(a.Name, droppedName) {
			reserved = i
			continue
		}
		b = appendAttribute(b, a)
	}
	switch {
	case dropped == 0 && reserved >= 0:
		b = appendAttribute(b, &attributes[reserved])
	case dropped > 0:
		if reserved >= 0 {
			dropped++
		}
		b = append(b, attributePrefix+droppedName+": "...)
		b = strconv.AppendInt(b, int64(dropped), 10)
		b = append(b, "\r\n"...)
	}
	return b, dropped
}

// isForwarded reports whether a becomes a header if it can: it is text, and not
// one of the daemon's own.
func isForwarded(a *queue.Attribute) bool {
	n := len(queue.RunPrefix)
	return a.IsText() && !(len(a.Name) >= n && strings.EqualFold(a.Name[:n], queue.RunPrefix))
}

// isRepeated reports whether one of the earlier attributes has the same header
// name, which differs from the attribute's in case only.
func isRepeated(earlier []queue.Attribute, name string) bool {
	for i := range earlier {
		if len(earlier[i].Name) == len(name) && strings.EqualFold(earlier[i].Name, name) && isForwarded(&earlier[i]) {
			return true
		}
	}
	return false
}

func appendAttribute(b []byte, a *queue.Attribute) []byte {
	b = append(b, attributePrefix...)
	b = appendCanonical(b, a.Name)
	b = append(b, ": "...)
	b = append(b, strings.Trim(a.Value, " \t")...)
	return append(b, "\r\n"...)
}

// appendCanonical writes a token as the part of a canonical header name that
// follows a hyphen: a capital first and after each hyphen, all else small.
func appendCanonical(b []byte, token string) []byte {
	first := true
	for i := range len(token) {
		c := token[i]
		switch {
		case first && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		case !first && c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		first = c == '-'
		b = append(b, c)
	}
	return b
}

// appendField writes a header that always travels: what it cannot carry is
// percent-escaped, and what is too long is cut.
func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	if len(value) > maxCoreValue {
		value = value[:maxCoreValue]
	}
	if isFieldValue(value) {
		b = append(b, strings.Trim(value, " \t")...)
	} else {
		b = appendEscaped(b, value)
	}
	return append(b, "\r\n"...)
}

func appendEscaped(b []byte, value string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

// appendTime writes a time in UTC to the second; nothing for the zero time.
func appendTime(b []byte, name string, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = at.UTC().AppendFormat(b, time.RFC3339)
	return append(b, "\r\n"...)
}
