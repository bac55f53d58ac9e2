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

// instrumentationName is the instrumentation scope of spans and metrics.
const instrumentationName = "tendril"

// OTLPOptions configure [OpenOTLP]. A nil *OTLPOptions is valid.
type OTLPOptions struct {
	// Version is the version of tendril; may be "".
	Version string
	// Service is the service name when OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES do not set one; "" means tendril.
	Service string
	// Logger gets a line when sending starts to fail and when it works again; may be
	// nil.
	Logger *slog.Logger
}

// OTLP sends traces and metrics to an OpenTelemetry collector over HTTP. A nil *OTLP
// is switched off: its methods do nothing.
//
// No delivery waits for sending. Spans wait in a bounded queue
// (OTEL_BSP_MAX_QUEUE_SIZE, default 2048); further spans are dropped and counted.
type OTLP struct {
	traces, metrics sink
	exports         context.Context // canceled when Close ends
	cancelExports   context.CancelFunc

	tracer         trace.Tracer // nil when no traces are sent
	tracerProvider *sdktrace.TracerProvider
	processor      *boundedProcessor
	meter          *meter // nil when no metrics are sent
	meterProvider  *sdkmetric.MeterProvider
}

// OpenOTLP reads the OTEL_ variables of this process. It returns nil, without an error,
// when they set no endpoint or switch OpenTelemetry off. It makes no request, so an
// unreachable collector is not an error. An error names the invalid variable and its
// allowed values.
func OpenOTLP(ctx context.Context, opts *OTLPOptions) (*OTLP, error) {
	if opts == nil {
		opts = &OTLPOptions{}
	}
	settings, err := readOTLPSettings(os.Getenv)
	if err != nil || !settings.traces && !settings.metrics {
		return nil, err
	}

	resource, err := newResource(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf(
			"reading OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME: %w; use name=value pairs separated by commas", err)
	}

	log := loggerOrDiscard(opts.Logger)
	o := &OTLP{
		traces:  sink{name: "otlp_traces", data: "traces", log: log},
		metrics: sink{name: "otlp_metrics", data: "metrics", log: log},
	}
	o.exports, o.cancelExports = context.WithCancel(context.Background())

	if settings.traces {
		err = o.openTraces(ctx, resource)
	}
	if err == nil && settings.metrics {
		err = o.openMetrics(ctx, resource, opts.Version)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close(ctx))
	}
	return o, nil
}

// newResource returns the OpenTelemetry resource of this process. The variables come
// last, so they take precedence.
func newResource(ctx context.Context, opts *OTLPOptions) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{keyService.String(cmp.Or(opts.Service, instrumentationName)),
		keyInstance.String(uuid.NewString())}
	if opts.Version != "" {
		attrs = append(attrs, keyVersion.String(opts.Version))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
}

// A failed call is retried for a few seconds, so that a restart of the collector loses
// nothing and a missing collector is noticed soon.
const (
	retryInitial = 500 * time.Millisecond
	retryMax     = 2 * time.Second
	retryFor     = 5 * time.Second
)

func (o *OTLP) openTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: retryInitial, MaxInterval: retryMax, MaxElapsedTime: retryFor}))
	if err != nil {
		return fmt.Errorf("creating the trace exporter: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	size := spanQueueSize(os.Getenv)
	o.processor = &boundedProcessor{limit: int64(size), sink: &o.traces}
	o.processor.SpanProcessor = sdktrace.NewBatchSpanProcessor(
		&spanExporter{exporter, o, &o.processor.pending}, sdktrace.WithMaxQueueSize(size))
	o.tracerProvider = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(o.processor))
	o.tracer = o.tracerProvider.Tracer(instrumentationName, trace.WithSchemaURL(schemaURL))
	return nil
}

func (o *OTLP) openMetrics(ctx context.Context, res *resource.Resource, version string) error {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{
		Enabled: true, InitialInterval: retryInitial, MaxInterval: retryMax, MaxElapsedTime: retryFor}))
	if err != nil {
		return fmt.Errorf("creating the metric exporter: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	reader := sdkmetric.NewPeriodicReader(&metricExporter{exporter, o})
	o.meterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(reader))
	o.meter, err = newMeter(o.meterProvider, version)
	return err
}

// Close sends the pending data and stops. It returns when ctx ends at the latest; data
// that was not sent by then is lost.
func (o *OTLP) Close(ctx context.Context) error {
	if o == nil {
		return nil
	}
	defer o.cancelExports()
	defer context.AfterFunc(ctx, o.cancelExports)()
	var err error
	if o.tracerProvider != nil {
		// The provider does not shut down its processor when ctx has already ended.
		err = errors.Join(o.processor.Shutdown(ctx), o.tracerProvider.Shutdown(ctx))
	}
	if o.meterProvider != nil {
		err = errors.Join(err, o.meterProvider.Shutdown(ctx))
	}
	if err != nil {
		err = fmt.Errorf("sending the last traces and metrics: %w", err)
	}
	return err
}

// stats returns the failures of traces and metrics, for those that are sent.
func (o *OTLP) stats() []sinkStats {
	if o == nil {
		return nil
	}
	var all []sinkStats
	if o.tracer != nil {
		all = append(all, o.traces.stats())
	}
	if o.meter != nil {
		all = append(all, o.metrics.stats())
	}
	return all
}

// boundedProcessor passes on as many spans as the processor behind it can queue, and
// counts the others as dropped. That processor would drop them silently.
type boundedProcessor struct {
	sdktrace.SpanProcessor
	pending atomic.Int64
	limit   int64
	sink    *sink
}

// OnEnd queues a finished span.
func (g *boundedProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if g.pending.Add(1) > g.limit {
		g.pending.Add(-1)
		g.sink.dropped.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// spanExporter records the results of exports in the sink.
type spanExporter struct {
	sdktrace.SpanExporter
	o       *OTLP
	pending *atomic.Int64
}

// ExportSpans sends one batch. It always returns nil, because the error is recorded
// here.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.pending.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.o.exports, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		e.o.traces.dropped.Add(int64(len(spans)))
	}
	e.o.traces.recordResult(err)
	return nil
}

// metricExporter records the results of exports in the sink.
type metricExporter struct {
	sdkmetric.Exporter
	o *OTLP
}

// Export sends all metrics. They are cumulative, so a failed call loses only
// intermediate points.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.o.exports, cancel)()
	e.o.metrics.recordResult(e.Exporter.Export(ctx, m))
	return nil
}
