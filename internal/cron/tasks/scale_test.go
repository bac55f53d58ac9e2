package tasks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/testing/testpeer"
	"tendril/internal/worker"
	"tendril/queue"
	"tendril/queuetest"
)

// Dollars per million requests in us-east-1, from the price lists of Amazon SQS (standard queues, after the first
// million per month) and Amazon DynamoDB (on demand, since 1 November 2024). A unit is a strongly consistent read of up
// to 4 KB or a write of up to 1 KB, even a failed one.
const (
	priceSQS   = 0.40
	priceRead  = 0.125
	priceWrite = 0.625
	month      = 30 * 24 * 60
)

type service int

const (
	sqs service = iota
	dynamoDB
	autoScaling
)

type action struct {
	of    service
	name  string
	price float64
}

var (
	receives = action{sqs, "ReceiveMessage", priceSQS}
	deletes  = action{sqs, "DeleteMessageBatch", priceSQS}
	changes  = action{sqs, "ChangeMessageVisibilityBatch", priceSQS}
	sends    = action{sqs, "SendMessage", priceSQS}
	reads    = action{dynamoDB, "lease: read", priceRead}
	writes   = action{dynamoDB, "lease: write", priceWrite}
	looks    = action{dynamoDB, "pauses: read", priceRead}
	runReads = action{dynamoDB, "runs: read", priceRead}
	runs     = action{dynamoDB, "runs: write", priceWrite}
	sizes    = action{autoScaling, "DescribeAutoScalingGroups", 0}
	resizes  = action{autoScaling, "SetDesiredCapacity", 0}
)

type region struct {
	queue *queuetest.Fake
	store *registry.Memory

	mu    sync.Mutex
	began time.Time
	calls map[action]map[int]int
	down  map[service]bool
	size  int
}

const callTime = 5 * time.Millisecond

func newRegion(size int) *region {
	r := &region{store: registry.NewMemory(), down: map[service]bool{}, size: size}
	actions := map[queuetest.FakeAction]action{queuetest.FakeReceive: receives, queuetest.FakeDelete: deletes,
		queuetest.FakeChangeVisibility: changes, queuetest.FakeSend: sends}
	r.queue = queuetest.NewFake(&queuetest.FakeOptions{Latency: callTime, MaxReceives: 10, Visibility: 300 * time.Second})
	r.queue.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
		return queuetest.FakeFault{Err: r.called(actions[c.Action])}
	})
	r.measure()
	return r
}

func (r *region) measure() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.calls = time.Now(), map[action]map[int]int{}
}

func (r *region) called(a action) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[a] == nil {
		r.calls[a] = map[int]int{}
	}
	r.calls[a][int(time.Since(r.began)/time.Second)]++
	if r.down[a.of] {
		return queue.Errorf(queue.CodeUnreachable, "%s: connection refused", a.name)
	}
	return nil
}

