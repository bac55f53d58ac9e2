package broker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tendril/queue"
)

// Two limits of the machine, measured in the same run, make results comparable: F, 4 KiB appends with fdatasync per
// second, and P, POSTs per second over 50 loopback connections.

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
		if err := dataSync(f); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

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

func limited(change func(l *memoryLimits)) *Options {
	opts := quiet()
	opts.limits = defaultLimits()
	change(opts.limits)
	return opts
}

func openBench(b *testing.B) *Broker {
	b.Helper()
	br, err := Open(benchDir(b), quiet())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if !br.background.closing.Load() {
			br.Close()
		}
	})
	return br
}

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

type tenantsOf func(i int) string

func oneLarge(i int) string {
	if batch := i / queue.MaxBatch; batch%10 == 0 {
		return fmt.Sprint("small", batch%100)
	}
	return "large"
}

func preload(b *testing.B, q *Queue, n int, tenant tenantsOf) {
	b.Helper()
	const callers = 64
	var group sync.WaitGroup
	plain := slices.Repeat([]queue.Outgoing{{Body: payload}}, queue.MaxBatch)
	for c := range callers {
		group.Go(func() {
			for i := c; i < n/queue.MaxBatch; i += callers {
				batch := plain
				if tenant != nil {
					batch = slices.Clone(plain)
					for j := range batch {
						batch[j].GroupID = tenant(i*queue.MaxBatch + j)
					}
				}
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

func depth() int {
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_BENCH_DEPTH")); err == nil {
		return n
	}
	return 1_000_000
}

func loaded(b *testing.B, n int) (*Broker, *Queue) { return loadedWith(b, n, nil) }

func loadedWith(b *testing.B, n int, tenants tenantsOf) (*Broker, *Queue) {
	b.Helper()
	br := openBench(b)
	if err := br.CreateQueue(context.Background(), "work", nil, nil); err != nil {
		b.Fatal(err)
	}
	preload(b, br.Queue("work"), n, tenants)
	return br, br.Queue("work")
}

func BenchmarkDrain(b *testing.B) {
	n := depth()
	for b.Loop() {
		b.StopTimer()
		_, q := loaded(b, n)
		p := newPoster(b)
		posts := postsPerSecond(b, p)
		p.stop()
		runtime.GC()
		b.StartTimer()
		cpu, start := cpuTime(), time.Now()
		consume(b, q, n, 16, nil)
		rate := float64(n) / time.Since(start).Seconds()
		b.ReportMetric(rate, "msg/s")
		b.ReportMetric(rate/posts, "xP")
		b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/1000/float64(n), "cpu-us/msg")
	}
}

func BenchmarkReceiveLatency(b *testing.B) {
	spread := func(groups int) tenantsOf { return func(i int) string { return fmt.Sprint("tenant", i%groups) } }
	for _, c := range []struct {
		name   string
		tenant tenantsOf
	}{
		{"none", nil}, {"one-large", oneLarge}, {"10", spread(10)}, {"10000", spread(10_000)},
		{"1000000", spread(1_000_000)},
	} {
		b.Run("tenants="+c.name, func(b *testing.B) {
			for b.Loop() {
				shallow, _ := receiveLatency(b, 10_000, c.tenant)
				deep, memory := receiveLatency(b, depth(), c.tenant)
				b.ReportMetric(float64(shallow.Nanoseconds())/1000, "shallow-us")
				b.ReportMetric(float64(deep.Nanoseconds())/1000, "deep-us")
				b.ReportMetric(float64(deep)/float64(shallow), "ratio")
				b.ReportMetric(memory, "rss-MB")
			}
		})
	}
}

func receiveLatency(b *testing.B, n int, tenant tenantsOf) (median time.Duration, memory float64) {
	b.Helper()
	br, q := loadedWith(b, n, tenant)
	defer br.Close()
	return medianReceives(b, 900, func(int) *Queue { return q })[0], residentMB()
}

func medianReceives(b *testing.B, calls int, queues ...func(i int) *Queue) (medians []time.Duration) {
	b.Helper()
	times := make([][]time.Duration, len(queues))
	for i := range calls {
		for k, queueOf := range queues {
			q, start := queueOf(i), time.Now()
			msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: queue.MaxBatch})
			times[k] = append(times[k], time.Since(start))
			if err != nil || len(msgs) == 0 {
				b.Fatal(len(msgs), err)
			}
			if i%2 == 0 {
				if errs := q.Delete(context.Background(), receipts(msgs)); errs != nil {
					b.Fatal(errs)
				}
			}
		}
	}
	for _, t := range times {
		medians = append(medians, median(t))
	}
	return medians
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

const wholePathBacklog = 300_000

func BenchmarkWholePath(b *testing.B) {
	for _, producers := range []int{0, 64, 16} {
		b.Run(fmt.Sprint("producers=", producers), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				br, q := loaded(b, wholePathBacklog)
				p := newPoster(b)
				posts := postsPerSecond(b, p)
				b.StartTimer()
				rate, sent := wholePath(b, q, p, producers, 2*time.Second)
				b.ReportMetric(rate, "msg/s")
				b.ReportMetric(rate/posts, "xP")
				b.ReportMetric(sent, "sent/s")
				if l, err := br.Ledger(q.name); err != nil || l.Visible == 0 {
					b.Errorf("the queue ran empty (%v), so the rate is not that of working", err)
				}
				p.stop()
				br.Close()
			}
		})
	}
}

