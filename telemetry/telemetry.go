package telemetry

import (
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure [New]. A nil *Options is valid.
type Options struct {
	// Version is the version of tendril, for tendril_build_info; may be "".
	Version string
	// Sources are called when the metrics are read.
	Sources Sources
	// CloudWatch and OTLP get the events of workers as well; each may be nil. The
	// caller starts and stops them.
	CloudWatch *CloudWatch
	OTLP       *OTLP
	// Logger gets errors of the collection of metrics; may be nil.
	Logger *slog.Logger
}

// Telemetry counts events. Its methods are safe for concurrent use.
type Telemetry struct {
	catalogue
	opts Options

	worker   workerMetrics
	app      appMetrics
	periodic periodicMetrics
	leader   leaderMetrics
	broker   brokerMetrics

	reloadOK, reloadAt prometheus.Gauge
}

// New creates the metrics. It starts nothing.
func New(opts *Options) *Telemetry {
	t := &Telemetry{catalogue: catalogue{registry: prometheus.NewRegistry()}}
	if opts != nil {
		t.opts = *opts
	}
	c := &t.catalogue
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.worker = newWorkerMetrics(c)
	t.app = newAppMetrics(c)
	t.periodic = newPeriodicMetrics(c)
	t.leader = newLeaderMetrics(c)
	t.broker = newBrokerMetrics(c)
	t.reloadOK = c.gauge("tendril_config_last_reload_successful",
		"Whether the last reload succeeded, 1 or 0; 1 before the first.").WithLabelValues()
	t.reloadAt = c.gauge("tendril_config_last_reload_timestamp_seconds",
		"When the last successful reload happened, or the process started, in seconds since 1970.").WithLabelValues()
	t.Reloaded(nil)
	c.gauge("tendril_build_info", "The running version; always 1.", "version",
		"goversion").WithLabelValues(t.opts.Version, runtime.Version()).Set(1)
	t.opts.Sources.register(c, t.sinks)
	slices.SortFunc(c.list, func(a, b metricInfo) int { return strings.Compare(a.name, b.name) })
	return t
}

// sinks returns the failures of what is sent elsewhere.
func (t *Telemetry) sinks() []sinkStats {
	all := t.opts.OTLP.stats()
	if t.opts.CloudWatch != nil {
		all = append(all, t.opts.CloudWatch.stats())
	}
	return all
}

// Handler serves the metrics to Prometheus, in OpenMetrics format if requested.
// Concurrent requests share one collection.
func (t *Telemetry) Handler() http.Handler {
	opts := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, CoalesceGather: true}
	if t.opts.Logger != nil {
		opts.ErrorLog = slog.NewLogLogger(t.opts.Logger.Handler(), slog.LevelWarn)
	}
	return promhttp.HandlerFor(t.registry, opts)
}

// Reloaded records the result of a reload of the settings or the tasks; nil means
// success.
func (t *Telemetry) Reloaded(err error) {
	t.reloadOK.Set(boolValue(err == nil))
	if err == nil {
		t.reloadAt.Set(timestamp(time.Now()))
	}
}
