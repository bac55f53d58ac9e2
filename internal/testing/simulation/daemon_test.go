package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/delivery"
	"tendril/internal/worker"
	"tendril/queue"
)

type daemon struct {
	w     *world
	index int

	mu     sync.Mutex
	lives  int
	life   *life // nil while down
	goesOn chan struct{}

	kept string

	offset, before time.Duration
	setAt          time.Time
}

type life struct {
	*daemon
	number    int
	startedAt time.Time
	worker    *worker.Worker
	elector   *leader.Elector
	scheduler *periodic.Scheduler
	fleet     *follower

	killed                   context.Context
	kill, stopReceive, abort context.CancelFunc
	stopTasks                context.CancelFunc
	parts                    sync.WaitGroup
	workerErr                error

	// The oracle's lock guards these.
	posts    int
	receipts map[string]bool
}

func (l *life) posted(receipt string) (first bool) {
	first = !l.receipts[receipt]
	l.receipts[receipt] = true
	return first
}

func (l *life) working(n int) int {
	l.posts += n
	return l.posts
}

func (d *daemon) running() *life {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.life
}

func (d *daemon) random() float64 { return d.w.plan.roll("random", d.index, d.w.now()) }

func (d *daemon) wall() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Add(d.offset).Round(0)
}

// latest returns the latest time that the clock has shown within the last second, because decisions may be that old.
func (d *daemon) latest() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	offset := d.offset
	if time.Since(d.setAt) <= time.Second {
		offset = max(offset, d.before)
	}
	return time.Now().Add(offset).Round(0)
}

func (d *daemon) setClock(ahead time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offset != ahead {
		d.before, d.offset, d.setAt = d.offset, ahead, time.Now()
	}
}

func (d *daemon) options() *worker.Options {
	p := d.w.plan
	o := &worker.Options{Name: d.w.queueName(workQueue), Concurrency: p.Connections, VisibilityTimeout: p.Visibility,
		FIFO: p.FIFO, UncountedReturns: p.Embedded, MaxReceives: p.MaxReceives, ProbeIdle: 10 * time.Second, Random: d.random}
	if p.ErrorVisibility >= 0 {
		o.ErrorVisibilityTimeout = &p.ErrorVisibility
	}
	if p.Embedded {
		o.DeleteLinger = -1
	}
	switch d.w.bug {
	case bugTooMany:
		o.Concurrency += 3
	case bugOutOfOrder:
		o.FIFO = false
	}
	return o
}