const deleters = 4

func wholePath(b *testing.B, q *Queue, p *poster, producers int, limit time.Duration) (rate, sentRate float64) {
	b.Helper()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	work, done := make(chan queue.Message, postConnections), make(chan string, postConnections)
	var senders, pollers, workers, deleting sync.WaitGroup
	var n, sent atomic.Int64
	for range producers {
		senders.Go(func() {
			for ctx.Err() == nil {
				if _, err := q.Send(context.Background(), []queue.Outgoing{{Body: payload}}); err == nil {
					sent.Add(1)
				}
			}
		})
	}
	for range 2 {
		pollers.Go(func() {
			for ctx.Err() == nil {
				msgs, _ := q.Receive(ctx, queue.ReceiveRequest{Max: queue.MaxBatch, Wait: new(time.Duration)})
				for _, m := range msgs {
					work <- m
				}
				if len(msgs) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for range postConnections {
		workers.Go(func() {
			for m := range work {
				if p.post(m.Body) == nil {
					done <- m.ReceiptHandle
				}
			}
		})
	}
	start := time.Now()
	for range deleters {
		deleting.Go(func() {
			var batch []string
			for r := range done {
				if batch = append(batch, r); len(batch) == queue.MaxBatch {
					q.Delete(context.Background(), batch)
					n.Add(int64(len(batch)))
					batch = batch[:0]
				}
			}
		})
	}
	pollers.Wait()
	senders.Wait()
	close(work)
	workers.Wait()
	close(done)
	deleting.Wait()
	seconds := time.Since(start).Seconds()
	return float64(n.Load()) / seconds, float64(sent.Load()) / seconds
}

func BenchmarkMixedCPU(b *testing.B) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		b.Skip("no file system in memory: ", err)
	}
	b.Setenv("TENDRIL_BENCH_DIR", "/dev/shm")
	const n = 200_000
	for b.Loop() {
		br, q := loaded(b, 0)
		cpu := cpuTime()
		var sending sync.WaitGroup
		sending.Go(func() { preload(b, q, n, nil) })
		consume(b, q, n, 8, nil)
		sending.Wait()
		b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/1000/float64(n), "cpu-us/msg")
		br.Close()
	}
}

func residentMB() float64 {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kb float64
	_, _ = fmt.Sscan(rest, &kb)
	return kb / 1024
}

func reopenAfterKill(b *testing.B, br *Broker) time.Duration {
	b.Helper()
	dir := filepath.Join(benchDir(b), "copy")
	copyDir(b, br.dir, dir)
	_ = exec.Command("sync", "-f", dir).Run() // keeps the writing of the copy out of the measurement
	start := time.Now()
	again, err := Open(dir, quiet())
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	again.Close()
	os.RemoveAll(dir)
	return took
}

func diskBytes(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
