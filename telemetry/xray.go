package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// parseXRay parses a trace context in the format of X-Ray:
//
//	Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
//
// The fields may have any order, and unknown fields are ignored. ok is false without
// Root or Parent, and when one of them is malformed.
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
	// The version, 8 digits of the time, 24 random digits.
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
