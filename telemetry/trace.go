package telemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"tendril/queue"
)

// Route says whence and whither the deliveries of a [Tracer] go.
type TracerOptions struct {
	// Queue is the queue's name; QueueURL its URL, "" when unknown.
	Queue, QueueURL string
	// Target is the app's URL; "" for a Lambda function. Function is the
	// function's name; "" for an app.
	Target, Function string
}

// Tracer makes the spans of deliveries on one route. A nil *Tracer makes none,
// at no cost. Its methods are safe for concurrent use.
//
// A delivery has two spans: "process QUEUE", which stands for the work on the
// message and is linked to the context in which the message was created, and
// below it "POST" or "invoke", the call. Every delivery is a trace of its own: a
// message may be delivered days after it was sent, and more than once.
type Tracer struct {
	tracer             trace.Tracer
	process, call      string
	attributes, client []attribute.KeyValue
}

// Tracer returns the tracer for a route; nil when no traces are sent.
func (o *OTLP) Tracer(r TracerOptions) *Tracer {
	if o == nil || o.tracer == nil {
		return nil
	}
	t := &Tracer{tracer: o.tracer, process: operationProcess + " " + r.Queue, call: "POST"}
	t.attributes = []attribute.KeyValue{system(), keyDestination.String(r.Queue), keyOperation.String(operationProcess), operationType(operationProcess)}
	if r.QueueURL != "" {
		t.attributes = append(t.attributes, keyQueueURL.String(r.QueueURL))
	}
	if r.Function != "" {
		t.call, t.client = "invoke", []attribute.KeyValue{keyFunction.String(r.Function)}
	} else {
		t.client = []attribute.KeyValue{keyMethod.String("POST"), keyURL.String(r.Target)}
	}
	return t
}

// Begin begins the spans of one delivery. The context is for the delivery:
// [Traceparent] and [XRayHeader] read from it what to tell the app. end must be
// called once, with the delivery's result.
func (t *Tracer) Begin(ctx context.Context, m *queue.Message) (_ context.Context, end func(queue.Result)) {
	if t == nil {
		return ctx, ignoreResult
	}
	attrs := append(t.attributes[:len(t.attributes):len(t.attributes)], keyMessageID.String(m.ID), keyReceiveCount.Int(m.ReceiveCount))
	ctx, work, call := t.begin(ctx, attrs, links(m))
	return ctx, func(r queue.Result) {
		finish(call, &r)
		finish(work, &r)
	}
}

// BeginBatch begins the spans of the delivery of a batch: one for all of its
// messages, linked to the creation of each. end must be called once; a result
// that is missing counts as failed.
func (t *Tracer) BeginBatch(ctx context.Context, ms []*queue.Message) (_ context.Context, end func([]queue.Result)) {
	if t == nil {
		return ctx, ignoreResults
	}
	attrs := append(t.attributes[:len(t.attributes):len(t.attributes)], keyBatchSize.Int(len(ms)))
	ctx, work, call := t.begin(ctx, attrs, links(ms...))
	return ctx, func(rs []queue.Result) {
		r := worst(rs, len(ms))
		finish(call, &r)
		finish(work, &r)
	}
}

func ignoreResult(queue.Result)    {}
func ignoreResults([]queue.Result) {}

func (t *Tracer) begin(ctx context.Context, attrs []attribute.KeyValue, from []trace.Link) (_ context.Context, work, call trace.Span) {
	ctx, work = t.tracer.Start(ctx, t.process, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attrs...), trace.WithLinks(from...))
	ctx, call = t.tracer.Start(ctx, t.call, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.client...))
	return ctx, work, call
}

// finish ends a span with what became of the delivery.
func finish(span trace.Span, r *queue.Result) {
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

// errorType is one of few words, as OpenTelemetry asks: the status, or the
// outcome when there was no answer.
func errorType(r *queue.Result) string {
	if r.Status != 0 {
		return strconv.Itoa(r.Status)
	}
	return r.Outcome.String()
}

// worst is the result to show for a batch of n: the first that is not done.
func worst(rs []queue.Result, n int) queue.Result {
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

// links are the contexts in which messages were created, where they tell.
func links(ms ...*queue.Message) []trace.Link {
	var all []trace.Link
	for _, m := range ms {
		sc := creation(m)
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

// creation is the context that a message carries: in its attributes traceparent
// and tracestate, or else in the header of X-Ray.
func creation(m *queue.Message) trace.SpanContext {
	if m.Attribute("traceparent") != "" {
		ctx := propagation.TraceContext{}.Extract(context.Background(), carrier{m})
		if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
			return sc
		}
	}
	sc, _ := parseXRay(m.TraceHeader)
	return sc
}

// carrier shows a message's attributes to the propagator.
type carrier struct{ m *queue.Message }

// Get returns an attribute's value.
func (c carrier) Get(name string) string { return c.m.Attribute(name) }

// Set does nothing: messages are not changed on their way.
func (carrier) Set(string, string) {}

// Keys returns the names of all attributes.
func (c carrier) Keys() []string {
	names := make([]string, len(c.m.Attributes))
	for i := range c.m.Attributes {
		names[i] = c.m.Attributes[i].Name
	}
	return names
}

// Traceparent is the W3C header for a request that is made in ctx; "" when there
// is no span in it, so when tracing is off.
func Traceparent(ctx context.Context) string {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return headers["traceparent"]
}

// XRayHeader is the same for X-Amzn-Trace-Id.
func XRayHeader(ctx context.Context) string { return formatXRay(trace.SpanContextFromContext(ctx)) }
