package telemetry

import (
	"errors"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

const maxXRay = 1 << 10

var errXRay = errors.New("invalid X-Ray trace header")

// parseXRay parses a trace context such as
//
//	Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
//
// Fields may be in any order. Root must occur exactly once. Unknown fields and an invalid Parent are ignored.
func parseXRay(header string) (sc trace.SpanContextConfig, err error) {
	if len(header) > maxXRay {
		return sc, errXRay
	}

	for field := range strings.SplitSeq(header, ";") {
		name, value, found := strings.Cut(strings.TrimSpace(field), "=")
		switch {
		case name == "" && !found:
		case name == "" || !found:
			return sc, errXRay
		case name == "Root" && sc.TraceID.IsValid():
			return sc, errXRay
		case name == "Root":
			// Format: version, 8 digits of time, 24 random digits.
			if len(value) != 35 || value[:2] != "1-" || value[10] != '-' {
				return sc, errXRay
			}
			if sc.TraceID, err = trace.TraceIDFromHex(strings.ToLower(value[2:10] + value[11:])); err != nil {
				return sc, errXRay
			}
		case name == "Parent":
			sc.SpanID, _ = trace.SpanIDFromHex(strings.ToLower(value))
		case name == "Sampled":
			sc.TraceFlags = sc.TraceFlags.WithSampled(value == "1")
		}
	}

	if !sc.TraceID.IsValid() {
		return sc, errXRay
	}
	sc.Remote = true
	return sc, nil
}