func (r *region) call(ctx context.Context, a action) error {
	err := r.called(a)
	select {
	case <-time.After(callTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	return err
}

func (r *region) outage(of service, down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[of] = down
}

func (r *region) total(of ...action) (total, peak int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := map[int]int{}
	for _, a := range of {
		for second, n := range r.calls[a] {
			total += n
			seconds[second] += n
		}
	}
	for _, n := range seconds {
		peak = max(peak, n)
	}
	return total, peak
}

func (r *region) dollars() (d float64) {
	for a := range maps.Keys(r.calls) {
		n, _ := r.total(a)
		d += a.price * float64(n) / 1e6
	}
	return d
}

func (r *region) report(daemons int, minutes float64) string {
	var all []string
	for a := range maps.Keys(r.calls) {
		n, peak := r.total(a)
		all = append(all, fmt.Sprintf("  %-28s %8.0f a minute, %6.2f of each daemon, at most %5d in a second", a.name,
			float64(n)/minutes, float64(n)/minutes/float64(daemons), peak))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (r *region) Read(ctx context.Context, kind registry.Kind, keys ...string) ([]registry.Record, error) {
	of := map[registry.Kind]action{registry.KindLease: reads, registry.KindPauses: looks}
	if err := r.call(ctx, cmp.Or(of[kind], runReads)); err != nil {
		return nil, err
	}
	return r.store.Read(ctx, kind, keys...)
}

func (r *region) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) ([]registry.Record, error) {
	of := runs
	if len(changes) > 0 && changes[0].Next.Kind == registry.KindLease {
		of = writes
	}
	if err := r.call(ctx, of); err != nil {
		return nil, err
	}
	return r.store.Swap(ctx, fence, changes...)
}

func (r *region) Send(ctx context.Context, _ string, m queue.Outgoing) (queue.Sent, error) {
	sent, err := r.queue.Send(ctx, []queue.Outgoing{m})
	if err != nil {
		return queue.Sent{}, err
	}
	return sent[0], sent[0].Err
}

func (r *region) Size(ctx context.Context) (current, desired int, err error) {
	return r.size, r.size, r.call(ctx, sizes)
}

func (r *region) SetSize(ctx context.Context, _ int) error { return r.call(ctx, resizes) }

type daemon struct {
	worker  *worker.Worker
	manager *Manager
	stop    func()

	mu   sync.Mutex
	done int
}

func (d *daemon) Deliver(ctx context.Context, _ *queue.Message) queue.Result {
	select {
	case <-ctx.Done():
		return queue.Result{Outcome: queue.Failed, Err: ctx.Err()}
	case <-time.After(50 * time.Millisecond):
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	return queue.Result{Outcome: queue.Done, Status: 200}
}

func (d *daemon) Probe(context.Context) error { return nil }

func (d *daemon) taken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.done
	d.done = 0
	return n
}

func cron(n int) []byte {
	file := []byte("version: 1\ncron:\n")
	for i := range n {
		file = fmt.Appendf(file, " - {name: audit%d, url: /audit, schedule: \"*/5 * * * *\"}\n", i)
	}
	return file
}

func (r *region) start(t *testing.T, i, tasks int) *daemon {
	file, err := periodic.ParseFile("cron.yaml", cron(tasks))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{}
	d.worker = worker.New(r.queue, d, &worker.Options{Name: "jobs", VisibilityTimeout: 300 * time.Second})
	d.manager = New(Options{File: File{Tasks: file}, Address: fmt.Sprintf("http://10.0.%d.%d:9325", i/250, i%250),
		Registry: RegistryOptions{Queue: "jobs", QueueURL: onlyInstance.QueueURL, Table: "registry"}})
	f := d.manager.registry
	f.found.Store(newSharedRegistry(registry.NewLeases(r), registry.NewSentRuns(r, f.scope(), r, f.lead), tablePauseInterval))
	if err := d.manager.Open(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	gauge := &autoscale.Gauge{Slots: func() int { return 50 },
		CPU:       func() autoscale.Reading { return autoscale.Reading{} },
		Deploying: func() bool { return false }, Queues: func() []autoscale.QueueState {
			st := d.worker.Status()
			return []autoscale.QueueState{{Name: "jobs", Known: true, HasAge: true, InWork: st.InWork,
				ServiceTime: st.ServiceTime, PerSecond: st.PerSecond}}
		}}
	loop := autoscale.New(gauge.Read, r, autoscale.Options{Interval: 30 * time.Second,
		Policy: autoscale.Policy{MinSize: r.size, MaxSize: r.size, TargetBusy: 75, DrainWithin: time.Minute}, IsLeader: d.manager.election.IsLeader})
	run, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = d.worker.Run(run, context.Background()) })
	all.Go(func() { loop.Run(run) })
	d.manager.Start(run)
	d.stop = func() {
		stop()
		if err := d.manager.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
	return d
}

func TestThousandDaemons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 1000
		if testing.Short() {
			n = 100
		}
		r := newRegion(n)
		var daemons []*daemon
		for i := range n {
			daemons = append(daemons, r.start(t, i, 1))
			time.Sleep(10 * time.Second / time.Duration(n))
		}
		time.Sleep(30 * time.Second)
		idle(t, r, n)
		for _, of := range []service{sqs, dynamoDB} {
			afterOutage(t, r, n, of)
		}
		seconds := testpeer.Size(10, 60)
		for _, rate := range testpeer.Size([]int{1000}, []int{100, 1000, 10_000}) {
			if got := atWork(t, r, daemons, min(seconds*rate, 100_000), rate, 1); got.calls > 2.1 || got.spread > 0.2 {
				t.Errorf("single sends: %+v", got)
			}
		}
		rate := testpeer.Size(2, 10) * n
		if got := atWork(t, r, daemons, min(seconds*rate, 100_000), rate, 10); got.calls > 0.45 {
			t.Errorf("sends of ten: %+v", got)
		}
		burst := atWork(t, r, daemons, testpeer.Size(50, 100)*n, 0, 10)
		if burst.calls > 0.3 || burst.largest > 3 || burst.took > testpeer.Size(time.Second, 3*time.Second) {
			t.Errorf("all at once: %+v", burst)
		}
		var all sync.WaitGroup
		for _, d := range daemons {
			all.Go(d.stop)
		}
		all.Wait()
	})
}

func idle(t *testing.T, r *region, n int) {
	minutes := testpeer.Size(1, 30)
	r.measure()
	time.Sleep(time.Duration(minutes) * time.Minute)
	synctest.Wait()
	t.Logf("idle, %d daemons:\n%s\n  %.2f dollars a month", n, r.report(n, float64(minutes)),
		r.dollars()*month/float64(minutes))
	for _, want := range []struct {
		action
		least, most float64 // per daemon and minute
		peak        int     // of all daemons, per second
	}{
		{receives, 2.9, 3.1, n / 5}, {reads, 12, 16, n / 2}, {looks, 1.9, 2.1, n / 5}, {sizes, 0, 0.25, n / 5},
		{writes, 0, 15 / float64(n), 2}, {runs, 0, 10 / float64(n), 5}, {sends, 0, 1 / float64(n), 2},
	} {
		total, peak := r.total(want.action)
		each := float64(total) / float64(minutes) / float64(n)
		if each < want.least || each > want.most || peak > want.peak {
			t.Errorf("idle: %s %.3f times a minute by each daemon, at most %d in a second; want %v to %v, at most %d",
				want.name, each, peak, want.least, want.most, want.peak)
		}
	}
	if each := r.dollars() * month / float64(minutes) / float64(n); each > 0.16 {
		t.Errorf("an idle daemon costs %.3f dollars a month", each)
	}
}

