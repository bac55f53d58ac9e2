package telemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"tendril/queue"
)

// TracerOptions describe a [Tracer]'s queue and target.
type TracerOptions struct {
	Queue, QueueURL string
	// For a Lambda function, Function is set instead of Target, the app's URL.
	Target, Function string
}

// Tracer creates spans for deliveries from one queue to one target. A nil *Tracer creates none. It is safe for
// concurrent use.
//
// Every delivery is a separate trace, because a message may be delivered again days later. The span "process QUEUE"
// links to the message's trace context and has a child for the request.
type Tracer struct {
	tracer                  trace.Tracer
	process, call           string
	processAttrs, callAttrs []attribute.KeyValue
}

// Tracer returns a tracer, or nil if traces are off.
func (o *OTLP) Tracer(opts TracerOptions) *Tracer {
	if o == nil || o.tracer == nil {
		return nil
	}
	t := &Tracer{tracer: o.tracer, process: operationProcess + " " + opts.Queue, call: "POST"}
	t.processAttrs = []attribute.KeyValue{system(), keyDestination.String(opts.Queue),
		keyOperation.String(operationProcess), operationType(operationProcess)}
	if opts.QueueURL != "" {
		t.processAttrs = append(t.processAttrs, keyQueueURL.String(opts.QueueURL))
	}
	if opts.Function != "" {
		t.call, t.callAttrs = "invoke", []attribute.KeyValue{keyFunction.String(opts.Function)}
	} else {
		t.callAttrs = []attribute.KeyValue{keyMethod.String("POST"), keyURL.String(opts.Target)}
	}
	return t
}

// Begin starts the spans for delivering messages. The returned context is for [Propagate]. Call end once, with one
// result per message; a missing result is a failure.
func (t *Tracer) Begin(ctx context.Context, ms []*queue.Message) (_ context.Context, end func([]queue.Result)) {
	if t == nil {
		return ctx, func([]queue.Result) {}
	}

	attrs := t.processAttrs[:len(t.processAttrs):len(t.processAttrs)]
	if len(ms) == 1 {
		attrs = append(attrs, keyMessageID.String(ms[0].ID), keyReceiveCount.Int(ms[0].ReceiveCount))
	} else {
		attrs = append(attrs, keyBatchSize.Int(len(ms)))
	}

	ctx, process := t.tracer.Start(ctx, t.process, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attrs...), trace.WithLinks(messageLinks(ms)...))
	ctx, call := t.tracer.Start(ctx, t.call, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(t.callAttrs...))
	return ctx, func(rs []queue.Result) {
		r := batchResult(rs, len(ms))
		endSpan(call, &r)
		endSpan(process, &r)
	}
}

func endSpan(span trace.Span, r *queue.Result) {
	if span.IsRecording() {
		attrs := append(make([]attribute.KeyValue, 0, 3), keyOutcome.String(r.Outcome.String()))
		if r.Status != 0 {
			attrs = append(attrs, keyStatus.Int(r.Status))
		}
		if r.Outcome != queue.Done {
			attrs = append(attrs, keyErrorType.String(errorType(r)))
			span.SetStatus(codes.Error, r.Reason)
		}
		span.SetAttributes(attrs...)
	}
	span.End()
}

// errorType returns few distinct values, as OpenTelemetry requires.
func errorType(r *queue.Result) string {
	if r.Status != 0 {
		return strconv.Itoa(r.Status)
	}
	return r.Outcome.String()
}

func batchResult(rs []queue.Result, n int) queue.Result {
	for _, r := range rs {
		if r.Outcome != queue.Done {
			return r
		}
	}
	if len(rs) < n {
		return queue.Result{Reason: "no result for " + strconv.Itoa(n-len(rs)) + " of the batch"}
	}
	if n == 0 {
		return queue.Result{Outcome: queue.Done}
	}
	return rs[0]
}

func messageLinks(ms []*queue.Message) []trace.Link {
	var all []trace.Link
	for _, m := range ms {
		sc := creationContext(m)
		if !sc.IsValid() {
			continue
		}
		link := trace.Link{SpanContext: sc}
		if len(ms) > 1 {
			link.Attributes = []attribute.KeyValue{keyMessageID.String(m.ID)}
		}
		all = append(all, link)
	}
	return all
}
