package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// parseXRay reads the context of a trace as X-Ray writes it:
//
//	Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
//
// in any order, with unknown fields between. Root and Parent are needed; ok is
// false without them, and for anything that is not well formed.
func parseXRay(header string) (sc trace.SpanContext, ok bool) {
	if len(header) > 1024 {
		return sc, false
	}
	var root, parent, sampled string
	for field := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Root":
			root = value
		case "Parent":
			parent = value
		case "Sampled":
			sampled = value
		}
	}
	// The version, 8 digits of time, 24 of chance.
	if len(root) != 35 || root[:2] != "1-" || root[10] != '-' {
		return sc, false
	}
	id, err := trace.TraceIDFromHex(root[2:10] + root[11:])
	if err != nil {
		return sc, false
	}
	span, err := trace.SpanIDFromHex(parent)
	if err != nil {
		return sc, false
	}
	flags := trace.TraceFlags(0).WithSampled(sampled == "1")
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: flags, Remote: true}), true
}

// formatXRay is the inverse of parseXRay; "" for an invalid context.
func formatXRay(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	id, sampled := sc.TraceID().String(), "0"
	if sc.IsSampled() {
		sampled = "1"
	}
	return "Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + sc.SpanID().String() + ";Sampled=" + sampled
}
