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

var credentials = []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1",
	"AWS_EC2_METADATA_DISABLED=true"}

// BenchmarkDaemon is the comparison in docs/performance.md. It reports the throughput and its share of the ceiling, the
// CPU time and calls per message, and the peak memory. A warm-up excludes the startup.
func BenchmarkDaemon(b *testing.B) {
	bin := buildTendril(b)
	for _, c := range []struct {
		connections, messages int
		others                int // messages for the other programs, which are slower
		api, think            time.Duration
	}{
		{10, 3000, 1500, 10 * time.Millisecond, 10 * time.Millisecond},
		{50, 12000, 6000, 10 * time.Millisecond, 10 * time.Millisecond},
		{10, 40000, 10000, 0, 0},
		{10, 40000, 3000, 10 * time.Millisecond, 0},
		{50, 40000, 10000, 0, 0},
	} {
		b.Run(fmt.Sprintf("c=%d/api=%v/think=%v", c.connections, c.api, c.think), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK="+c.think.String())
			ceilings := map[int]float64{} // per round, for all programs
			for _, program := range consumers {
				b.Run(program.name, func(b *testing.B) {
					var share, rate, cpu, calls, memory []float64
					for round := range b.N {
						if ceilings[round] == 0 {
							ceilings[round] = runCeiling(b, app, c.messages, c.connections)
						}
						messages := c.others
						if program.name == "tendril" {
							messages = c.messages
						}
						run := program.run(b, bin, app, messages, c.connections, c.api)
						share = append(share, 100*run.perSecond/ceilings[round])
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

const warmUp = 2000

func (c consumer) run(b *testing.B, bin, app string, n, connections int, api time.Duration) daemonRun {
	b.Helper()
	sqs := role(b, "sqs", fmt.Sprintf("BENCH_MESSAGES=%d", warmUp), "BENCH_API="+api.String())
	d, err := c.start(b, bin, sqs, app, connections)
	if err != nil {
		b.Skip(err)
	}
	before, used := awaitDeleted(b, sqs, warmUp, d), d.cpu(b)
	get(b, app+"/reset", nil)
	get(b, fmt.Sprintf("%s/add?n=%d", sqs, n), nil)
	s := waitFor(b, app, int64(n), d)
	after := awaitDeleted(b, sqs, warmUp+int64(n), d)
	used = d.cpu(b) - used
	_, rss, _ := d.stop(b)
	return daemonRun{
		perSecond:       s.perSecond(),
		cpuPerMessage:   float64(used.Microseconds()) / float64(n),
		callsPerMessage: float64(after.calls()-before.calls()) / float64(n),
		memory:          float64(rss) / 1e6,
	}
}

func awaitDeleted(b *testing.B, sqs string, n int64, d *daemon) (now counts) {
	b.Helper()
	await(b, fmt.Sprintf("%d messages were not deleted", n), func() bool {
		get(b, sqs+"/stats", &now)
		return now["deleted"] >= n
	}, d)
	return now
}

type counts map[string]int64

// calls returns how many calls Amazon SQS would bill.
func (c counts) calls() int64 {
	return c["ReceiveMessage"] + c["DeleteMessageBatch"] + c["DeleteMessage"] + c["ChangeMessageVisibility"] +
		c["ChangeMessageVisibilityBatch"]
}

type daemonRun struct{ perSecond, cpuPerMessage, callsPerMessage, memory float64 }

// BenchmarkEmbedded drains a prefilled embedded queue, with worker and store in one process.
func BenchmarkEmbedded(b *testing.B) {
	bin := buildTendril(b)
	for _, c := range []struct{ connections, messages int }{{10, 40000}, {50, 40000}} {
		b.Run(fmt.Sprintf("c=%d", c.connections), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK=0s")
			var share, rate, cpu, memory []float64
			for range b.N {
				dir := b.TempDir()
				preload(b, bin, dir, c.messages)
				ceiling := runCeiling(b, app, c.messages, c.connections)
				get(b, app+"/reset", nil)
				d := startDaemon(b, exec.Command(bin, "up", "--data-dir", dir, "--name", "bench", "--listen", "127.0.0.1:0",
					"--console", "off", "--target", app+"/", "--http-connections", fmt.Sprint(c.connections)), nil)
				s := waitFor(b, app, int64(c.messages))
				used, rss, _ := d.stop(b)
				memory = append(memory, float64(rss)/1e6)
				share = append(share, 100*s.perSecond()/ceiling)
				rate = append(rate, s.perSecond())
				cpu = append(cpu, float64(used.Microseconds())/float64(c.messages))
			}
			b.ReportMetric(median(share), "%ceiling")
			b.ReportMetric(median(rate), "msg/s")
			b.ReportMetric(median(cpu), "cpu-µs/msg")
			b.ReportMetric(median(memory), "peak-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func preload(b *testing.B, bin, dir string, n int) {
	b.Helper()
	lines := filepath.Join(b.TempDir(), "bodies.ndjson")
	if err := os.WriteFile(lines, []byte(strings.Repeat(body+"\n", n)), 0o600); err != nil {
		b.Fatal(err)
	}
	d := startDaemon(b, exec.Command(bin, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console",
		"127.0.0.1:0"), nil)
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

// BenchmarkIdle runs all programs for 40 seconds without messages, after a first one. It reports the time to the first
// receive, the receives per minute, the CPU time, the resident memory, and the time from SIGTERM to exit.
func BenchmarkIdle(b *testing.B) {
	const watch = 40 * time.Second
	bin := buildTendril(b)
	app := role(b, "app", "BENCH_THINK=0s")
	type idle struct {
		name, sqs string
		d         *daemon
		before    counts
		used      time.Duration
	}
	var all []*idle
	for _, program := range consumers {
		sqs := role(b, "sqs", "BENCH_MESSAGES=1", "BENCH_API=0s")
		if d, err := program.start(b, bin, sqs, app, 50); err != nil {
			b.Log(err)
		} else {
			awaitDeleted(b, sqs, 1, d) // one by one, so that the programs do not slow each other down
			all = append(all, &idle{name: program.name, sqs: sqs, d: d})
		}
	}
	time.Sleep(3 * time.Second)
	for _, i := range all {
		get(b, i.sqs+"/stats", &i.before)
		i.used = i.d.cpu(b)
	}
	time.Sleep(watch)
	for _, i := range all {
		i.used = i.d.cpu(b) - i.used
		var after counts
		get(b, i.sqs+"/stats", &after)
		memory := i.d.memory(b)
		_, _, took := i.d.stop(b)
		b.Run(i.name, func(b *testing.B) {
			b.ReportMetric(float64(after["first"]-i.d.started.UnixNano())/1e6, "start-ms")
			b.ReportMetric(float64(after["ReceiveMessage"]-i.before["ReceiveMessage"])/watch.Minutes(), "polls/min")
			b.ReportMetric(100*i.used.Seconds()/watch.Seconds(), "%cpu")
			b.ReportMetric(float64(memory)/1e6, "MB")
			b.ReportMetric(float64(took.Milliseconds()), "exit-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
