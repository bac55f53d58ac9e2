package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"tendril/queue"
)

func BenchmarkDepth(b *testing.B) {
	const shallow, calls = 100_000, 1000
	ctx := context.Background()
	for b.Loop() {
		br, q := loaded(b, shallow)
		before, start := residentMB(), time.Now()
		preload(b, q, depth()-shallow, nil)
		b.ReportMetric(float64(depth()-shallow)/time.Since(start).Seconds(), "send-msg/s")
		deep := residentMB()
		b.ReportMetric(deep, "rss-MB")
		b.ReportMetric(deep/before, "rss-ratio")
		if err := br.CreateQueue(ctx, "shallow", nil, nil); err != nil {
			b.Fatal(err)
		}
		preload(b, br.Queue("shallow"), 10*calls, nil)
		times := medianReceives(b, calls, func(int) *Queue { return q }, func(int) *Queue { return br.Queue("shallow") })
		b.ReportMetric(microseconds(times[0]), "deep-us")
		b.ReportMetric(microseconds(times[1]), "shallow-us")
		b.ReportMetric(reopenAfterKill(b, br).Seconds()*1000, "reopen-ms")
		peak := diskBytes(br.dir)
		b.ReportMetric(float64(peak)/1e9, "disk-GB")
		ledger, err := br.Ledger("work")
		if err != nil {
			b.Fatal(err)
		}
		left := int(ledger.Visible)
		start = time.Now()
		consume(b, q, left, 16, nil)
		b.ReportMetric(float64(left)/time.Since(start).Seconds(), "drain-msg/s")
		for _, name := range br.ListQueues("") {
			if _, err := br.PurgeQueue(ctx, name); err != nil {
				b.Fatal(err)
			}
		}
		end := time.Now().Add(time.Minute)
		for diskBytes(br.dir)*20 > peak && time.Now().Before(end) {
			<-time.After(100 * time.Millisecond)
		}
		b.ReportMetric(100*float64(diskBytes(br.dir))/float64(peak), "disk-%")
		br.Close()
	}
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func breadth() int {
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_BENCH_BREADTH")); err == nil {
		return n
	}
	return 10_000
}

func inParallel(b *testing.B, n int, f func(i int) error) {
	b.Helper()
	const callers = 16
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := c; i < n; i += callers {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func BenchmarkQueues(b *testing.B) {
	for b.Loop() {
		few := manyQueues(b, max(breadth()/100, 1))
		many := manyQueues(b, breadth())
		b.ReportMetric(few["receive-us"], "few-receive-us")
		b.ReportMetric(few["send-us"], "few-send-us")
		for name, value := range many {
			b.ReportMetric(value, name)
		}
	}
}

func manyQueues(b *testing.B, n int) map[string]float64 {
	b.Helper()
	ctx, figures := context.Background(), map[string]float64{}
	br := openBench(b)
	defer br.Close()
	before, start := residentMB(), time.Now()
	name := func(i int) string { return fmt.Sprintf("queue%05d", i%n) }
	inParallel(b, n, func(i int) error { return br.CreateQueue(ctx, name(i), nil, nil) })
	figures["create-us"] = microseconds(time.Since(start)) / float64(n)
	inParallel(b, 2*n, func(i int) error {
		var batch []queue.Outgoing
		for range queue.MaxBatch {
			batch = append(batch, queue.Outgoing{Body: payload})
		}
		_, err := br.Queue(name(i)).Send(ctx, batch)
		return err
	})
	figures["kB/queue"] = 1000 * (residentMB() - before) / float64(n)
	figures["rss-MB"] = residentMB()
	r := rand.New(rand.NewPCG(1, 1))
	var sends []time.Duration
	for range 500 {
		q, start := br.Queue(name(r.IntN(n))), time.Now()
		if _, err := q.Send(ctx, []queue.Outgoing{{Body: payload}}); err != nil {
			b.Fatal(err)
		}
		sends = append(sends, time.Since(start))
	}
	figures["send-us"] = microseconds(median(sends))
	spread := func(i int) *Queue { return br.Queue(name(i * 17)) }
	figures["receive-us"] = microseconds(medianReceives(b, min(n, 500), spread)[0])
	figures["reopen-ms"] = reopenAfterKill(b, br).Seconds() * 1000
	return figures
}

func BenchmarkGroups(b *testing.B) {
	for _, groups := range []int{10, breadth()} {
		b.Run(fmt.Sprint("groups=", groups), func(b *testing.B) {
			for b.Loop() {
				manyGroups(b, groups)
			}
		})
	}
}

func manyGroups(b *testing.B, groups int) {
	ctx := context.Background()
	br := openBench(b)
	defer br.Close()
	err := br.CreateQueue(ctx, "work.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "3600"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	q, n := br.Queue("work.fifo"), 10*max(groups, breadth())
	inParallel(b, n/queue.MaxBatch, func(i int) error {
		var batch []queue.Outgoing
		for j := range queue.MaxBatch {
			k := i*queue.MaxBatch + j
			batch = append(batch, queue.Outgoing{Body: payload, GroupID: fmt.Sprint("g", k%groups), DedupID: fmt.Sprint(k)})
		}
		_, err := q.Send(ctx, batch)
		return err
	})
	b.ReportMetric(residentMB(), "rss-MB")
	one := func(times *[]time.Duration) []string {
		start := time.Now()
		msgs, err := q.Receive(ctx, queue.ReceiveRequest{Max: 1})
		if *times = append(*times, time.Since(start)); err != nil || len(msgs) == 0 {
			b.Fatal(len(msgs), err)
		}
		return receipts(msgs)
	}
	var free, locked []time.Duration
	var held []string
	for range groups * 9 / 10 {
		held = append(held, one(&free)...)
	}
	for range 200 {
		if errs := q.Delete(ctx, one(&locked)); errs != nil {
			b.Fatal(errs)
		}
	}
	b.ReportMetric(microseconds(median(free)), "free-us")
	b.ReportMetric(microseconds(median(locked)), "locked-us")
	for len(held) > 0 {
		k := min(len(held), queue.MaxBatch)
		if errs := q.Delete(ctx, held[:k]); errs != nil {
			b.Fatal(errs)
		}
		held = held[k:]
	}
	ledger, err := br.Ledger("work.fifo")
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	consume(b, q, int(ledger.Live), 8, nil)
	b.ReportMetric(float64(ledger.Live)/time.Since(start).Seconds(), "drain-msg/s")
}
