package telemetry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// otlpPlan is what the OTEL_ variables ask for.
type otlpSettings struct {
	traces, metrics bool
}

// planOTLP decides what to export. Nothing is exported unless an endpoint is
// set: a worker must not look for collectors that nobody named. The rest of the
// variables (endpoints, headers, certificates, time-outs, batches, the interval)
// is read by the exporters.
func readOTLPSettings(getenv func(string) string) (plan otlpSettings, err error) {
	if strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return otlpSettings{}, nil
	}
	if plan.traces, err = readSignal(getenv, "TRACES"); err != nil {
		return otlpSettings{}, err
	}
	if plan.metrics, err = readSignal(getenv, "METRICS"); err != nil {
		return otlpSettings{}, err
	}
	if plan.traces {
		err = checkSampler(getenv)
	}
	return plan, err
}

// planSignal decides for traces or for metrics.
func readSignal(getenv func(string) string, signal string) (on bool, err error) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	if getenv(endpoint) == "" && getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
		return false, nil
	}
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch strings.TrimSpace(getenv(exporter)) {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, fmt.Errorf("%s is %q: tendril exports by otlp, or not at all; set it to otlp or none", exporter, getenv(exporter))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := strings.TrimSpace(getenv(name)); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s is %q: tendril speaks http/protobuf; set it to that, and the endpoint to the collector's port for it (usually 4318)", name, protocol)
		}
	}
	return true, nil
}

// checkSampler refuses what the library would only complain of on standard
// error, and then ignore.
func checkSampler(getenv func(string) string) error {
	known := []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
	sampler := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	if sampler == "" {
		return nil
	}
	if !slices.Contains(known, sampler) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER is %q: use one of %s", sampler, strings.Join(known, ", "))
	}
	arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG"))
	if arg == "" || !strings.HasSuffix(sampler, "traceidratio") {
		return nil
	}
	if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: give the share of traces to keep, from 0 to 1", arg)
	}
	return nil
}

// spanQueueSize is OTEL_BSP_MAX_QUEUE_SIZE, or the specification's default.
func spanQueueSize(getenv func(string) string) int {
	if n, err := strconv.Atoi(strings.TrimSpace(getenv("OTEL_BSP_MAX_QUEUE_SIZE"))); err == nil && n > 0 {
		return n
	}
	return 2048
}
