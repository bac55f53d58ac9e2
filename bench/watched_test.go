package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const watchers = 20

// BenchmarkWatched drains the embedded queue with and without live console pages, in alternating rounds, and reports
// the remaining share of the throughput. The second case is the worst: the app takes no time, and all processes compete
// for the processors.
func BenchmarkWatched(b *testing.B) {
	bin := buildTendril(b)
	for _, c := range []struct {
		messages int
		think    time.Duration
	}{{20000, 10 * time.Millisecond}, {100000, 0}} {
		b.Run(fmt.Sprintf("think=%v", c.think), func(b *testing.B) {
			app := role(b, "app", "BENCH_THINK="+c.think.String())
			var share, more, updates []float64
			for range b.N {
				alone, used, _ := drainWatched(b, bin, app, c.messages, 0)
				watched, usedWatched, events := drainWatched(b, bin, app, c.messages, watchers)
				share = append(share, 100*watched/alone)
				more = append(more, 1e6*(usedWatched-used).Seconds()/float64(c.messages))
				updates = append(updates, events)
			}
			b.ReportMetric(median(share), "%unwatched")
			b.ReportMetric(median(more), "more-cpu-µs/msg")
			b.ReportMetric(median(updates), "updates/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func drainWatched(b *testing.B, bin, app string, n, pages int) (perSecond float64, used time.Duration,
	updates float64) {
	b.Helper()
	dir := b.TempDir()
	preload(b, bin, dir, n)
	get(b, app+"/reset", nil)
	d := startDaemon(b, exec.Command(bin, "up", "--data-dir", dir, "--name", "bench", "--listen", "127.0.0.1:0",
		"--console", "127.0.0.1:0", "--console-auth", "none", "--target", app+"/", "--http-connections", "50"), nil)
	ctx, leave := context.WithCancel(context.Background())
	var (
		events atomic.Int64
		open   sync.WaitGroup
	)
	began := time.Now()
	base := consoleOf(b, dir)
	for i := range pages {
		page := []string{"/", "/queues", "/queues/bench", "/events", "/logs"}[i%5]
		open.Go(func() { watch(ctx, b, base+"/live?at="+url.QueryEscape(page), &events) })
	}
	s := waitFor(b, app, int64(n))
	updates = float64(events.Load()) / time.Since(began).Seconds()
	leave()
	open.Wait()
	used, _, _ = d.stop(b)
	return s.perSecond(), used, updates
}

func consoleOf(b *testing.B, dir string) string {
	b.Helper()
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		var instance struct{ Console string }
		data, err := os.ReadFile(filepath.Join(dir, "instance.json"))
		if err == nil && json.Unmarshal(data, &instance) == nil && instance.Console != "" {
			return "http://" + instance.Console
		}
	}
	b.Fatal("the console did not open within 20 s")
	return ""
}

func watch(ctx context.Context, b *testing.B, url string, events *atomic.Int64) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Errorf("%s answered %s", url, resp.Status)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if len(lines.Bytes()) == 0 {
			events.Add(1)
		}
	}
}
