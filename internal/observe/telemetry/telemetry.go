package telemetry

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure [New]. A nil *Options is valid.
type Options struct {
	Version string
	Sources Sources
	// The caller starts and stops CloudWatch and OTLP; either may be nil.
	CloudWatch *CloudWatch
	OTLP       *OTLP
	Logger     *slog.Logger
}

// Telemetry counts events. It is safe for concurrent use.
type Telemetry struct {
	catalogue catalogue
	opts      Options
	queues    boundedNames
}

// New returns a Telemetry.
func New(opts *Options) *Telemetry {
	t := &Telemetry{catalogue: newCatalogue()}
	if opts != nil {
		t.opts = *opts
	}
	t.catalogue.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Metrics without labels exist from the start.
	for _, name := range []string{"tendril_cron_registry_errors_total", "tendril_leader_terms_total",
		"tendril_leader_store_errors_total"} {
		t.catalogue.counter(name)
	}
	t.catalogue.histogram("tendril_cron_lateness_seconds")
	t.Reloaded(nil)
	t.catalogue.gauge("tendril_build_info", t.opts.Version, runtime.Version()).Set(1)
	t.opts.Sources.collect(&t.catalogue, t.sinks)
	return t
}

func (t *Telemetry) sinks() []sinkStats {
	all := t.opts.OTLP.stats()
	if t.opts.CloudWatch != nil {
		all = append(all, t.opts.CloudWatch.stats())
	}
	return all
}

// Handler serves metrics to Prometheus. Concurrent requests share one collection.
func (t *Telemetry) Handler() http.Handler {
	opts := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, CoalesceGather: true}
	if t.opts.Logger != nil {
		opts.ErrorLog = slog.NewLogLogger(t.opts.Logger.Handler(), slog.LevelWarn)
	}
	return promhttp.HandlerFor(t.catalogue.registry, opts)
}

// Reloaded records the result of reloading settings or tasks.
func (t *Telemetry) Reloaded(err error) {
	t.catalogue.gauge("tendril_config_last_reload_successful").Set(boolValue(err == nil))
	if err == nil {
		t.catalogue.gauge("tendril_config_last_reload_timestamp_seconds").Set(timestamp(time.Now()))
	}
}
