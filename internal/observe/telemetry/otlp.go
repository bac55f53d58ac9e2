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

const instrumentationName = "tendril"

// OTLPOptions configure [OpenOTLP]. A nil *OTLPOptions is valid.
type OTLPOptions struct {
	Version string
	// Service is the default service name; "" means tendril.
	Service string
	Logger  *slog.Logger
}

// OTLP sends traces and metrics to an OpenTelemetry collector over HTTP. A nil *OTLP does nothing. Pending spans beyond
// OTEL_BSP_MAX_QUEUE_SIZE (default 2048) are dropped and counted.
type OTLP struct {
	traces, metrics sink
	exports         context.Context
	cancelExports   context.CancelFunc

	tracer         trace.Tracer // nil without traces
	tracerProvider *sdktrace.TracerProvider
	processor      *boundedProcessor
	meter          *meter // nil without metrics
	meterProvider  *sdkmetric.MeterProvider
}

// OpenOTLP reads the OTEL_ environment variables. It returns nil if they set no endpoint, or disable OpenTelemetry or
// both exporters.
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

func newResource(ctx context.Context, opts *OTLPOptions) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{keyService.String(cmp.Or(opts.Service, instrumentationName)),
		keyInstance.String(uuid.NewString())}
	if opts.Version != "" {
		attrs = append(attrs, keyVersion.String(opts.Version))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
}

// exportRetries outlast a quick restart of the collector.
var exportRetries = otlptracehttp.RetryConfig{Enabled: true, InitialInterval: 500 * time.Millisecond,
	MaxInterval: 2 * time.Second, MaxElapsedTime: 5 * time.Second}

func (o *OTLP) openTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(exportRetries))
	if err != nil {
		return fmt.Errorf("creating the trace exporter: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	size := spanQueueSize(os.Getenv)
	o.processor = &boundedProcessor{limit: int64(size), sink: &o.traces}
	o.processor.SpanProcessor = sdktrace.NewBatchSpanProcessor(&spanExporter{exporter, o}, sdktrace.WithMaxQueueSize(size))
	o.tracerProvider = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(o.processor))
	o.tracer = o.tracerProvider.Tracer(instrumentationName, trace.WithSchemaURL(schemaURL))
	return nil
}

func (o *OTLP) openMetrics(ctx context.Context, res *resource.Resource, version string) error {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig(exportRetries)))
	if err != nil {
		return fmt.Errorf("creating the metric exporter: %w; check the OTEL_EXPORTER_OTLP_ variables", err)
	}
	reader := sdkmetric.NewPeriodicReader(&metricExporter{exporter, o})
	o.meterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(reader))
	o.meter, err = newMeter(o.meterProvider, version)
	return err
}

// Close sends pending data, until ctx is done.
func (o *OTLP) Close(ctx context.Context) error {
	if o == nil {
		return nil
	}

	defer o.cancelExports()
	defer context.AfterFunc(ctx, o.cancelExports)()
	var err error
	if o.tracerProvider != nil {
		// The provider does not shut down its processor if ctx is already done.
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

// boundedProcessor drops and counts spans beyond limit. The wrapped processor would drop them silently.
type boundedProcessor struct {
	sdktrace.SpanProcessor
	pending atomic.Int64
	limit   int64
	sink    *sink
}

func (g *boundedProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if g.pending.Add(1) > g.limit {
		g.pending.Add(-1)
		g.sink.dropped.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}

type spanExporter struct {
	sdktrace.SpanExporter
	o *OTLP
}

// ExportSpans returns nil: the sink records errors.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.o.processor.pending.Add(-int64(len(spans)))
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

type metricExporter struct {
	sdkmetric.Exporter
	o *OTLP
}

// Export returns nil: the sink records errors, and the next call sends the cumulative metrics.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.o.exports, cancel)()
	e.o.metrics.recordResult(e.Exporter.Export(ctx, m))
	return nil
}
