package telemetry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type otlpSettings struct {
	traces, metrics bool
}

func readOTLPSettings(getenv func(string) string) (settings otlpSettings, err error) {
	if strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return otlpSettings{}, nil
	}
	if settings.traces, err = readSignal(getenv, "TRACES"); err != nil {
		return otlpSettings{}, err
	}
	if settings.metrics, err = readSignal(getenv, "METRICS"); err != nil {
		return otlpSettings{}, err
	}
	if settings.traces {
		err = checkSampler(getenv)
	}
	return settings, err
}

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
		return false, fmt.Errorf("invalid %s %q: use otlp or none", exporter, getenv(exporter))
	}

	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := strings.TrimSpace(getenv(name)); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("invalid %s %q: use http/protobuf and the collector's port for it, usually 4318", name,
				protocol)
		}
	}
	return true, nil
}

// checkSampler rejects invalid values, which the library would ignore.
func checkSampler(getenv func(string) string) error {
	known := []string{"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
	sampler := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	if sampler == "" {
		return nil
	}
	if !slices.Contains(known, sampler) {
		return fmt.Errorf("invalid OTEL_TRACES_SAMPLER %q: use one of %s", sampler, strings.Join(known, ", "))
	}

	arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG"))
	if arg == "" || !strings.HasSuffix(sampler, "traceidratio") {
		return nil
	}
	if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("invalid OTEL_TRACES_SAMPLER_ARG %q: use the ratio of traces to keep, 0 to 1", arg)
	}

	return nil
}

func spanQueueSize(getenv func(string) string) int {
	if n, err := strconv.Atoi(strings.TrimSpace(getenv("OTEL_BSP_MAX_QUEUE_SIZE"))); err == nil && n > 0 {
		return n
	}
	return 2048
}