// afterOutage limits the calls during an outage, and in the ten seconds after it.
func afterOutage(t *testing.T, r *region, n int, of service) {
	actions := map[service][]action{sqs: {receives, deletes, sends}, dynamoDB: {reads, writes, looks, runs, runReads}}[of]
	r.measure()
	time.Sleep(30 * time.Second)
	_, usual := r.total(actions...)
	r.outage(of, true)
	r.measure()
	minutes := testpeer.Size(1, 10)
	time.Sleep(time.Duration(minutes) * time.Minute)
	synctest.Wait()
	away, most := r.total(actions...)
	r.outage(of, false)
	r.measure()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	first, peak := r.total(actions...)
	name := map[service]string{sqs: "SQS", dynamoDB: "DynamoDB"}[of]
	t.Logf("%s away for %d minutes, %d daemons: usually at most %d calls in a second; while it is away %.0f on average "+
		"and at most %d; in the ten seconds after it %d, at most %d in a second", name, minutes, n, usual,
		float64(away)/float64(60*minutes), most, first, peak)
	if peak > n/2 {
		t.Errorf("%s: %d calls in one second after an outage", name, peak)
	}
	if away > 60*minutes*n/2 {
		t.Errorf("%s: %d calls in an outage of %d minutes", name, away, minutes)
	}
	time.Sleep(30 * time.Second)
}

type shares struct {
	calls   float64 // per message
	spread  float64 // standard deviation of the daemons' shares / mean
	largest float64 // share / mean
	took    time.Duration
}

// atWork measures how the daemons share messages. A rate of 0 sends all at once.
func atWork(t *testing.T, r *region, daemons []*daemon, messages, rate, batch int) (s shares) {
	n := len(daemons)
	for _, d := range daemons {
		d.taken()
	}
	deleted := r.queue.Count(queuetest.FakeDeleted)
	r.measure()
	began := time.Now()
	bodies := slices.Repeat([]queue.Outgoing{{Body: "job"}}, batch)
	for i := range messages / batch {
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i*batch) * time.Second / time.Duration(rate))))
		}
		go func() {
			if _, err := r.queue.Send(context.Background(), bodies); err != nil {
				t.Error(err)
			}
		}()
	}
	for r.queue.Count(queuetest.FakeDeleted)-deleted < messages && time.Since(began) < time.Hour {
		time.Sleep(200 * time.Millisecond)
	}
	s.took = time.Since(began)
	synctest.Wait()
	var taken []int
	var squares float64
	mean := float64(messages) / float64(n)
	for _, d := range daemons {
		k := d.taken()
		taken = append(taken, k)
		squares += (float64(k) - mean) * (float64(k) - mean)
	}
	slices.Sort(taken)
	s.spread, s.largest = math.Sqrt(squares/float64(n))/mean, float64(taken[n-1])/mean
	calls, peak := r.total(receives, deletes, changes)
	s.calls = float64(calls) / float64(messages)
	how := fmt.Sprintf("%d messages at once", messages)
	if rate > 0 {
		how = fmt.Sprintf("%d messages a second in sends of %d", rate, batch)
	}
	t.Logf("%s, %d daemons: done after %v; each takes %d to %d of %.0f, spread %.2f; %.2f calls for a message, %.2f "+
		"dollars a million, at most %d calls in a second", how, n, s.took.Round(time.Millisecond), taken[0], taken[n-1],
		mean, s.spread, s.calls, s.calls*priceSQS, peak)
	if done := r.queue.Count(queuetest.FakeDeleted) - deleted; done < messages || done > messages+3 {
		t.Errorf("%s: %d were done, %d sent and a run at most", how, done, messages)
	}
	return s
}

func TestManyTasksOfOneScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks = 1000
		r := newRegion(1)
		d := r.start(t, 0, tasks)
		time.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(5 * time.Minute)))
		r.measure()
		began := time.Now()
		for n, _ := r.total(sends); n < tasks && time.Since(began) < 4*time.Minute; n, _ = r.total(sends) {
			time.Sleep(10 * time.Millisecond)
		}
		took := time.Since(began)
		n, peak := r.total(sends)
		t.Logf("%d tasks due at one time: enqueued within %v, at most %d in a second; %.2f dollars a million\n%s", n, took,
			peak, 1e6*r.dollars()/float64(n), r.report(1, took.Minutes()))
		if least := tasks / 500; n != tasks || took > time.Duration(least+1)*time.Second {
			t.Errorf("%d of %d runs enqueued after %v", n, tasks, took)
		}
		d.stop()
	})
}
