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
	// Version is tendril's own, for tendril_build_info; may be "".
	Version string
	// Sources are asked when somebody reads the metrics.
	Sources Sources
	// CloudWatch and OTLP hear of what workers do too; each may be nil. Starting
	// and stopping them is the caller's.
	CloudWatch *CloudWatch
	OTLP       *OTLP
	// Logger hears of metrics that could not be collected; nil for nobody.
	Logger *slog.Logger
}

// Telemetry counts what happens. Its methods are safe for concurrent use.
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

// New makes the metrics. It starts nothing.
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
	t.reloadOK = c.gauge("tendril_config_last_reload_successful", "Whether the last reload was put in force, 1 or 0; 1 before the first.").WithLabelValues()
	t.reloadAt = c.gauge("tendril_config_last_reload_timestamp_seconds", "When a reload was last put in force, or the process began, in seconds since 1970.").WithLabelValues()
	t.Reloaded(nil)
	c.gauge("tendril_build_info", "The version that runs; always 1.", "version", "goversion").WithLabelValues(t.opts.Version, runtime.Version()).Set(1)
	t.registry.MustRegister(newSourceCollector(c, &t.opts))
	slices.SortFunc(c.list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// Handler serves the metrics to Prometheus, as OpenMetrics where it asks for
// that. Readers that come at the same time share one collection.
func (t *Telemetry) Handler() http.Handler {
	opts := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, CoalesceGather: true}
	if t.opts.Logger != nil {
		opts.ErrorLog = slog.NewLogLogger(t.opts.Logger.Handler(), slog.LevelWarn)
	}
	return promhttp.HandlerFor(t.registry, opts)
}

// Metrics describes all metrics of tendril's own in the order of their names.
// Beside them are go_* and process_*, those of every Go program.
func (t *Telemetry) Metrics() []Metric { return slices.Clone(t.list) }

// Reloaded tells how a reload of the settings or the tasks ended; a nil error is
// a success.
func (t *Telemetry) Reloaded(err error) {
	t.reloadOK.Set(boolValue(err == nil))
	if err == nil {
		t.reloadAt.Set(timestamp(time.Now()))
	}
}
