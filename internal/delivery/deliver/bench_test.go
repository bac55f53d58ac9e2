//go:build unix

package deliver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tendril/queue"
)

// BenchmarkDeliver compares Deliver with a net/http client: "ratio" is Deliver's rate divided by the client's,
// "cpu-ratio" the client's CPU time divided by Deliver's, both including the app.
func BenchmarkDeliver(b *testing.B) {
	for _, connections := range []int{1, 10, 50} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) { benchmarkDeliver(b, connections) })
	}
}

func benchmarkDeliver(b *testing.B, connections int) {
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	defer app.Close()
	h, err := NewClient(&Options{Target: app.URL, QueueName: "jobs"})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	m := &queue.Message{
		ID: "059f36b4-87a3-44ab-83d2-661975830a7d", Body: strings.Repeat("x", 200), ReceiveCount: 1, SenderID: "000000000000",
		SentAt: time.Unix(1e9, 0), FirstReceivedAt: time.Unix(1e9, 0),
		Attributes: []queue.Attribute{{Name: "kind", Type: "String", Value: "thumbnail"},
			{Name: "size", Type: "Number", Value: "320"}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	deliver := func() {
		if r := h.Deliver(ctx, m); r.Outcome != queue.Done {
			b.Error(r.Reason, r.Err)
		}
	}
	bare := bareClient(b, app.URL, m, connections)
	const turn = 2000
	var ours, theirs cost
	b.ReportAllocs()
	for b.Loop() {
		theirs.add(spend(connections, turn, bare))
		ours.add(spend(connections, turn, deliver))
	}
	n := float64(b.N * turn)
	b.ReportMetric(theirs.wall.Seconds()/ours.wall.Seconds(), "ratio")
	b.ReportMetric(theirs.cpu.Seconds()/ours.cpu.Seconds(), "cpu-ratio")
	b.ReportMetric(float64(ours.cpu.Microseconds())/n, "cpu-µs/POST")
	b.ReportMetric(n/ours.wall.Seconds(), "POST/s")
	b.ReportMetric(0, "ns/op")
}

func bareClient(b *testing.B, url string, m *queue.Message, connections int) func() {
	transport := &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return func() {
		r, err := http.NewRequest(http.MethodPost, url+"/", strings.NewReader(m.Body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"aws-sqsd/3.0 tendril"},
			"X-Aws-Sqsd-Msgid": {m.ID}, "X-Aws-Sqsd-Queue": {"jobs"}, "X-Aws-Sqsd-Receive-Count": {"1"},
			"X-Aws-Sqsd-First-Received-At": {"2001-09-09T01:46:40Z"}, "X-Aws-Sqsd-Sent-At": {"2001-09-09T01:46:40Z"},
			"X-Aws-Sqsd-Path": {"/"}, "X-Aws-Sqsd-Sender-Id": {m.SenderID},
			"X-Aws-Sqsd-Attr-Kind": {"thumbnail"}, "X-Aws-Sqsd-Attr-Size": {"320"},
		}
		answer, err := client.Do(r)
		if err != nil {
			b.Error(err)
			return
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

type cost struct{ wall, cpu time.Duration }

func (c *cost) add(other cost) { c.wall += other.wall; c.cpu += other.cpu }

func spend(goroutines, n int, f func()) cost {
	var left atomic.Int64
	left.Store(int64(n))
	start, used := time.Now(), cpuTime()
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				f()
			}
		})
	}
	running.Wait()
	return cost{wall: time.Since(start), cpu: cpuTime() - used}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