func (d *daemon) start() {
	if d.running() != nil {
		return
	}
	d.lives++
	l := &life{daemon: d, number: d.lives, startedAt: time.Now(), receipts: map[string]bool{}}
	l.killed, l.kill = context.WithCancel(context.Background())
	way := &link{w: d.w, daemon: d.index, life: l}
	name := d.w.queueName(workQueue)
	deliverer := delivery.ForWorker(&delivery.Options{Target: target{l}, FIFO: d.w.plan.FIFO, Known: way.Known, Paused: l.isPaused})
	var q worker.Queue = way
	if d.w.plan.Embedded {
		q = &embeddedLink{way}
	}
	l.worker = worker.New(q, deliverer, d.options())
	receive, stopReceive := context.WithCancel(context.Background())
	work, abort := context.WithCancel(context.Background())
	l.stopReceive, l.abort = stopReceive, abort
	if len(d.w.plan.Operations) > 0 {
		l.fleet = l.startFollower(way)
	}
	l.parts.Go(func() {
		if l.fleet != nil {
			l.fleet.adopt(receive)
		}
		l.workerErr = l.worker.Run(receive, work)
	})
	tasking, stopTasks := context.WithCancel(context.Background())
	if l.stopTasks = stopTasks; d.w.plan.Tasks {
		l.startTasks(tasking, way, name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life = l
	d.w.note("daemon %d starts", d.index)
}

func (l *life) startTasks(ctx context.Context, way *link, name string) {
	wall := l.wall
	if l.w.bug == bugRunEarly {
		wall = func() time.Time { return l.wall().Add(90 * time.Second) }
	}
	elector, err := leader.New(way, leader.Options{Name: periodic.LeaseName(name), Owner: l.name(), Wall: wall,
		Random: l.random, Revision: l.fleet.revision})
	if err != nil {
		l.w.t.Fatal(err)
	}
	l.elector = elector
	l.scheduler = periodic.New(l.w.file(), elector, way, periodic.Options{Queue: name, Wall: wall,
		Events: periodic.Events{Skipped: l.w.oracle.skipped}})
	start := func(run func()) {
		l.parts.Go(func() {
			if l.fleet.isAdopted(ctx) {
				run()
			}
		})
	}
	start(func() { _ = elector.Run(ctx) })
	start(func() { _ = l.scheduler.Run(ctx) })
	if l.fleet != nil {
		start(func() { l.fleet.follow(ctx) })
	}
}

func (l *life) name() string { return string(rune('a'+l.index)) + string(rune('0'+l.number%10)) }

func (d *daemon) end() *life {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.life
	d.life = nil
	return l
}

func (d *daemon) killNow() bool {
	l := d.end()
	if l == nil {
		return false
	}
	l.kill()
	l.stopReceive()
	l.abort()
	l.stopTasks()
	d.w.oracle.left(l, "the daemon was killed")
	d.w.ending.Go(l.parts.Wait)
	return true
}

func (d *daemon) stopNow() bool {
	l := d.end()
	if l == nil {
		return false
	}
	d.w.ending.Go(func() {
		l.stopReceive()
		stop := time.AfterFunc(d.w.plan.Shutdown, func() {
			d.w.oracle.left(l, "the delivery was aborted by the stop")
			l.abort()
		})
		defer stop.Stop()
		l.stopTasks()
		l.parts.Wait()
		d.w.note("daemon %d stopped: %v", d.index, l.workerErr)
	})
	return true
}

func (d *daemon) pause() {
	d.mu.Lock()
	if d.goesOn == nil {
		d.goesOn = make(chan struct{})
	}
	d.mu.Unlock()
	if l := d.running(); l != nil {
		d.w.oracle.left(l, "the daemon was paused")
	}
}

func (d *daemon) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.goesOn != nil {
		close(d.goesOn)
		d.goesOn = nil
	}
}

// frozen waits for the end of a pause. It fails if the process was killed.
func (l *life) frozen() error {
	l.mu.Lock()
	goesOn := l.goesOn
	l.mu.Unlock()
	if goesOn != nil {
		select {
		case <-goesOn:
		case <-l.killed.Done():
		}
	}
	if l.killed.Err() != nil {
		return errKilled
	}
	return nil
}

func (d *daemon) reload(n int) bool {
	l := d.running()
	if l == nil {
		return false
	}
	o := d.options()
	o.Concurrency = max(1, o.Concurrency-n%3)
	l.worker.Tune(&worker.Tuning{Concurrency: o.Concurrency, VisibilityTimeout: o.VisibilityTimeout,
		ErrorVisibilityTimeout: o.ErrorVisibilityTimeout})
	if l.scheduler != nil {
		l.scheduler.Reload(d.w.file())
	}
	return true
}

func (l *life) isPaused() bool {
	return slices.ContainsFunc(l.worker.Status().Reasons, func(r worker.Reason) bool { return r.Block == worker.Paused })
}

type target struct{ *life }

func (t target) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	if b, _ := t.w.server.current(); b != nil && t.w.plan.Embedded {
		b.Queue(t.w.queueName(workQueue)).Posting(m.ReceiptHandle)
	}
	if t.w.bug == bugPostTwice && t.w.plan.roll("twice", m.ID) < 0.1 {
		t.w.app.post(ctx, t.life, m)
	}
	return t.w.app.post(ctx, t.life, m)
}

func (t target) Probe(context.Context) error { return t.w.app.probe(t.life) }
