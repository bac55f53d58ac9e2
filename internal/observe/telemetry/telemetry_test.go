package telemetry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
	"tendril/queue"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func newFullTelemetry() *Telemetry {
	cw := NewCloudWatch(&fakePutter{}, &CloudWatchOptions{Name: "app"})
	t := New(&Options{Version: "1.2.3", CloudWatch: cw, Sources: Sources{
		Workers: func() []WorkerStatus {
			return []WorkerStatus{
				{Queue: "jobs", Target: "http://app/", AdaptiveLimit: 20, Status: worker.Status{Limit: 50, InWork: 7,
					Prefetched: 2, Waiting: 1,
					Receiving: true,
					Oldest:    90 * time.Second, LongestWait: 1500 * time.Millisecond}},
				{Queue: "mail", Target: "http://app/", AdaptiveLimit: 20, Status: worker.Status{Limit: 40,
					Reasons: []worker.Reason{{Block: worker.AppDown}, {Block: worker.BreakerOpen}}}},
			}
		},
		Queues: func() []Queue {
			return []Queue{{Name: "jobs", Visible: 12, InFlight: 7, Delayed: 1, OldestAge: 90 * time.Second, HasAge: true},
				{Name: "mail", Visible: 3}}
		},
		Processes: func() []supervisor.Status {
			return []supervisor.Status{{Name: "web", State: supervisor.Running, Ready: true},
				{Name: "clock", State: supervisor.Waiting}}
		},
		Tasks: func() []periodic.TaskStatus {
			return []periodic.TaskStatus{{Task: periodic.Task{Name: "report"}, Next: time.Unix(1000, 0)},
				{Task: periodic.Task{Name: "held"}, Paused: true, Next: time.Unix(1, 0)}}
		},
		Leader:  func() bool { return true },
		Desired: func() int { return 3 },
		Certificates: func() []Certificate {
			return []Certificate{{Option: "tls-cert", File: "/etc/tendril/queue.crt", Expires: time.Unix(2000, 0)}}
		},
		Limits: func() []Limit {
			return []Limit{{Target: "http://app/", Breaker: "half-open", RateRefused: 5,
				ConcurrencyRefused: 6, BreakerRefused: 7}}
		},
	}})
	emitAll(t)
	return t
}

func allMetrics() []metricInfo {
	return slices.SortedFunc(slices.Values(slices.Concat(countedMetrics(), readMetrics())),
		func(a, b metricInfo) int { return strings.Compare(a.name, b.name) })
}

func instructed(s worker.Settled, i queue.Instruction) worker.Settled {
	s.Instruction = i
	return s
}

