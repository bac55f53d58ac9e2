package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// credentials for the stand-in, which accepts any.
var credentials = []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1",
	"AWS_EC2_METADATA_DISABLED=true"}

// BenchmarkDaemon is the table of docs/performance.md: for each combination of
// concurrency, latency of the queue's API and time the app thinks, the share of
// the ceiling, the daemon's CPU per message and its calls per message.
// Rounds of ceiling and daemon are interleaved; the median is reported.
func BenchmarkDaemon(b *testing.B) {
	bin := buildTendril(b)
	for _, c := range []struct {
		connections, messages int
		api, think            time.Duration
	}{
		{10, 3000, 10 * time.Millisecond, 10 * time.Millisecond},
		{50, 12000, 10 * time.Millisecond, 10 * time.Millisecond},
		{10, 40000, 0, 0},
		{10, 40000, 10 * time.Millisecond, 0},
		{50, 40000, 0, 0},
	} {
		b.Run(fmt.Sprintf("c=%d/api=%v/think=%v", c.connections, c.api, c.think), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK="+c.think.String())
			var share, rate, cpu, calls, memory []float64
			for range max(b.N, 3) {
				ceiling := runCeiling(b, app, c.messages, c.connections)
				get(b, app+"/reset", nil)
				run := runDaemon(b, bin, app, c.messages, c.connections, c.api)
				share = append(share, 100*run.perSecond/ceiling)
				rate = append(rate, run.perSecond)
				cpu = append(cpu, run.cpuPerMessage)
				calls = append(calls, run.callsPerMessage)
				memory = append(memory, run.memory)
			}
			b.ReportMetric(median(share), "%ceiling")
			b.ReportMetric(median(rate), "msg/s")
			b.ReportMetric(median(cpu), "cpu-µs/msg")
			b.ReportMetric(median(calls), "calls/msg")
			b.ReportMetric(median(memory), "peak-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func runCeiling(b *testing.B, app string, n, c int) float64 {
	b.Helper()
	get(b, app+"/reset", nil)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BENCH_ROLE=ceiling", "BENCH_URL="+app,
		fmt.Sprintf("BENCH_MESSAGES=%d", n), fmt.Sprintf("BENCH_CONNECTIONS=%d", c))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("ceiling: %v\n%s", err, out)
	}
	return waitFor(b, app, int64(n)).perSecond()
}

type daemonRun struct{ perSecond, cpuPerMessage, callsPerMessage, memory float64 }

func runDaemon(b *testing.B, bin, app string, n, c int, api time.Duration) daemonRun {
	b.Helper()
	sqs := role(b, "sqs", fmt.Sprintf("BENCH_MESSAGES=%d", n), "BENCH_API="+api.String())
	d := startDaemon(b, bin, append(credentials, "AWS_ENDPOINT_URL_SQS="+sqs), "up",
		"--queue-url", sqs+"/000000000000/bench", "--target", app+"/", "--console", "off",
		"--http-connections", fmt.Sprint(c))
	s := waitFor(b, app, int64(n))
	used, rss, _ := d.stop(b)
	var calls map[string]int64
	get(b, sqs+"/stats", &calls)
	return daemonRun{
		perSecond:       s.perSecond(),
		cpuPerMessage:   float64(used.Microseconds()) / float64(n),
		callsPerMessage: float64(calls["ReceiveMessage"]+calls["DeleteMessageBatch"]+calls["DeleteMessage"]) / float64(n),
		memory:          float64(rss) / 1e6,
	}
}

// BenchmarkEmbedded drains the embedded queue, worker and store in one process,
// against the ceiling of the same run. The messages are put there beforehand.
func BenchmarkEmbedded(b *testing.B) {
	bin := buildTendril(b)
	for _, c := range []struct{ connections, messages int }{{10, 40000}, {50, 40000}} {
		b.Run(fmt.Sprintf("c=%d", c.connections), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK=0s")
			var share, rate, cpu []float64
			for range max(b.N, 3) {
				dir := b.TempDir()
				preload(b, bin, dir, c.messages)
				ceiling := runCeiling(b, app, c.messages, c.connections)
				get(b, app+"/reset", nil)
				d := startDaemon(b, bin, nil, "up", "--data-dir", dir, "--name", "bench", "--listen", "127.0.0.1:0", "--console",
					"off",
					"--target", app+"/", "--http-connections", fmt.Sprint(c.connections))
				s := waitFor(b, app, int64(c.messages))
				used, _, _ := d.stop(b)
				share = append(share, 100*s.perSecond()/ceiling)
				rate = append(rate, s.perSecond())
				cpu = append(cpu, float64(used.Microseconds())/float64(c.messages))
			}
			b.ReportMetric(median(share), "%ceiling")
			b.ReportMetric(median(rate), "msg/s")
			b.ReportMetric(median(cpu), "cpu-µs/msg")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// preload puts n messages into the queue "bench" of a data directory.
func preload(b *testing.B, bin, dir string, n int) {
	b.Helper()
	lines := filepath.Join(b.TempDir(), "bodies.ndjson")
	if err := os.WriteFile(lines, []byte(strings.Repeat(body+"\n", n)), 0o600); err != nil {
		b.Fatal(err)
	}
	d := startDaemon(b, bin, nil, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")
	run := func(args ...string) {
		b.Helper()
		for limit := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			out, err := exec.Command(bin, append(args, "--data-dir", dir)...).CombinedOutput()
			if err == nil {
				return
			}
			if time.Now().After(limit) {
				b.Fatalf("tendril %v: %v\n%s", args, err, out)
			}
		}
	}
	run("queues", "create", "bench")
	run("send", "--queue", "bench", "--ndjson", "--raw", "--file", lines)
	d.stop(b)
}

// BenchmarkIdle watches an idle daemon for half a minute: calls a minute,
// processor time, resident memory, and the time from TERM to the exit.
func BenchmarkIdle(b *testing.B) {
	bin := buildTendril(b)
	app := role(b, "app", "BENCH_THINK=0s")
	for range b.N {
		sqs := role(b, "sqs", "BENCH_MESSAGES=1", "BENCH_API=0s")
		d := startDaemon(b, bin, append(credentials, "AWS_ENDPOINT_URL_SQS="+sqs), "up",
			"--queue-url", sqs+"/000000000000/bench", "--target", app+"/", "--console", "127.0.0.1:0",
			"--data-dir", b.TempDir())
		waitFor(b, app, 1)
		time.Sleep(3 * time.Second) // the receives of the first message end
		var before, after map[string]int64
		get(b, sqs+"/stats", &before)
		used := d.cpu(b)
		const watch = 40 * time.Second
		time.Sleep(watch)
		used = d.cpu(b) - used
		get(b, sqs+"/stats", &after)
		memory := d.memory(b)
		_, _, took := d.stop(b)
		b.ReportMetric(float64(after["ReceiveMessage"]-before["ReceiveMessage"])/watch.Minutes(), "polls/min")
		b.ReportMetric(100*used.Seconds()/watch.Seconds(), "%cpu")
		b.ReportMetric(float64(memory)/1e6, "MB")
		b.ReportMetric(float64(took.Milliseconds()), "exit-ms")
		b.ReportMetric(0, "ns/op")
	}
}
