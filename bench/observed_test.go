package bench

import (
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkObserved compares a run with full observability (a log line and, in two cases, a trace per delivery, OTLP
// metrics and CloudWatch) with a run without any.
func BenchmarkObserved(b *testing.B) {
	bin := buildTendril(b)
	sink := role(b, "sink")
	for _, c := range []struct {
		name                  string
		connections, messages int
		api, think            time.Duration
		traces                string
	}{
		{"everything", 50, 12000, 10 * time.Millisecond, 10 * time.Millisecond, "always_on"},
		{"everything", 50, 40000, 0, 0, "always_on"},
		{"without traces", 50, 40000, 0, 0, "always_off"},
	} {
		b.Run(fmt.Sprintf("%s/c=%d/api=%v/think=%v", c.name, c.connections, c.api, c.think), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK="+c.think.String())
			run := func(env []string, args ...string) daemonRun {
				b.Helper()
				get(b, app+"/reset", nil)
				sqs := role(b, "sqs", fmt.Sprintf("BENCH_MESSAGES=%d", c.messages), "BENCH_API="+c.api.String())
				d := startDaemon(b, exec.Command(bin, append([]string{"up", "--queue-url", queueAt(sqs), "--target", app + "/",
					"--http-connections", fmt.Sprint(c.connections)}, args...)...),
					append(append(env, credentials...), "AWS_ENDPOINT_URL_SQS="+sqs))
				s := waitFor(b, app, int64(c.messages))
				used, _, _ := d.stop(b)
				return daemonRun{perSecond: s.perSecond(), cpuPerMessage: float64(used.Microseconds()) / float64(c.messages)}
			}
			var share, more []float64
			for range b.N {
				silent := run(nil, "--console", "off", "--quiet")
				loud := run([]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT=" + sink, "OTEL_TRACES_SAMPLER=" + c.traces, "OTEL_METRIC_EXPORT_INTERVAL=1000",
					"AWS_ENDPOINT_URL_CLOUDWATCH=" + sink,
				}, "--console", "127.0.0.1:0", "--data-dir", b.TempDir(), "--log-sample", "0", "--cloudwatch", "on", "--name",
					"bench", "--metrics-interval", "1")
				share = append(share, 100*loud.perSecond/silent.perSecond)
				more = append(more, loud.cpuPerMessage-silent.cpuPerMessage)
			}
			b.ReportMetric(median(share), "%silent")
			b.ReportMetric(median(more), "more-cpu-µs/msg")
			b.ReportMetric(0, "ns/op")
		})
	}
}