func emitAll(t *Telemetry) {
	w := t.Worker("jobs", "http://app/")
	w.Received(worker.Received{Messages: 8})
	w.Received(worker.Received{})
	w.PollFailed(worker.PollFailed{})
	w.Duplicate(worker.Duplicate{})
	w.Settled(worker.Settled{Outcome: queue.Done, Status: 204, Attempt: 1, Duration: 20 * time.Millisecond,
		Wait: 2 * time.Second})
	w.Settled(worker.Settled{Outcome: queue.Done, Status: 200, Attempt: 3, Duration: 20 * time.Minute, Wait: time.Hour})
	w.Settled(worker.Settled{Outcome: queue.Failed, Status: 503, Attempt: 1, Duration: time.Second,
		Wait: 3 * time.Second, Late: true})
	w.Settled(worker.Settled{Outcome: queue.Failed, Attempt: 2, Duration: 3 * time.Minute})
	w.Settled(instructed(worker.Settled{Outcome: queue.Done, Status: 410}, queue.Drop))
	w.Settled(instructed(worker.Settled{Outcome: queue.Failed, Status: 422, DeadLettering: true}, queue.TerminalStatus))
	w.Settled(instructed(worker.Settled{Outcome: queue.Failed, Status: 422}, queue.TerminalStatus))
	w.DeadLettered(worker.DeadLettered{Instruction: queue.TerminalStatus})
	w.DeadLettered(worker.DeadLettered{Instruction: queue.DeadLetterNow})
	w.Settled(worker.Settled{Outcome: queue.Unreached})
	w.Settled(worker.Settled{Outcome: queue.Throttled, Status: 429})
	w.Postponed(worker.Postponed{Throttled: true, Status: 429})
	w.Postponed(worker.Postponed{Throttled: true, Status: 503})
	w.Postponed(worker.Postponed{})
	w.Deleted(worker.Deleted{Messages: 2})
	w.DeleteFailed(worker.DeleteFailed{})
	w.DeleteFailed(worker.DeleteFailed{Final: true})
	w.Extended(worker.Extended{Messages: 4})
	w.ChangeFailed(worker.ChangeFailed{Kind: "extend"})
	w.ChangeFailed(worker.ChangeFailed{Kind: "retry"})
	w.Returned(worker.Returned{Messages: 3})
	w.VisibilityExpired(worker.VisibilityExpired{})
	w.Expired(worker.Expired{})
	w.Filtered(worker.Filtered{})
	w.Stalled(worker.Stalled{})
	w.DeadLettered(worker.DeadLettered{})
	w.DeadLettered(worker.DeadLettered{Err: errors.New("refused")})
	d := t.Deliver("jobs", "http://app/")
	d.Connected(deliver.Connected{})
	d.Connected(deliver.Connected{Err: errors.New("refused")})
	d.AttributesDropped(deliver.AttributesDropped{Count: 2})
	d.Reconnected()
	s := t.Supervisor()
	s.Exited(supervisor.Exited{Process: "web", Exit: supervisor.Exit{Signal: "SIGKILL", Code: -1}})
	s.Restarting(supervisor.Restarting{Process: "web"})
	s.Exited(supervisor.Exited{Process: "web", Exit: supervisor.Exit{Err: errors.New("no such file")}})
	s.Restarting(supervisor.Restarting{Process: "web"})
	s.Restarting(supervisor.Restarting{Process: "clock"})
	s.GaveUp(supervisor.GaveUp{Process: "web"})
	s.LinesDropped(supervisor.LinesDropped{Process: "web", Lines: 9, Total: 90})
	p := t.Periodic()
	p.Enqueued(periodic.Enqueued{Task: "report", Lateness: 40 * time.Millisecond})
	p.Enqueued(periodic.Enqueued{Task: "report", Lateness: time.Hour, Manual: true})
	for i, r := range []periodic.Reason{periodic.ReasonMissed, periodic.ReasonOverlap, periodic.ReasonPaused,
		periodic.ReasonUncertain, periodic.ReasonAlready, "a new one"} {
		p.Skipped(periodic.Skipped{Task: "report", Count: i + 1, Reason: r})
	}
	p.Failed(periodic.Failed{Task: "report"})
	p.Failed(periodic.Failed{})
	l := t.Leader()
	l.Elected(leader.Elected{})
	l.Failed(leader.Failure{})
	b := t.Broker("mail")
	b.DeadLettered("jobs", "jobs-dead", []string{"a", "b"})
	b.Expired("jobs", 6)
}

func read(t testing.TB, tel *Telemetry, accept string) string {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, req)
	body, _ := io.ReadAll(rec.Body)
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, body)
	}
	var own []string
	for line := range strings.Lines(string(body)) {
		if strings.Contains(line, "tendril_") {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with: go test ./internal/observe/telemetry -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not up to date; read the difference and then: go test ./internal/observe/telemetry -update\n%s", path, diff)
	}
}

func TestEveryMetricHasTheRightValue(t *testing.T) {
	t.Parallel()
	text := read(t, newFullTelemetry(), "text/plain")
	text = strings.ReplaceAll(text, runtime.Version(), "GOVERSION")
	var stable []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "tendril_config_last_reload_timestamp_seconds ") {
			stable = append(stable, line)
		}
	}
	compareGolden(t, "testdata/metrics.txt", strings.Join(stable, ""))
}

func TestEveryMetricIsServed(t *testing.T) {
	t.Parallel()
	tel := newFullTelemetry()
	text := read(t, tel, "text/plain")
	for _, m := range allMetrics() {
		if !strings.Contains(text, "# TYPE "+m.name+" "+m.kind+"\n") {
			t.Errorf("%s is described as a %s and is not served so", m.name, m.kind)
		}
	}
	if n := strings.Count(text, "# TYPE "); n != len(allMetrics()) {
		t.Errorf("%d metrics are served and %d described", n, len(allMetrics()))
	}
}

