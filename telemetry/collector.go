package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// sourceCollector is a Prometheus collector of the metrics of one source.
type sourceCollector[T any] struct {
	source  cachedSource[T]
	metrics []*sourceMetric
	send    func(out samples, value T)
}

// samples takes the values of metrics.
type samples chan<- prometheus.Metric

// collect registers the metrics that define returns and whose values it sends. read is
// the source; without it the metrics are described and always absent.
func collect[T any](c *catalogue, read func(context.Context) T,
	define func(m *sourceMetrics) func(out samples, value T)) {
	metrics := sourceMetrics{catalogue: c}
	send := define(&metrics)
	c.registry.MustRegister(&sourceCollector[T]{source: cachedSource[T]{read: read}, metrics: metrics.all, send: send})
}

// Describe sends the descriptions of all metrics.
func (r *sourceCollector[T]) Describe(out chan<- *prometheus.Desc) {
	for _, m := range r.metrics {
		out <- m.desc
	}
}

// Collect sends the values of the source, if they arrive in time.
func (r *sourceCollector[T]) Collect(out chan<- prometheus.Metric) {
	if value, ok := r.source.get(); ok {
		r.send(out, value)
	}
}

// sourceMetrics are the metrics of one source.
type sourceMetrics struct {
	*catalogue
	all []*sourceMetric
}

// gauge describes a gauge whose value is read from the source.
func (s *sourceMetrics) gauge(name, help string, labels ...string) *sourceMetric {
	return s.describe(prometheus.GaugeValue, "gauge", name, help, labels)
}

// counter describes a counter whose value is read from the source.
func (s *sourceMetrics) counter(name, help string, labels ...string) *sourceMetric {
	return s.describe(prometheus.CounterValue, "counter", name, help, labels)
}

func (s *sourceMetrics) describe(kind prometheus.ValueType, word, name, help string, labels []string) *sourceMetric {
	s.add(name, word, help, labels)
	m := &sourceMetric{prometheus.NewDesc(name, help, labels, nil), kind}
	s.all = append(s.all, m)
	return m
}

// sourceMetric is a metric whose value is read from a source.
type sourceMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends one value. A value with invalid labels is left out.
func (m *sourceMetric) send(out samples, value float64, labels ...string) {
	if v, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...); err == nil {
		out <- v
	}
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
