package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/internal/aws"
	"tendril/internal/worker"
	"tendril/queue"
)

type fakePutter struct {
	mu    sync.Mutex
	calls []put
	err   error
	hang  bool
}

type put struct {
	namespace string
	data      []aws.Datum
	err       error
}

func (p *fakePutter) PutMetricData(ctx context.Context, namespace string, data []aws.Datum) error {
	p.mu.Lock()
	err, hang := p.err, p.hang
	p.calls = append(p.calls, put{namespace, append([]aws.Datum(nil), data...), err})
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (p *fakePutter) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *fakePutter) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

func (p *fakePutter) accepted() (calls []put) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.err == nil {
			calls = append(calls, c)
		}
	}
	return calls
}

func ended(outcome queue.Outcome, d time.Duration) worker.Settled {
	return worker.Settled{Outcome: outcome, Duration: d}
}

func running(c *CloudWatch) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestCloudWatchMakesOneCallPerInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePutter{}
		c := NewCloudWatch(p, &CloudWatchOptions{Name: "app"})
		jobs, mail := c.Worker("jobs"), c.Worker("mail")
		stop := running(c)
		start := time.Now()
		for i := range 4 {
			jobs.Settled(ended(queue.Done, time.Duration(i+1)*10*time.Millisecond))
		}
		c.Worker("jobs").Settled(ended(queue.Failed, 2*time.Second))
		jobs.Settled(ended(queue.Unreached, time.Hour))
		jobs.Settled(ended(queue.Throttled, time.Hour))
		mail.Settled(ended(queue.Failed, time.Second))
		time.Sleep(61 * time.Second)
		jobs.Settled(ended(queue.Done, time.Millisecond))
		time.Sleep(2 * time.Minute)
		stop()

		at, later, idle := start.Add(time.Minute), start.Add(2*time.Minute), start.Add(3*time.Minute)
		figure := func(name, unit, q string, at time.Time, samples, sum, least, most float64) aws.Datum {
			return aws.Datum{Name: name, Dimension: "Queue", DimensionValue: q, Unit: unit, At: at, Samples: samples, Sum: sum,
				Minimum: least, Maximum: most}
		}
		want := []put{
			{"Workerless-app", []aws.Datum{
				figure("MessagesProcessed", "Count", "jobs", at, 5, 5, 1, 1),
				figure("MessagesFailed", "Count", "jobs", at, 5, 1, 0, 1),
				figure("Duration", "Milliseconds", "jobs", at, 5, 2100, 10, 2000),
				figure("MessagesProcessed", "Count", "mail", at, 1, 1, 1, 1),
				figure("MessagesFailed", "Count", "mail", at, 1, 1, 1, 1),
				figure("Duration", "Milliseconds", "mail", at, 1, 1000, 1000, 1000),
			}, nil},
			{"Workerless-app", []aws.Datum{
				figure("MessagesProcessed", "Count", "jobs", later, 1, 1, 1, 1),
				figure("MessagesFailed", "Count", "jobs", later, 1, 0, 0, 0),
				figure("Duration", "Milliseconds", "jobs", later, 1, 1, 1, 1),
				figure("MessagesProcessed", "Count", "mail", later, 1, 0, 0, 0),
			}, nil},
			{"Workerless-app", []aws.Datum{
				figure("MessagesProcessed", "Count", "jobs", idle, 1, 0, 0, 0),
				figure("MessagesProcessed", "Count", "mail", idle, 1, 0, 0, 0),
			}, nil},
		}
		if diff := cmp.Diff(want, p.accepted(), cmp.AllowUnexported(put{})); diff != "" {
			t.Errorf("the calls are not those wanted (-want +got):\n%s", diff)
		}
	})
}

