package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metric describes one metric of Prometheus, for documentation.
type Metric struct {
	// Name is the metric's full name, Type "counter", "gauge" or "histogram".
	Name, Type string
	// Help says in a sentence what it tells.
	Help string
	// Labels are the names of its labels.
	Labels []string
}

// catalogue makes metrics and remembers what it made.
type catalogue struct {
	registry *prometheus.Registry
	list     []Metric
}

func (c *catalogue) add(name, kind, help string, labels []string) {
	c.list = append(c.list, Metric{Name: name, Type: kind, Help: help, Labels: labels})
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

// read describes a metric that is read when somebody asks for it.
func (c *catalogue) read(kind prometheus.ValueType, name, help string, labels ...string) *sourceMetric {
	word := "gauge"
	if kind == prometheus.CounterValue {
		word = "counter"
	}
	c.add(name, word, help, labels)
	return &sourceMetric{prometheus.NewDesc(name, help, labels, nil), kind}
}

// readMetric is one metric that is read.
type sourceMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// tell sends one value. A value that does not fit is left out, as is any that a
// source names twice.
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
