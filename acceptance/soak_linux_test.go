package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/testing/testpeer"
)

// In nightly runs, no resource may grow: each slope must be within a small allowance plus three standard errors.
// TENDRIL_SOAK sets the duration.
func TestSoak(t *testing.T) {
	long(t)
	t.Parallel()
	resume(t)
	length, rate := testpeer.Size(10*time.Second, time.Hour), testpeer.Size(400, 2000)
	every := testpeer.Size(2*time.Second, 30*time.Second)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_SOAK")); err == nil {
		length = d
	}
	data := t.TempDir()
	bundle := func() string { return writeBundle(t, map[string]string{"Procfile": appLine(os.DevNull, "1")}) }
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs", "--http-connections", "50", "--error-visibility-timeout", "1",
		"--max-retries", "3", "--log-sample", "1", bundle())
	awaitWeb(t, p)
	s := &soak{t: t, data: data, started: started, pid: p.cmd.Process.Pid}
	s.warmUp()
	before := s.measure()

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.produce(ctx, rate) })
	all.Go(func() { s.emptyDeadLetters(ctx) })
	for range 3 {
		all.Go(func() { s.follow(ctx, every) })
	}
	all.Go(func() {
		for tick := time.Tick(every); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if status, answer, err := tryDeploy(t.Context(), data, started, bundle()); err != nil || status != http.StatusOK {
				t.Errorf("deployment: status %d, %s, %v", status, answer, err)
				continue
			}
			s.deployments.Add(1)
			p.cmd.Process.Signal(syscall.SIGHUP)
		}
	})
	s.sample(ctx, length/700+time.Second/2)
	all.Wait()
	awaitQuiet(t, started)
	s.emptyDeadLetters(t.Context())
	after := s.awaitBaseline(before)

	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	store, err := broker.Open(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Ledger("jobs")
	store.Close()
	if err != nil {
		t.Fatal(err)
	}
	report(t, "%s at %.0f messages a second (wanted %d), %d deployments and reloads, %d events read; %s", length,
		float64(s.sent.Load())/length.Seconds(), rate, s.deployments.Load(), s.eventsRead.Load(), s.slopes(length))
	t.Logf("ledger %+v", ledger)
	t.Logf("before %v, after %v", before, after)
	if ledger.Sent != s.sent.Load() || ledger.Sent != ledger.Done+ledger.DeadLettered || ledger.DeadLettered == 0 {
		t.Errorf("%d sends were accepted: the ledger is %+v", s.sent.Load(), ledger)
	}
	if s.deployments.Load() == 0 || s.eventsRead.Load() == 0 {
		t.Error("without a deployment and an event that was read nothing was shown")
	}
}

type usage [5]float64

var usageNames = [len(usage{})]string{"heap", "goroutines", "descriptors", "resident memory", "data directory"}

var allowedSlopes = usage{1 << 20, 1, 1, 4 << 20, 4 << 20}

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MB, %.0f goroutines, %.0f descriptors, resident %.1f MB, disk %.1f MB",
		u[0]/1e6, u[1], u[2], u[3]/1e6, u[4]/1e6)
}

type soak struct {
	t       *testing.T
	data    string
	started event
	pid     int

	sent, deployments, eventsRead atomic.Int64
	at                            []float64
	samples                       []usage
}

func (s *soak) measure() (u usage) {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Get(s.started.Console + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	found := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, _ := strconv.ParseFloat(text, 64)
		for i, metric := range [...]string{"go_memstats_next_gc_bytes", "go_goroutines", "process_open_fds",
			"process_resident_memory_bytes"} {
			if name == metric {
				u[i] = value
				found++
			}
		}
	}
	if found != 4 {
		s.t.Fatalf("%d of 4 metrics found", found)
	}
	u[0] /= 2 // the next collection starts only once the heap has doubled
	err = filepath.WalkDir(s.data, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			u[4] += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s *soak) sample(ctx context.Context, every time.Duration) {
	began, printed := time.Now(), time.Now()
	for tick := time.Tick(every); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		u := s.measure()
		s.at, s.samples = append(s.at, time.Since(began).Hours()), append(s.samples, u)
		if time.Since(printed) >= testpeer.Size(5*time.Second, time.Minute) {
			printed = time.Now()
			fmt.Printf("%s soak: %d messages, %v\n", time.Since(began).Round(time.Second), s.sent.Load(), u)
		}
	}
}

// Of a thousand messages, ten fail once and one always fails.
func (s *soak) produce(ctx context.Context, rate int) {
	const batch = 10
	c := client(s.started.Endpoint)
	var sends sync.WaitGroup
	defer sends.Wait()
	limit := make(chan struct{}, 32)
	began := time.Now()
	for n := 0; ctx.Err() == nil; n += batch {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		in := &sqs.SendMessageBatchInput{QueueUrl: &s.started.QueueURL}
		for i := n; i < n+batch; i++ {
			body := fmt.Sprintf("message %d", i)
			switch i % 1000 {
			case 1, 102, 203, 304, 405, 506, 607, 708, 809, 910:
				body = fmt.Sprintf("flaky %d", i)
			case 42:
				body = fmt.Sprintf("refuse %d", i)
			}
			in.Entries = append(in.Entries,
				types.SendMessageBatchRequestEntry{Id: new(fmt.Sprint(i)), MessageBody: &body})
		}
		limit <- struct{}{}
		sends.Go(func() {
			defer func() { <-limit }()
			out, err := c.SendMessageBatch(context.WithoutCancel(ctx), in)
			if err != nil || len(out.Failed) > 0 {
				s.t.Errorf("sending: %v", err)
				return
			}
			s.sent.Add(batch)
		})
	}
}

