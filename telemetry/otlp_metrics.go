package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"tendril/queue"
	"tendril/worker"
)

// meter holds the OpenTelemetry instruments.
type meter struct {
	operation, process metric.Float64Histogram
	consumed           metric.Int64Counter
}

func newMeter(provider metric.MeterProvider, version string) (*meter, error) {
	m := provider.Meter(instrumentationName, metric.WithInstrumentationVersion(version), metric.WithSchemaURL(schemaURL))
	bounds := metric.WithExplicitBucketBoundaries(seconds()...)
	operation, err1 := m.Float64Histogram(metricOperationDuration, metric.WithUnit("s"), bounds,
		metric.WithDescription("Duration of one queue request: a receive with its long poll, a delete, a visibility change."))
	process, err2 := m.Float64Histogram(metricProcessDuration, metric.WithUnit("s"), bounds,
		metric.WithDescription("Duration of one delivery."))
	consumed, err3 := m.Int64Counter(metricConsumed, metric.WithUnit("{message}"),
		metric.WithDescription("Number of messages received."))
	return &meter{operation, process, consumed}, errors.Join(err1, err2, err3)
}

// workerMeter records the metrics of one queue. Attribute sets are created once.
type workerMeter struct {
	*meter
	receive, remove, change []metric.RecordOption
	consume                 []metric.AddOption
	// process has the options by class of the result.
	process map[string][]metric.RecordOption
}

// Worker returns listeners that record the OpenTelemetry metrics of a worker; nil when
// no metrics are sent. Listeners that it does not need are nil.
func (o *OTLP) Worker(queue string) *worker.Events {
	if o == nil || o.meter == nil {
		return nil
	}
	l := newWorkerMeter(o.meter, queue)
	return &worker.Events{
		Received: l.received, Deleted: l.deleted, Extended: l.extended, Settled: l.settled, Postponed: l.postponed,
	}
}

func newWorkerMeter(m *meter, queue string) *workerMeter {
	set := func(operation string, more ...attribute.KeyValue) attribute.Set {
		attrs := append(more, system(), keyDestination.String(queue), keyOperation.String(operation),
			operationType(operation))
		return attribute.NewSet(attrs...)
	}
	record := func(operation string, more ...attribute.KeyValue) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(set(operation, more...))}
	}
	l := &workerMeter{meter: m, receive: record(operationReceive), remove: record(operationDelete),
		change:  record(operationChange),
		consume: []metric.AddOption{metric.WithAttributeSet(set(operationReceive))},
		process: map[string][]metric.RecordOption{}}
	for _, class := range append(codeClasses(), "unreached", "throttled") {
		l.process[class] = record(operationProcess, keyErrorType.String(class))
	}
	l.process["done"] = record(operationProcess)
	return l
}

func (l *workerMeter) received(r worker.Received) {
	l.operation.Record(context.Background(), r.Duration.Seconds(), l.receive...)
	if r.Messages > 0 {
		l.consumed.Add(context.Background(), int64(r.Messages), l.consume...)
	}
}

func (l *workerMeter) deleted(d worker.Deleted) {
	l.operation.Record(context.Background(), d.Duration.Seconds(), l.remove...)
}

func (l *workerMeter) extended(e worker.Extended) {
	l.operation.Record(context.Background(), e.Duration.Seconds(), l.change...)
}

func (l *workerMeter) settled(s worker.Settled) {
	class := s.Outcome.String()
	if s.Outcome == queue.Failed {
		class = codeClass(s.Status)
	}
	l.meter.process.Record(context.Background(), s.Duration.Seconds(), l.process[class]...)
}

func (l *workerMeter) postponed(p worker.Postponed) {
	if p.Throttled {
		l.meter.process.Record(context.Background(), p.Duration.Seconds(), l.process[queue.Throttled.String()]...)
	}
}

// codeClass returns the class of an HTTP status, such as "2xx", or "none" without an
// answer.
func codeClass(status int) string {
	return [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}[codeIndex(status)]
}

// codeClasses returns all results of codeClass, in the order of codeIndex.
func codeClasses() (all []string) {
	for status := 0; status < 600; status += 100 {
		all = append(all, codeClass(status))
	}
	return all
}

func codeIndex(status int) int {
	if status < 100 || status > 599 {
		return 0
	}
	return status / 100
}

// seconds returns the histogram bounds for durations, from 1 ms to 1 h. They are dense
// at typical answer times of web apps and at common timeouts.
func seconds() []float64 {
	var bounds []float64
	for _, d := range []time.Duration{
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
		2500 * time.Millisecond, 5 * time.Second,
		10 * time.Second, 30 * time.Second, time.Minute, 3 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
	} {
		bounds = append(bounds, d.Seconds())
	}
	return bounds
}
