package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

// These message attributes become headers of the same name.
const (
	parentAttribute  = "traceparent"
	stateAttribute   = "tracestate"
	baggageAttribute = "baggage"
)

// Implementations of W3C Trace Context propagate at least maxState bytes.
const maxState = 512

// Propagate returns a message's trace headers. A span in ctx replaces the message's traceparent and tracestate. Invalid
// values are omitted, because receivers would drop the trace or reject the request.
func Propagate(ctx context.Context, m *queue.Message) deliver.TraceContext {
	t := deliver.TraceContext{XRay: validXRay(m.TraceHeader)}
	if value := textAttribute(m, baggageAttribute); value != "" {
		if b, err := baggage.Parse(value); err == nil && b.Len() > 0 {
			t.Baggage = value
		}
	}

	switch {
	case trace.SpanContextFromContext(ctx).IsValid():
		t.Traceparent = traceparent(ctx)
	case parentOf(carrier{m}).IsValid():
		t.Traceparent = textAttribute(m, parentAttribute)
		t.Tracestate = validState(textAttribute(m, stateAttribute))
	}
	return t
}

func validState(state string) string {
	if len(state) > maxState {
		return ""
	}
	if members, err := trace.ParseTraceState(state); err != nil || members.Len() == 0 {
		return ""
	}
	return state
}

func validXRay(header string) string {
	if !isPrintable(header) || strings.Contains(header, " ") {
		return ""
	}
	if _, err := parseXRay(header); err != nil {
		return ""
	}
	return header
}

func creationContext(m *queue.Message) trace.SpanContext {
	if sc := parentOf(carrier{m}); sc.IsValid() {
		return sc
	}
	x, err := parseXRay(m.TraceHeader)
	if err != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(x)
}

func parentOf(c carrier) trace.SpanContext {
	if textAttribute(c.m, parentAttribute) == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), c))
}

func traceparent(ctx context.Context) string {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return headers[parentAttribute]
}

type carrier struct{ m *queue.Message }

func (c carrier) Get(name string) string { return textAttribute(c.m, name) }

func (carrier) Set(string, string) {}

func (carrier) Keys() []string { return nil }

func textAttribute(m *queue.Message, name string) string {
	for i := range m.Attributes {
		if a := &m.Attributes[i]; a.Name == name && a.IsText() {
			if value := strings.Trim(a.Value, " \t"); isPrintable(value) {
				return value
			}
		}
	}
	return ""
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f })
}