func (s *soak) run(args ...string) {
	s.t.Helper()
	if out, err := program(s.t, append(args, "--data-dir", s.data)...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// warmUp uses all connections, some of whose goroutines remain.
func (s *soak) warmUp() {
	s.t.Helper()
	c := client(s.started.Endpoint)
	s.run("queues", "pause", "jobs")
	preload(s.t, c, s.started.QueueURL, 500, func(int) string { return "20ms" })
	s.run("queues", "resume", "jobs")
	s.sent.Add(500)
	awaitQuiet(s.t, s.started)
	time.Sleep(2 * time.Second) // idle connections close
}

// If ctx is the test's context, emptyDeadLetters stops once the queue is empty.
func (s *soak) emptyDeadLetters(ctx context.Context) {
	c, url := client(s.started.Endpoint), s.started.QueueURL+"-dead"
	for ctx.Err() == nil {
		out, err := c.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		if err != nil {
			s.t.Errorf("receiving dead letters: %v", err)
			return
		}
		for _, m := range out.Messages {
			if _, err := c.DeleteMessage(s.t.Context(),
				&sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				s.t.Errorf("deleting a dead letter: %v", err)
			}
		}
		if len(out.Messages) == 0 {
			if ctx.Done() == s.t.Context().Done() {
				return
			}
			time.Sleep(time.Second)
		}
	}
}

func (s *soak) follow(ctx context.Context, each time.Duration) {
	token, err := api.ReadToken(s.data)
	if err != nil {
		s.t.Error(err)
		return
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ctx.Err() == nil; n++ {
		reading, cancel := context.WithTimeout(ctx, each)
		path := [...]string{"/api/v1/events", "/api/v1/logs", "/api/v1/status"}[n%3]
		req, err := http.NewRequestWithContext(reading, http.MethodGet, s.started.Console+path, nil)
		if err != nil {
			s.t.Error(err)
			cancel()
			return
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := client.Do(req)
		if err == nil {
			if resp.StatusCode != http.StatusOK {
				s.t.Errorf("GET %s: status %d", path, resp.StatusCode)
			}
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data:") {
					s.eventsRead.Add(1)
				}
			}
			_, _ = io.Copy(io.Discard, resp.Body) // the rest after a line that is too long for the scanner
			resp.Body.Close()
		}
		<-reading.Done() // even if the response has already ended
		cancel()
	}
}

func (s *soak) awaitBaseline(before usage) (after usage) {
	const spare = 5
	for range 240 {
		after = s.measure()
		if after[1] <= before[1]+spare && after[2] <= before[2]+spare {
			return after
		}
		time.Sleep(500 * time.Millisecond)
	}
	s.t.Errorf("two minutes after the load: %v; before it: %v", after, before)
	return after
}

// slopes omits the first sixth of the samples.
func (s *soak) slopes(length time.Duration) string {
	s.t.Helper()
	from := 0
	for from < len(s.at) && s.at[from] < length.Hours()/6 {
		from++
	}
	if len(s.at)-from < testpeer.Size(3, 10) { // a short run may lose samples to a pause
		s.t.Fatalf("%d samples after the first sixth", len(s.at)-from)
	}
	var all []string
	for i, name := range usageNames {
		var y []float64
		for _, u := range s.samples[from:] {
			y = append(y, u[i])
		}
		mean, slope, deviation := regression(s.at[from:], y)
		unit, scale := "", 1.0
		if i != 1 && i != 2 {
			unit, scale = " MB", 1e6
		}
		all = append(all, fmt.Sprintf("%s %.1f%s, %+.2f ± %.2f%s per hour", name, mean/scale, unit, slope/scale,
			deviation/scale, unit))
		if testpeer.Nightly() && slope > allowedSlopes[i]+3*deviation {
			s.t.Errorf("%s grows by %.2f%s per hour, allowed is %.2f%s", name, slope/scale, unit, allowedSlopes[i]/scale,
				unit)
		}
	}
	return strings.Join(all, "; ")
}

// Successive samples are correlated, so regression computes the standard error from the means of twenty groups.
func regression(x, y []float64) (mean, slope, deviation float64) {
	const groups = 20
	if len(x) > 2*groups {
		var gx, gy []float64
		for g := range groups {
			from, to := g*len(x)/groups, (g+1)*len(x)/groups
			gx, gy = append(gx, average(x[from:to])), append(gy, average(y[from:to]))
		}
		x, y = gx, gy
	}
	mx, my := average(x), average(y)
	var xx, xy float64
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	slope = xy / xx
	var rest float64
	for i := range x {
		r := y[i] - my - slope*(x[i]-mx)
		rest += r * r
	}
	return my, slope, math.Sqrt(rest / float64(len(x)-2) / xx)
}

func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func TestRegression(t *testing.T) {
	t.Parallel()
	mean, slope, deviation := regression([]float64{1, 2, 3, 4}, []float64{3, 5, 7, 9})
	if mean != 6 || slope != 2 || deviation != 0 {
		t.Errorf("mean %v, slope %v ± %v; want 6, 2 ± 0", mean, slope, deviation)
	}
	// The residuals about the mean 1 are -1, 1, 1 and -1, so the standard error is sqrt(4 / 2 / 5).
	if _, slope, deviation = regression([]float64{1, 2, 3, 4}, []float64{0, 2, 2, 0}); slope != 0 ||
		math.Abs(deviation-math.Sqrt(0.4)) > 1e-12 {
		t.Errorf("slope %v ± %v; want 0 ± %v", slope, deviation, math.Sqrt(0.4))
	}
	var x, y []float64
	for i := range 1000 {
		x, y = append(x, float64(i)), append(y, 5*float64(i))
	}
	if _, slope, _ = regression(x, y); math.Abs(slope-5) > 1e-9 {
		t.Errorf("slope %v of 1000 samples; want 5", slope)
	}
}
