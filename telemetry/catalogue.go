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
