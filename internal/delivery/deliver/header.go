package deliver

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"tendril/internal/delivery/webhook"
	"tendril/queue"
)

const (
	attributePrefix = "X-Aws-Sqsd-Attr-"
	// X-Aws-Sqsd-Attr-Dropped is a count, so an attribute with this name is dropped.
	droppedName = "Dropped"
)

type requestHead struct {
	ordinary string // request line to X-Aws-Sqsd-Path
	fixed    string // after the request target
	batch    string // like ordinary, for batches
	budget   int    // bytes of attribute and trace headers
	signer   *webhook.Signer
}

func newRequestHead(t *target, opts *Options, signer *webhook.Signer) *requestHead {
	h := &requestHead{budget: opts.HeaderBudget, signer: signer}
	agent := strings.TrimSuffix("aws-sqsd/3.0 tendril/"+opts.Version, "/")
	h.fixed = " HTTP/1.1\r\n" + field("Host", t.host) + field("User-Agent", agent) +
		field("Content-Type", opts.MimeType) + field("X-Aws-Sqsd-Queue", opts.QueueName)
	if opts.KeepAlive < 0 {
		h.fixed += field("Connection", "close")
	}
	h.ordinary = "POST " + opts.Path + h.fixed + field("X-Aws-Sqsd-Path", opts.Path)
	h.batch = strings.Replace(h.ordinary, field("Content-Type", opts.MimeType),
		field("Content-Type", "application/json"), 1)
	return h
}

func field(name, value string) string { return name + ": " + value + "\r\n" }

// append appends the head of a single message's request. dropped counts dropped and trimmed attributes.
func (h *requestHead) append(b []byte, m *queue.Message, run *scheduledRun, body string, trace *TraceContext) (
	out []byte, dropped int,
) {
	if run == nil {
		b = append(b, h.ordinary...)
	} else {
		b = h.appendRunStart(b, run)
	}
	b = appendField(b, "X-Aws-Sqsd-Msgid", m.ID)
	b = appendNumber(b, "X-Aws-Sqsd-Receive-Count", m.ReceiveCount)
	if m.Attempt > 0 {
		b = appendNumber(b, "X-Tendril-Attempt", m.Attempt)
	}
	b = appendTime(b, "X-Aws-Sqsd-First-Received-At", m.FirstReceivedAt)
	b = appendTime(b, "X-Aws-Sqsd-Sent-At", m.SentAt)
	b = appendField(b, "X-Aws-Sqsd-Sender-Id", m.SenderID)

	start := len(b)
	b = trace.append(b, h.budget)
	b, dropped = appendAttributes(b, m.Attributes, h.budget-(len(b)-start))
	if h.signer != nil {
		b = h.signer.AppendHeaders(b, fieldValue(m.ID), body, time.Now())
	}
	b = appendNumber(b, "Content-Length", len(body))
	return append(b, "\r\n"...), dropped
}

func (h *requestHead) appendRunStart(b []byte, run *scheduledRun) []byte {
	b = append(b, "POST "...)
	b = append(b, run.target...)
	b = append(b, h.fixed...)
	b = appendField(b, "X-Aws-Sqsd-Path", run.Path)
	if run.Task != "" {
		b = appendField(b, "X-Aws-Sqsd-Taskname", run.Task)
	}
	if at := scheduledAt(run.Time); at != "" {
		b = appendField(b, "X-Aws-Sqsd-Scheduled-At", at)
	}
	return b
}

// appendAttributes appends the text attributes that are valid, not repeated and fit into room. dropped counts the
// others, and trimmed ones.
func appendAttributes(b []byte, attributes []queue.Attribute, room int) (out []byte, dropped int) {
	for i := range attributes {
		a := &attributes[i]
		if !isForwarded(a) {
			continue
		}
		size := len(attributePrefix) + len(a.Name) + len(": ") + len(a.Value) + len("\r\n")
		if size > room || !isHeader(a) || isRepeated(attributes[:i], a.Name) {
			dropped++
			continue
		}

		room -= size
		value := strings.Trim(a.Value, " \t")
		if value != a.Value {
			dropped++
		}
		b = append(b, attributePrefix...)
		b = appendCanonical(b, a.Name)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	}

	if dropped > 0 {
		b = appendNumber(b, attributePrefix+droppedName, dropped)
	}
	return b, dropped
}

func isHeader(a *queue.Attribute) bool {
	return httpguts.ValidHeaderFieldName(a.Name) && isFieldValue(a.Value) && !strings.EqualFold(a.Name, droppedName)
}

func isForwarded(a *queue.Attribute) bool {
	n := len(queue.RunPrefix)
	return a.IsText() && !(len(a.Name) >= n && strings.EqualFold(a.Name[:n], queue.RunPrefix))
}

// isRepeated ignores case, as header names do.
func isRepeated(earlier []queue.Attribute, name string) bool {
	for i := range earlier {
		if len(earlier[i].Name) == len(name) && strings.EqualFold(earlier[i].Name, name) && isForwarded(&earlier[i]) {
			return true
		}
	}
	return false
}

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

func appendField(b []byte, name, value string) []byte {
	b = appendName(b, name)
	b = append(b, fieldValue(value)...)
	return append(b, "\r\n"...)
}

func appendName(b []byte, name string) []byte {
	b = append(b, name...)
	return append(b, ": "...)
}

func fieldValue(value string) string {
	value = value[:min(len(value), queue.MaxPath)]
	if isFieldValue(value) {
		return strings.Trim(value, " \t")
	}
	return string(appendEscaped(nil, value))
}

func appendEscaped(b []byte, value string) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range []byte(value) {
		if c <= ' ' || c >= 0x7f || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

func appendNumber(b []byte, name string, n int) []byte {
	b = appendName(b, name)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}

func appendTime(b []byte, name string, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	b = appendName(b, name)
	b = at.UTC().AppendFormat(b, time.RFC3339)
	return append(b, "\r\n"...)
}

// scheduledAt converts a time to RFC 3339. Other formats are unchanged, because the app may understand them.
func scheduledAt(value string) string {
	value = strings.TrimSpace(value)
	for _, layout := range []string{queue.RunTimeLayout, "2006-01-02 15:04:05 -0700", time.RFC3339} {
		if at, err := time.Parse(layout, value); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return value
}

func (t *TraceContext) append(b []byte, room int) []byte {
	end := len(b) + room
	b = appendTrace(b, end, "Traceparent", t.Traceparent)
	b = appendTrace(b, end, "X-Amzn-Trace-Id", t.XRay)
	b = appendTrace(b, end, "Tracestate", t.Tracestate)
	return appendTrace(b, end, "Baggage", t.Baggage)
}

func appendTrace(b []byte, end int, name, value string) []byte {
	size := len(name) + len(": ") + len(value) + len("\r\n")
	if value == "" || len(b)+size > end || !isFieldValue(value) {
		return b
	}
	b = appendName(b, name)
	b = append(b, value...)
	return append(b, "\r\n"...)
}
