package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names this instrumentation in what it sends.
const instrumentationName = "tendril"

// OTLPOptions configure [OpenOTLP]. A nil *OTLPOptions is valid.
type OTLPOptions struct {
	// Version is tendril's own; may be "".
	Version string
	// Service is the service's name where OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES give none; "" means tendril.
	Service string
	// Logger hears when sending begins to fail and when it works again; nil for
	// nobody.
	Logger *slog.Logger
}

// OTLP sends traces and metrics to a collector of OpenTelemetry, over HTTP. A nil
// *OTLP is one that is switched off: its methods do nothing.
//
// Sending never makes a delivery wait. Spans wait for it in a queue of bounded
// length (OTEL_BSP_MAX_QUEUE_SIZE, 2048); those on top are dropped and counted.
type OTLP struct {
	traces, metrics sink
	life            context.Context
	end             context.CancelFunc

	tracer        trace.Tracer // nil when no traces are sent
	spans         *sdktrace.TracerProvider
	gate          *boundedProcessor
	meter         *meter // nil when no metrics are sent
	meterProvider *sdkmetric.MeterProvider
}

// OpenOTLP reads the OTEL_ variables of this process. It returns nil without an
// error where they name no endpoint, or switch OpenTelemetry off. It calls
// nobody: an unreachable collector is no error here. The error names the
// variable at fault and what it may be.
func OpenOTLP(ctx context.Context, opts *OTLPOptions) (*OTLP, error) {
	if opts == nil {
		opts = &OTLPOptions{}
	}
	plan, err := readOTLPSettings(os.Getenv)
	if err != nil || !plan.traces && !plan.metrics {
		return nil, err
	}
	attributes, err := newResource(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("describing this process by OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME: %w; give name=value pairs with commas between", err)
	}
	log := loggerOrDiscard(opts.Logger)
	o := &OTLP{
		traces:  sink{name: "otlp_traces", what: "traces", log: log},
		metrics: sink{name: "otlp_metrics", what: "metrics", log: log},
	}
	o.life, o.end = context.WithCancel(context.Background())
	if plan.traces {
		err = o.openTraces(ctx, attributes)
	}
	if err == nil && plan.metrics {
		err = o.openMetrics(ctx, attributes, opts.Version)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close(ctx))
	}
	return o, nil
}

// describe is what OpenTelemetry calls the resource: the variables come last, so
// that they win.
func newResource(ctx context.Context, opts *OTLPOptions) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{keyService.String(cmp.Or(opts.Service, instrumentationName)), keyInstance.String(uuid.NewString())}
	if opts.Version != "" {
		attrs = append(attrs, keyVersion.String(opts.Version))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
}

// A failed call is repeated for a few seconds, so that a collector that restarts
// costs nothing and one that is gone is noticed soon.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 2 * time.Second
	retryFor   = 5 * time.Second
)

func (o *OTLP) openTraces(ctx context.Context, attributes *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryFor}))
	if err != nil {
		return fmt.Errorf("setting up the export of traces: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	size := spanQueueSize(os.Getenv)
	o.gate = &boundedProcessor{most: int64(size), sink: &o.traces}
	o.gate.SpanProcessor = sdktrace.NewBatchSpanProcessor(&spanExporter{exporter, o, &o.gate.pending}, sdktrace.WithMaxQueueSize(size))
	o.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(attributes), sdktrace.WithSpanProcessor(o.gate))
	o.tracer = o.spans.Tracer(instrumentationName, trace.WithSchemaURL(schemaURL))
	return nil
}

func (o *OTLP) openMetrics(ctx context.Context, attributes *resource.Resource, version string) error {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{
		Enabled: true, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryFor}))
	if err != nil {
		return fmt.Errorf("setting up the export of metrics: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	reader := sdkmetric.NewPeriodicReader(&metricExporter{exporter, o})
	o.meterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithResource(attributes), sdkmetric.WithReader(reader))
	o.meter, err = newMeter(o.meterProvider, version)
	return err
}

// Close sends what waits and ends. It returns when ctx does, at the latest; what
// was not sent by then is lost.
func (o *OTLP) Close(ctx context.Context) error {
	if o == nil {
		return nil
	}
	defer o.end()
	defer context.AfterFunc(ctx, o.end)()
	var err error
	if o.spans != nil {
		// The provider forgets its processor when ctx has ended already.
		err = errors.Join(o.gate.Shutdown(ctx), o.spans.Shutdown(ctx))
	}
	if o.meterProvider != nil {
		err = errors.Join(err, o.meterProvider.Shutdown(ctx))
	}
	if err != nil {
		err = fmt.Errorf("sending the last traces and metrics: %w", err)
	}
	return err
}

// Stats counts what did not arrive, for each of the two ways that is on.
func (o *OTLP) Stats() []SinkStats {
	if o == nil {
		return nil
	}
	var all []SinkStats
	if o.tracer != nil {
		all = append(all, o.traces.stats())
	}
	if o.meter != nil {
		all = append(all, o.metrics.stats())
	}
	return all
}

// spanGate lets as many spans wait as the processor behind it has room for, and
// counts those that it turns away; the processor would drop them silently.
type boundedProcessor struct {
	sdktrace.SpanProcessor
	pending atomic.Int64
	most    int64
	sink    *sink
}

// OnEnd takes a finished span.
func (g *boundedProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if g.pending.Add(1) > g.most {
		g.pending.Add(-1)
		g.sink.dropped.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// spanExporter follows how the export of spans goes.
type spanExporter struct {
	sdktrace.SpanExporter
	o       *OTLP
	pending *atomic.Int64
}

// ExportSpans sends one batch. Its error is dealt with here: nobody else hears
// of it.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.pending.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.o.life, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		e.o.traces.dropped.Add(int64(len(spans)))
	}
	e.o.traces.done(err)
	return nil
}

// metricExporter follows how the export of metrics goes.
type metricExporter struct {
	sdkmetric.Exporter
	o *OTLP
}

// Export sends all metrics. They are cumulative, so a failed call loses nothing
// but points in between.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.o.life, cancel)()
	e.o.metrics.done(e.Exporter.Export(ctx, m))
	return nil
}
