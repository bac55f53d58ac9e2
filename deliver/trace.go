package deliver

// TraceContext is what a request says about the trace that it belongs to: the values of
// headers, "" for those that it does not have. One that no header can carry is left out.
type TraceContext struct {
	// Traceparent, Tracestate and Baggage are those of W3C, XRay is X-Amzn-Trace-Id.
	Traceparent, Tracestate, Baggage, XRay string
}

// append renders the headers of t that fit into room bytes.
func (t *TraceContext) append(b []byte, room int) []byte {
	end := len(b) + room
	b = appendTrace(b, end, "Traceparent", t.Traceparent)
	b = appendTrace(b, end, "X-Amzn-Trace-Id", t.XRay)
	b = appendTrace(b, end, "Tracestate", t.Tracestate)
	return appendTrace(b, end, "Baggage", t.Baggage)
}

func appendTrace(b []byte, end int, name, value string) []byte {
	if value == "" || len(b)+len(name)+len(": ")+len(value)+len("\r\n") > end || !isFieldValue(value) {
		return b
	}
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}
