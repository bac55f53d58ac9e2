package deliver

import (
	"context"
	"strings"

	"tendril/queue"
)

// The attributes by which a sender carries its trace on, and the headers they
// become beside their attribute headers: those of W3C Trace Context and Baggage.
// What is not valid by those recommendations is not forwarded under these names,
// because receivers would drop the trace with it, or refuse the request.
const (
	parentAttribute  = "traceparent"
	stateAttribute   = "tracestate"
	baggageAttribute = "baggage"
)

const (
	parentLength = 55      // of version 00
	maxState     = 512     // bytes of a tracestate that anybody passes on
	maxMembers   = 32      // members of a tracestate
	maxBaggage   = 8 << 10 // bytes of a baggage
	maxXRay      = 1 << 10 // bytes of an X-Ray header
	traceStart   = len("00-")
	traceEnd     = traceStart + 32
)

// trace is what one request says about where it belongs; "" for what it does not.
type trace struct {
	parent, state, baggage, xray string
}

// traceOf returns what m carries of a trace, as far as it is valid. replace, if not
// nil, gives another parent; the state stays only with its own trace.
func traceOf(ctx context.Context, m *queue.Message, replace func(context.Context, *queue.Message) string) trace {
	var t trace
	for i := range m.Attributes {
		a := &m.Attributes[i]
		switch a.Name {
		case parentAttribute:
			if a.IsText() && isTraceparent(a.Value) {
				t.parent = a.Value
			}
		case stateAttribute:
			if a.IsText() && isTracestate(a.Value) {
				t.state = strings.Trim(a.Value, " \t")
			}
		case baggageAttribute:
			if a.IsText() && isBaggage(a.Value) {
				t.baggage = strings.Trim(a.Value, " \t")
			}
		}
	}
	if m.TraceHeader != "" && isXRay(m.TraceHeader) {
		t.xray = m.TraceHeader
	}
	own := t.parent
	if replace != nil {
		if other := replace(ctx, m); isTraceparent(other) {
			t.parent = other
		}
	}
	if own == "" || own[traceStart:traceEnd] != t.parent[traceStart:traceEnd] {
		t.state = ""
	}
	return t
}

// append renders the headers of t that room bytes have place for.
func (t *trace) append(b []byte, room int) []byte {
	end := len(b) + room
	b = appendTrace(b, end, "Traceparent", t.parent)
	b = appendTrace(b, end, "X-Amzn-Trace-Id", t.xray)
	b = appendTrace(b, end, "Tracestate", t.state)
	return appendTrace(b, end, "Baggage", t.baggage)
}

func appendTrace(b []byte, end int, name, value string) []byte {
	if value == "" || len(b)+len(name)+len(": ")+len(value)+len("\r\n") > end {
		return b
	}
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// isTraceparent reports whether s is a traceparent: a version, the ids of trace and
// parent, and flags. A version to come may have more behind these.
func isTraceparent(s string) bool {
	if len(s) < parentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, id, parent, flags := s[:2], s[traceStart:traceEnd], s[36:52], s[53:55]
	if !isHex(version) || !isHex(id) || !isHex(parent) || !isHex(flags) {
		return false
	}
	if version == "ff" || strings.Trim(id, "0") == "" || strings.Trim(parent, "0") == "" {
		return false
	}
	if len(s) == parentLength {
		return true
	}
	return version != "00" && s[parentLength] == '-' && len(s) <= maxState && isVisible(s)
}

// isHex reports whether s is of small hexadecimal digits alone.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isVisible reports whether s is of visible ASCII characters alone.
func isVisible(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isTracestate reports whether s is a list of members key=value of different keys.
func isTracestate(s string) bool {
	if len(s) > maxState {
		return false
	}
	members := 0
	var keys [maxMembers]string
	for member := range strings.SplitSeq(s, ",") {
		member = strings.Trim(member, " \t")
		if member == "" {
			continue
		}
		key, value, found := strings.Cut(member, "=")
		if !found || members == maxMembers || !isStateKey(key) || !isStateValue(value) {
			return false
		}
		for _, earlier := range keys[:members] {
			if earlier == key {
				return false
			}
		}
		keys[members] = key
		members++
	}
	return members > 0
}

func isStateKey(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte("_-*/@", c) < 0) {
			return false
		}
	}
	return true
}

func isStateValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '=' {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// isBaggage reports whether s is a list of members key=value, each with properties
// behind semicolons or without.
func isBaggage(s string) bool {
	if s == "" || len(s) > maxBaggage {
		return false
	}
	for member := range strings.SplitSeq(s, ",") {
		first := true
		for part := range strings.SplitSeq(member, ";") {
			key, value, found := strings.Cut(part, "=")
			value = strings.Trim(value, " \t")
			if !isToken(strings.Trim(key, " \t")) || first && !found || !isVisible(value) || strings.ContainsAny(value, `"\`) {
				return false
			}
			first = false
		}
	}
	return true
}

// isXRay reports whether s is a trace header of X-Ray: fields key=value, the id of
// the trace among them.
func isXRay(s string) bool {
	if len(s) > maxXRay || !isVisible(s) {
		return false
	}
	rooted := false
	for field := range strings.SplitSeq(s, ";") {
		key, value, found := strings.Cut(field, "=")
		switch {
		case field == "":
		case !found || key == "":
			return false
		case key == "Root":
			if rooted || !isXRayRoot(value) {
				return false
			}
			rooted = true
		}
	}
	return rooted
}

// isXRayRoot reports whether s is 1, eight and twenty-four hexadecimal digits, with
// hyphens between.
func isXRayRoot(s string) bool {
	return len(s) == 35 && s[:2] == "1-" && s[10] == '-' && isHex(strings.ToLower(s[2:10])) &&
		isHex(strings.ToLower(s[11:]))
}