func TestHealthIsSentLikeElasticBeanstalkDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, state := &fakePutter{}, atomic.Pointer[Health]{}
		state.Store(&Health{Green: true, Code: 1, HasCode: true})
		c := NewCloudWatch(p, &CloudWatchOptions{Environment: "shop", Health: func() Health { return *state.Load() },
			Interval: 10 * time.Second})
		c.Worker("jobs").Settled(ended(queue.Done, time.Second))
		stop := running(c)
		time.Sleep(11 * time.Second)
		state.Store(&Health{Code: 25, HasCode: true, Periodic: true, Leads: true})
		time.Sleep(10 * time.Second)
		state.Store(&Health{Code: 25, Periodic: true, CPU: 62.5, HasCPU: true})
		time.Sleep(10 * time.Second)
		stop()
		var values []string
		for _, call := range p.accepted() {
			if call.namespace != "ElasticBeanstalk/SQSD" {
				t.Errorf("unexpected call %+v", call)
			}
			text := ""
			for _, d := range call.data {
				if d.Dimension != "EnvironmentName" || d.DimensionValue != "shop" || d.Samples != 1 || d.Minimum != d.Sum ||
					d.Maximum != d.Sum || (d.Unit == "Percent") != (d.Name == "CPUUtilization") {
					t.Errorf("unexpected value %+v", d)
				}
				text += fmt.Sprintf("%s %v, ", d.Name, d.Sum)
			}
			values = append(values, text)
		}
		want := []string{"Health 1, EnvironmentHealth 1, ", "Health 0, EnvironmentHealth 25, Leader 1, ",
			"Health 0, Leader 0, CPUUtilization 62.5, "}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("the state is not sent as it is (-want +got):\n%s", diff)
		}
	})
}

func TestNoValueIsLostWhileCloudWatchFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		p := &fakePutter{err: &queue.Error{Code: queue.CodeUnreachable, Message: "no answer"}}
		c := NewCloudWatch(p, &CloudWatchOptions{Name: "app", Interval: 30 * time.Second,
			Logger: slog.New(slog.NewTextHandler(&lines, nil))})
		jobs := c.Worker("jobs")
		stop := running(c)
		for range 40 {
			jobs.Settled(ended(queue.Done, time.Second))
			time.Sleep(30 * time.Second)
		}
		failures := p.count()
		if failures < 5 || failures > 20 {
			t.Errorf("%d calls in 20 minutes of failure: the pause should grow from 5 s to 5 minutes", failures)
		}
		if got := c.stats(); got.errors != int64(failures) || got.sink != "cloudwatch" {
			t.Errorf("Stats are %+v after %d failed calls", got, failures)
		}
		p.fail(nil)
		time.Sleep(10 * time.Minute)
		stop()
		brought := map[time.Time]bool{}
		for _, d := range p.accepted()[0].data {
			brought[d.At] = true
		}
		if len(brought) != maxIntervals {
			t.Errorf("the first call that succeeded brings %d intervals, want %d", len(brought), maxIntervals)
		}
		if got := total(p.accepted(), "MessagesProcessed"); got != 40 {
			t.Errorf("%v of 40 deliveries arrived", got)
		}
		if c.failures != 0 {
			t.Errorf("%d failures are still counted after a success: the next pause would be too long", c.failures)
		}
		text := lines.String()
		if strings.Count(text, "sending telemetry failed") != 1 || strings.Count(text, "sending telemetry resumed") != 1 {
			t.Errorf("want one log line for the failure and one for its end:\n%s", text)
		}
	})
}

func total(calls []put, name string) (sum float64) {
	for _, call := range calls {
		for _, d := range call.data {
			if d.Name == name {
				sum += d.Sum
			}
		}
	}
	return sum
}

func TestDataOfManyQueuesIsSplitIntoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePutter{}
		c := NewCloudWatch(p, &CloudWatchOptions{Name: "app"})
		for i := range 400 {
			c.Worker(strings.Repeat("q", i+1)).Settled(ended(queue.Done, time.Second))
		}
		stop := running(c)
		time.Sleep(61 * time.Second)
		stop()
		if got := p.accepted(); len(got) != 2 || len(got[0].data) != 1000 || len(got[1].data) != 200 {
			t.Errorf("1200 figures went out in %d calls", len(got))
		}
	})
}

func TestInvalidDataIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePutter{err: &queue.Error{Code: queue.CodeInvalidParameterValue, Message: "bad name"}}
		c := NewCloudWatch(p, &CloudWatchOptions{Name: "app"})
		stop := running(c)
		c.Worker("jobs").Settled(ended(queue.Done, time.Second))
		time.Sleep(61 * time.Second)
		p.fail(nil)
		time.Sleep(time.Hour)
		stop()
		if got := c.stats(); got.dropped != 3 || got.errors != 1 || total(p.accepted(), "MessagesProcessed") != 0 {
			t.Errorf("Stats are %+v after %d calls, want 3 dropped, 1 error, none sent later", got, len(p.calls))
		}
	})
}

func TestStopSendsPendingData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePutter{}
		c := NewCloudWatch(p, &CloudWatchOptions{Name: "app"})
		stop := running(c)
		c.Worker("jobs").Settled(ended(queue.Done, time.Second))
		time.Sleep(time.Second)
		stop()
		if got := total(p.accepted(), "MessagesProcessed"); got != 1 {
			t.Errorf("%v of 1 delivery was sent at the stop", got)
		}
	})
}

func TestStopEndsWithinItsTimeout(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"idle": time.Second, "in a call": 62 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakePutter{hang: true}
			c := NewCloudWatch(p, &CloudWatchOptions{Name: "app"})
			stop := running(c)
			c.Worker("jobs").Settled(ended(queue.Done, time.Second))
			time.Sleep(wait)
			began := time.Now()
			stop()
			if took := time.Since(began); took > flushTimeout {
				t.Errorf("%s: the stop took %s, want at most %s", name, took, flushTimeout)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 6: 160 * time.Second,
		7: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := retryAfter(n); got != want {
			t.Errorf("retryAfter(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestNextIntervalSkipsMissedIntervals(t *testing.T) {
	t.Parallel()
	endInterval := time.Unix(1000, 0)
	for late, want := range map[time.Duration]time.Duration{0: time.Minute, 59 * time.Second: time.Minute,
		time.Minute: 2 * time.Minute, time.Hour: 61 * time.Minute} {
		if got := nextInterval(endInterval, endInterval.Add(late), time.Minute).Sub(endInterval); got != want {
			t.Errorf("%s late: the next is %s on, want %s", late, got, want)
		}
	}
}

func TestMergeOldestKeepsEveryValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var data []aws.Datum
		for i := range rapid.IntRange(0, 12).Draw(t, "intervals") {
			for _, q := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3,
				rapid.ID[string]).Draw(t, "queues") {
				v := float64(rapid.IntRange(0, 99).Draw(t, "value"))
				data = append(data, aws.Datum{Name: "Duration", DimensionValue: q, At: time.Unix(int64(i), 0), Samples: 1, Sum: v,
					Minimum: v, Maximum: v})
			}
		}
		most := rapid.IntRange(1, 5).Draw(t, "most")
		want := sums(data)
		got := mergeOldest(append([]aws.Datum(nil), data...), most)
		if diff := cmp.Diff(want, sums(got)); diff != "" {
			t.Fatalf("values changed: %s", diff)
		}
		intervals := map[time.Time]bool{}
		for _, d := range got {
			intervals[d.At] = true
		}
		if len(intervals) > most {
			t.Fatalf("%d intervals are left, want at most %d", len(intervals), most)
		}
		for i := 1; i < len(got); i++ {
			if got[i].At.Before(got[i-1].At) {
				t.Fatalf("not in the order of time: %v", got)
			}
		}
	})
}

func sums(data []aws.Datum) map[string]aws.Datum {
	all := map[string]aws.Datum{}
	for _, d := range data {
		d.At = time.Time{}
		if have, ok := all[d.DimensionValue]; ok {
			mergeDatum(&have, &d)
			d = have
		}
		all[d.DimensionValue] = d
	}
	return all
}

func TestIsRejected(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{errors.New("anything"), false},
		{queue.Errorf(queue.CodeAccessDenied, "no"), false},
		{queue.Errorf(queue.CodeRequestThrottled, "slow"), false},
		{queue.Errorf("InvalidParameterCombination", "bad"), true},
	} {
		if got := isRejected(tc.err); got != tc.want {
			t.Errorf("isRejected(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
}
