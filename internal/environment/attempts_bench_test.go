package environment

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/config"
	"tendril/internal/delivery/deliver"
	"tendril/internal/observe/telemetry"
	"tendril/internal/worker"
	"tendril/queue"
)

// BenchmarkFailing dead-letters messages after three failures, with and without recorded attempts, and reports medians
// and their ratio.
func BenchmarkFailing(b *testing.B) {
	answer := `{"error":"missing customer_id","detail":"` + strings.Repeat("x", 200) + `"}`
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(answer))
	}))
	defer app.Close()
	var rates, processor [2][]float64
	for i := range max(2*b.N, 6) {
		before := processorTime(b)
		rates[i%2] = append(rates[i%2], failAll(b, app.URL, i%2 == 1))
		processor[i%2] = append(processor[i%2], float64(processorTime(b)-before))
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	without, with := median(rates[0]), median(rates[1])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(without, "attempts/s-without")
	b.ReportMetric(with, "attempts/s-recorded")
	b.ReportMetric(100*with/without, "%")
	b.ReportMetric(100*median(processor[0])/median(processor[1]), "%-by-cpu")
}

// processorTime includes the app's CPU time, which is more reliable than elapsed time on a busy machine.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func failAll(b *testing.B, address string, recorded bool) float64 {
	const messages, receives = 2000, 3
	dead := make(chan int, messages)
	br, err := broker.Open(b.TempDir(), &broker.Options{Events: &broker.Events{
		DeadLettered: func(_, _ string, ids []string) { dead <- len(ids) }}})
	if err != nil {
		b.Fatal(err)
	}
	defer br.Close()
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, br.ARN("dead"), receives)
	for _, name := range []string{"dead", "work"} {
		if err := br.CreateQueue(b.Context(), name, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := br.SetAttributes(b.Context(), "work", map[string]string{"RedrivePolicy": policy}); err != nil {
		b.Fatal(err)
	}
	q := br.Queue("work")
	batch := slices.Repeat([]queue.Outgoing{{Body: strings.Repeat("x", 500)}}, queue.MaxBatch)
	for range messages / len(batch) {
		if _, err := q.Send(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	app, err := deliver.NewClient(&deliver.Options{Target: address})
	if err != nil {
		b.Fatal(err)
	}
	defer app.Close()
	cfg, err := config.Load(config.Sources{Flags: map[string]string{"data-dir": b.TempDir(), "queue": "work"}})
	if err != nil {
		b.Fatal(err)
	}
	e := New(Options{Config: cfg, Logger: discard()})
	e.queues.broker = br
	e.observe.telemetry = telemetry.New(nil)
	e.work.depths = newDepthCounter(nil, br)
	l := &pipeline{target: &target{name: address}, queue: &workQueue{source: q, name: "work", dead: "dead",
		embedded: recorded, inForce: e.settings}}
	zero := time.Duration(0)
	w := worker.New(q, app, &worker.Options{ErrorVisibilityTimeout: &zero, DeleteLinger: -1, UncountedReturns: true,
		Events: e.observe.workerEvents(l)})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- w.Run(ctx, context.Background()) }()
	for left := messages; left > 0; {
		left -= <-dead
	}
	took := time.Since(began)
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	if recorded {
		groups, err := br.DeadLetterReasons(b.Context(), "dead")
		if err != nil || len(groups) != 1 || groups[0].Count != messages || groups[0].Reason == "" {
			b.Errorf("groups %+v, %v", groups, err)
		}
	}
	return messages * receives / took.Seconds()
}
