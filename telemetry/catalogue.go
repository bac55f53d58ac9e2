package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metricInfo describes one Prometheus metric, for the documentation.
type metricInfo struct {
	name   string
	kind   string // "counter", "gauge" or "histogram"
	help   string
	labels []string
}

// catalogue creates metrics and remembers their descriptions.
type catalogue struct {
	registry *prometheus.Registry
	list     []metricInfo
}

func (c *catalogue) add(name, kind, help string, labels []string) {
	c.list = append(c.list, metricInfo{name: name, kind: kind, help: help, labels: labels})
}

func (c *catalogue) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c.add(name, "counter", help, labels)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	c.registry.MustRegister(v)
	return v
}

func (c *catalogue) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	c.add(name, "gauge", help, labels)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	c.registry.MustRegister(v)
	return v
}

func (c *catalogue) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	c.add(name, "histogram", help, labels)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	c.registry.MustRegister(v)
	return v
}

// fromSource describes a metric whose value is read from a source.
func (c *catalogue) fromSource(kind prometheus.ValueType, name, help string, labels ...string) *sourceMetric {
	word := "gauge"
	if kind == prometheus.CounterValue {
		word = "counter"
	}
	c.add(name, word, help, labels)
	return &sourceMetric{prometheus.NewDesc(name, help, labels, nil), kind}
}

// sourceMetric is a metric whose value is read from a source.
type sourceMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends one value. A value with invalid labels is left out.
func (m *sourceMetric) send(out chan<- prometheus.Metric, value float64, labels ...string) {
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
