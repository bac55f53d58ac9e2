package broker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tendril/queue"
)

// The benchmarks report ratios to two limits of the machine, measured in the
// same run: F, lone 4 KiB appends with fdatasync per second, and P, raw POSTs
// per second over 50 loopback connections.

// syncsPerSecond measures F in dir.
func syncsPerSecond(b *testing.B, dir string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "appends"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	start, n := time.Now(), 0
	for ; time.Since(start) < 700*time.Millisecond; n++ {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// poster POSTs to a server of its own that answers at once.
type poster struct {
	client *http.Client
	url    string
	stop   func()
}

const postConnections = 50

func newPoster(b *testing.B) *poster {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	go server.Serve(l)
	transport := &http.Transport{MaxIdleConnsPerHost: postConnections, DisableCompression: true}
	return &poster{
		client: &http.Client{Transport: transport}, url: "http://" + l.Addr().String(),
		stop: func() { transport.CloseIdleConnections(); server.Close() },
	}
}

func (p *poster) post(body string) error {
	resp, err := p.client.Post(p.url, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// postsPerSecond measures P.
func postsPerSecond(b *testing.B, p *poster) float64 {
	b.Helper()
	var n atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for range postConnections {
		group.Go(func() {
			for time.Since(start) < 700*time.Millisecond {
				if p.post(payload) != nil {
					return
				}
				n.Add(1)
			}
		})
	}
	group.Wait()
	return float64(n.Load()) / time.Since(start).Seconds()
}

var payload = strings.Repeat("x", 200)

func quiet() *Options { return &Options{NoWaits: true, Logger: slog.New(slog.DiscardHandler)} }

func openBench(b *testing.B) *Broker {
	b.Helper()
	br, err := Open(benchDir(b), quiet())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if !br.closing.Load() {
			br.Close()
		}
	})
	return br
}

// benchDir is a directory on the disk to be measured: TENDRIL_BENCH_DIR, or
// where temporary files go.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("TENDRIL_BENCH_DIR"), "broker")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// preload sends n messages of 200 bytes as fast as it goes.
func preload(b *testing.B, q *Queue, n int) {
	b.Helper()
	const callers = 64
	var group sync.WaitGroup
	batch := make([]queue.Outgoing, queue.MaxBatch)
	for i := range batch {
		batch[i].Body = payload
	}
	for c := range callers {
		group.Go(func() {
			for i := c; i < n/queue.MaxBatch; i += callers {
				if _, err := q.Send(context.Background(), batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkSend(b *testing.B) {
	for _, c := range []struct {
		callers, size int
	}{{1, 200}, {16, 200}, {16, 10_000}} {
		b.Run(fmt.Sprintf("callers=%d/size=%d", c.callers, c.size), func(b *testing.B) {
			br := openBench(b)
			if err := br.CreateQueue(context.Background(), "work", nil, nil); err != nil {
				b.Fatal(err)
			}
			f := syncsPerSecond(b, br.dir)
			q, body := br.Queue("work"), strings.Repeat("x", c.size)
			var left atomic.Int64
			left.Store(int64(b.N))
			var group sync.WaitGroup
			b.ResetTimer()
			for range c.callers {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := q.Send(context.Background(), []queue.Outgoing{{Body: body}}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "msg/s")
			b.ReportMetric(rate/f, "xF")
		})
	}
}

// consume receives and deletes in tens until n messages are gone.
func consume(b *testing.B, q *Queue, n, callers int, each func(queue.Message) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for left.Load() > 0 {
				msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: queue.MaxBatch})
				if err != nil {
					b.Error(err)
					return
				}
				receipts := make([]string, len(msgs))
				for i, m := range msgs {
					receipts[i] = m.ReceiptHandle
					if each != nil {
						if err := each(m); err != nil {
							b.Error(err)
							return
						}
					}
				}
				if len(msgs) > 0 {
					q.Delete(context.Background(), receipts)
				} else {
					runtime.Gosched()
				}
				left.Add(-int64(len(msgs)))
			}
		})
	}
	group.Wait()
}

// depth is how many messages the deep benchmarks begin with, if the variable
// TENDRIL_BENCH_DEPTH does not say otherwise.
func depth(b *testing.B, fallback int) int {
	b.Helper()
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_BENCH_DEPTH")); err == nil {
		return n
	}
	return fallback
}

func BenchmarkDrain(b *testing.B) {
	n := depth(b, 1_000_000)
	for b.Loop() {
		b.StopTimer()
		br := openBench(b)
		if err := br.CreateQueue(context.Background(), "work", nil, nil); err != nil {
			b.Fatal(err)
		}
		q := br.Queue("work")
		preload(b, q, n)
		p := newPoster(b)
		posts := postsPerSecond(b, p)
		p.stop()
		runtime.GC()
		b.StartTimer()
		cpu, start := cpuTime(), time.Now()
		consume(b, q, n, 16, nil)
		took := time.Since(start)
		rate := float64(n) / took.Seconds()
		b.ReportMetric(rate, "msg/s")
		b.ReportMetric(rate/posts, "xP")
		b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/1000/float64(n), "cpu-us/msg")
	}
}