func TestMetricsFollowPrometheusRules(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(newFullTelemetry().catalogue.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "tendril_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestOpenMetricsIsServed(t *testing.T) {
	t.Parallel()
	text := read(t, newFullTelemetry(), "application/openmetrics-text; version=1.0.0")
	for _, want := range []string{"# TYPE tendril_deliveries counter\n",
		`tendril_deliveries_total{code="2xx",outcome="ok",queue="jobs",target="http://app/"} 2.0`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestZeroOptionsAreValid(t *testing.T) {
	t.Parallel()
	tel := New(nil)
	text := read(t, tel, "")
	for _, absent := range []string{"tendril_leader ", "tendril_inflight", "tendril_sink_errors_total"} {
		if strings.Contains(text, "\n"+absent) {
			t.Errorf("%s is served without a source", absent)
		}
	}
	if !strings.Contains(text, "tendril_build_info") {
		t.Error("the version is missing")
	}
}

func TestReloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tel := New(nil)
		reloadOK := tel.catalogue.gauge("tendril_config_last_reload_successful")
		reloadAt := tel.catalogue.gauge("tendril_config_last_reload_timestamp_seconds")
		began := testutil.ToFloat64(reloadAt)
		time.Sleep(time.Minute)
		tel.Reloaded(errors.New("bad file"))
		if testutil.ToFloat64(reloadOK) != 0 || testutil.ToFloat64(reloadAt) != began {
			t.Error("a failed reload must show, and keep the time of the last good one")
		}
		time.Sleep(time.Minute)
		tel.Reloaded(nil)
		if testutil.ToFloat64(reloadOK) != 1 || testutil.ToFloat64(reloadAt) != began+120 {
			t.Error("a reload that works must show with its time")
		}
	})
}

func TestSettledReachesEverySink(t *testing.T) {
	c := newCollector(t)
	o := open(t, nil)
	cw := NewCloudWatch(&fakePutter{}, &CloudWatchOptions{Name: "app"})
	tel := New(&Options{CloudWatch: cw, OTLP: o})
	tel.Worker("jobs", "t").Settled(worker.Settled{Outcome: queue.Done, Status: 200, Duration: time.Second})
	if err := o.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if data := cw.tallies[0].endInterval(time.Now(), false); len(data) != 3 {
		t.Errorf("CloudWatch got %v", data)
	}
	if len(c.metrics) == 0 {
		t.Error("the collector got nothing")
	}
	text := read(t, tel, "")
	for _, want := range []string{`outcome="ok",queue="jobs",target="t"} 1`,
		`tendril_sink_errors_total{sink="otlp_traces"} 0`, `tendril_sink_errors_total{sink="cloudwatch"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestQueueNamesAreBounded(t *testing.T) {
	t.Parallel()
	tel := New(&Options{Sources: Sources{Queues: func() (all []Queue) {
		for i := range 2 * maxQueueNames {
			all = append(all, Queue{Name: fmt.Sprint("made-up-", i)})
		}
		return all
	}}})
	b := tel.Broker()
	for i := range 2 * maxQueueNames {
		b.Expired(fmt.Sprint("made-up-", i), 1)
	}
	text := read(t, tel, "")
	if n := strings.Count(text, "\ntendril_queue_expired_total{"); n != maxQueueNames+1 {
		t.Errorf("%d queues are counted apart, want %d and one for the others", n, maxQueueNames)
	}
	if !strings.Contains(text, fmt.Sprintf(`tendril_queue_expired_total{queue="other"} %d`, maxQueueNames)) {
		t.Error("the other queues are not counted together")
	}
	if n := strings.Count(text, `state="visible"`); n != maxQueueNames {
		t.Errorf("%d queues are read, want %d", n, maxQueueNames)
	}
}

func TestSettledDoesNotAllocate(t *testing.T) {
	settled := New(&Options{CloudWatch: NewCloudWatch(&fakePutter{}, nil)}).Worker("jobs", "t").Settled
	s := worker.Settled{Outcome: queue.Done, Status: 200, Attempt: 1, Duration: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() { settled(s) }); n != 0 {
		t.Errorf("a settled delivery allocates %v times", n)
	}
}

func BenchmarkSettled(b *testing.B) {
	s := worker.Settled{Outcome: queue.Done, Status: 200, Attempt: 1, Duration: 3 * time.Millisecond,
		Wait: 20 * time.Millisecond}
	b.Run("prometheus", func(b *testing.B) {
		settled := New(nil).Worker("jobs", "t").Settled
		b.ReportAllocs()
		for b.Loop() {
			settled(s)
		}
	})
	b.Run("prometheus and cloudwatch", func(b *testing.B) {
		settled := New(&Options{CloudWatch: NewCloudWatch(&fakePutter{}, nil)}).Worker("jobs", "t").Settled
		b.ReportAllocs()
		for b.Loop() {
			settled(s)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		settled := New(nil).Worker("jobs", "t").Settled
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				settled(s)
			}
		})
	})
}
