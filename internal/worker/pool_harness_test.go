package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type begun struct {
	queue, id string
	at        time.Time
}

type counter struct {
	mu      sync.Mutex
	begun   []begun
	working int
	most    int
}

type queueApp struct {
	*testApp
	name string
	c    *counter
}

func (l *queueApp) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	l.c.mu.Lock()
	l.c.begun = append(l.c.begun, begun{l.name, m.ID, time.Now()})
	l.c.working++
	l.c.most = max(l.c.most, l.c.working)
	l.c.mu.Unlock()
	defer func() {
		l.c.mu.Lock()
		l.c.working--
		l.c.mu.Unlock()
	}()
	return l.testApp.Deliver(ctx, m)
}

func (c *counter) seen() []begun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]begun(nil), c.begun...)
}

func (c *counter) shares(n int) map[string]int {
	m := map[string]int{}
	seen := c.seen()
	for _, b := range seen[:min(n, len(seen))] {
		m[b.queue]++
	}
	return m
}

type crowd struct {
	*counter
	t    *testing.T
	pool *Pool
	by   map[string]*harness
	all  []*harness
}

func poolOf(t *testing.T, opts *PoolOptions, fake *queuetest.FakeOptions, members ...*Options) *crowd {
	c := &crowd{counter: &counter{}, t: t, pool: NewPool(opts), by: map[string]*harness{}}
	for i, o := range members {
		name := string(rune('a' + i))
		o.Name, o.Pool = name, c.pool
		f := queuetest.FakeOptions{}
		if fake != nil {
			f = *fake
		}
		f.FIFO = o.FIFO
		r := &harness{t: t, fake: queuetest.NewFake(&f), app: &testApp{}, ended: make(chan error, 1)}
		r.app.fake = r.fake
		r.w = New(r.fake, &queueApp{r.app, name, c.counter}, o)
		c.by[name] = r
		c.all = append(c.all, r)
	}
	return c
}

func (c *crowd) run() {
	for _, r := range c.all {
		r.run()
		synctest.Wait()
	}
}

func (c *crowd) stop() {
	c.t.Helper()
	for _, r := range c.all {
		r.stop()
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.pool.inWork != 0 || c.pool.granted != 0 || len(c.pool.lanes) != 0 {
		c.t.Errorf("after the end %d are in work, %d slots reserved, %d members left", c.pool.inWork, c.pool.granted,
			len(c.pool.lanes))
	}
}

func (c *crowd) every(handle func(context.Context, *queue.Message) queue.Result) {
	for _, r := range c.all {
		r.app.mu.Lock()
		r.app.handle = handle
		r.app.mu.Unlock()
	}
}

func (c *crowd) receives() (n int) {
	for _, r := range c.all {
		n += r.fake.Calls(queuetest.FakeReceive)
	}
	return n
}

func (c *crowd) posts(name string) (n int) {
	for _, b := range c.seen() {
		if b.queue == name {
			n++
		}
	}
	return n
}

func weights(w ...int) (l []*Options) {
	for _, n := range w {
		l = append(l, &Options{Weight: n})
	}
	return l
}

func (c *crowd) String() string {
	c.pool.mu.Lock()
	s := fmt.Sprintf("%d in work, %d slots reserved", c.pool.inWork, c.pool.granted)
	c.pool.mu.Unlock()
	for _, r := range c.all {
		st := r.w.Status()
		s += fmt.Sprintf("\n  %s: %d in flight, %d prefetched, %d polls, %+v", st.Name, st.InWork, st.Prefetched,
			r.fake.OpenReceives(), st.Counts)
	}
	return s
}
