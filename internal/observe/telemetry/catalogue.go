package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

type metricInfo struct {
	name   string
	kind   string
	labels []string
	help   string
}

type catalogue struct {
	registry *prometheus.Registry
	vectors  map[string]prometheus.Collector
	read     map[string]*prometheus.Desc
}

func newCatalogue() catalogue {
	c := catalogue{registry: prometheus.NewRegistry(), vectors: map[string]prometheus.Collector{},
		read: map[string]*prometheus.Desc{}}

	for _, m := range countedMetrics() {
		switch m.kind {
		case "counter":
			c.vectors[m.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
		case "gauge":
			c.vectors[m.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name, Help: m.help}, m.labels)
		default:
			buckets := durationBuckets
			if m.name == "tendril_message_attempts" {
				buckets = []float64{1, 2, 3, 4, 5, 7, 10, 15, 20, 50, 100}
			}
			c.vectors[m.name] = prometheus.NewHistogramVec(
				prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: buckets}, m.labels)
		}
		c.registry.MustRegister(c.vectors[m.name])
	}

	for _, m := range readMetrics() {
		c.read[m.name] = prometheus.NewDesc(m.name, m.help, m.labels, nil)
	}
	return c
}

func (c *catalogue) counter(name string, labels ...string) prometheus.Counter {
	return c.vectors[name].(*prometheus.CounterVec).WithLabelValues(labels...)
}

func (c *catalogue) gauge(name string, labels ...string) prometheus.Gauge {
	return c.vectors[name].(*prometheus.GaugeVec).WithLabelValues(labels...)
}

func (c *catalogue) histogram(name string, labels ...string) prometheus.Observer {
	return c.vectors[name].(*prometheus.HistogramVec).WithLabelValues(labels...)
}

type sourceCollector[T any] struct {
	catalogue *catalogue
	source    cachedSource[T]
	send      func(out samples, value T)
}

func collect[T any](c *catalogue, read func() T, send func(out samples, value T)) {
	c.registry.MustRegister(&sourceCollector[T]{catalogue: c, source: cachedSource[T]{read: read}, send: send})
}

func (*sourceCollector[T]) Describe(chan<- *prometheus.Desc) {}

func (r *sourceCollector[T]) Collect(out chan<- prometheus.Metric) {
	if value, ok := r.source.get(); ok {
		r.send(samples{r.catalogue, out}, value)
	}
}

type samples struct {
	catalogue *catalogue
	out       chan<- prometheus.Metric
}

func (s samples) send(name string, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	if v, err := prometheus.NewConstMetric(s.catalogue.read[name], kind, value, labels...); err == nil {
		s.out <- v
	}
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
