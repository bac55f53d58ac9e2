package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"tendril/internal/worker"
	"tendril/queue"
)

type meter struct {
	operation, process metric.Float64Histogram
	consumed           metric.Int64Counter
}

func newMeter(provider metric.MeterProvider, version string) (*meter, error) {
	m := provider.Meter(instrumentationName, metric.WithInstrumentationVersion(version), metric.WithSchemaURL(schemaURL))
	bounds := metric.WithExplicitBucketBoundaries(durationBuckets...)
	operation, err1 := m.Float64Histogram(metricOperationDuration, metric.WithUnit("s"), bounds,
		metric.WithDescription("Duration of one queue request: a receive with its long poll, a delete, a visibility change."))
	process, err2 := m.Float64Histogram(metricProcessDuration, metric.WithUnit("s"), bounds,
		metric.WithDescription("Duration of one delivery."))
	consumed, err3 := m.Int64Counter(metricConsumed, metric.WithUnit("{message}"),
		metric.WithDescription("Number of messages received."))
	return &meter{operation, process, consumed}, errors.Join(err1, err2, err3)
}

// Worker returns listeners that record a worker's OpenTelemetry metrics, or nil if they are off.
func (o *OTLP) Worker(queueName string) *worker.Events {
	if o == nil || o.meter == nil {
		return nil
	}
	ctx, m := context.Background(), o.meter
	set := func(operation string, more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more, system(), keyDestination.String(queueName),
			keyOperation.String(operation), operationType(operation))...))
	}
	record := func(operation string, more ...attribute.KeyValue) []metric.RecordOption {
		return []metric.RecordOption{set(operation, more...)}
	}

	receive := record(operationReceive)
	remove := record(operationDelete)
	change := record(operationChange)
	consume := []metric.AddOption{set(operationReceive)}
	process := map[string][]metric.RecordOption{"done": record(operationProcess)}
	for _, class := range append(codeClasses[:], "unreached", "throttled") {
		process[class] = record(operationProcess, keyErrorType.String(class))
	}

	return &worker.Events{
		Received: func(r worker.Received) {
			m.operation.Record(ctx, r.Duration.Seconds(), receive...)
			if r.Messages > 0 {
				m.consumed.Add(ctx, int64(r.Messages), consume...)
			}
		},
		Deleted:  func(d worker.Deleted) { m.operation.Record(ctx, d.Duration.Seconds(), remove...) },
		Extended: func(e worker.Extended) { m.operation.Record(ctx, e.Duration.Seconds(), change...) },
		Settled: func(s worker.Settled) {
			class := s.Outcome.String()
			if s.Outcome == queue.Failed {
				class = codeClasses[codeClass(s.Status)]
			}
			m.process.Record(ctx, s.Duration.Seconds(), process[class]...)
		},
		Postponed: func(p worker.Postponed) {
			if p.Throttled {
				m.process.Record(ctx, p.Duration.Seconds(), process[queue.Throttled.String()]...)
			}
		},
	}
}

var codeClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

func codeClass(status int) int {
	if status < 100 || status > 599 {
		return 0
	}
	return status / 100
}
