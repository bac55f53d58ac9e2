package deliver

import (
	"context"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

type recorder struct {
	net.Conn
	read, write time.Time
}

func (r *recorder) SetDeadline(t time.Time) error      { r.read, r.write = t, t; return nil }
func (r *recorder) SetReadDeadline(t time.Time) error  { r.read = t; return nil }
func (r *recorder) SetWriteDeadline(t time.Time) error { r.write = t; return nil }

func TestDeadlinesOfAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		r := &recorder{}
		c := newConn(r)
		check := func(what string, read, write time.Duration) {
			t.Helper()
			if r.read.Sub(now) != read || r.write.Sub(now) != write {
				t.Errorf("%s: deadlines after %v and %v, want %v and %v", what, r.read.Sub(now), r.write.Sub(now), read, write)
			}
		}
		c.resetForExchange(time.Minute, time.Time{})
		check("no end", time.Minute, time.Minute)
		c.resetForExchange(time.Minute, now.Add(time.Hour))
		check("far end", time.Minute, time.Minute)
		c.resetForExchange(time.Minute, now.Add(time.Second))
		check("near end", time.Second, time.Second)
		c.closing.Store(true)
		c.renewDeadline()
		check("answered", time.Second, writeGrace)
		c.stop()
		past := time.Unix(1, 0).Sub(now)
		check("stopped", past, past)
		c.renewDeadline()
		check("stopped for good", past, past)
	})
}

func TestContextEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h, a := startPiped(t, alwaysAnswer(ok200), func(o *Options) {
		o.KeepAlive = time.Hour
		pipe := o.dial
		o.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			raw, err := pipe(ctx, network, address)
			return afterRead{raw, cancel}, err
		}
	})
	want(t, h.Deliver(ctx, message()), queue.Done, 200, "")
	want(t, deliver(h, message()), queue.Done, 200, "")
	a.wantCounts(t, 2, 2)
}

func TestContextAbortsLaterExchangesOfAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, a := startPiped(t, func(c *appConn) {
			c.read()
			c.write(ok200)
			c.read()
			c.read()
		}, func(o *Options) { o.KeepAlive = time.Hour })
		ctx, cancel := context.WithCancel(t.Context())
		want(t, h.Deliver(ctx, message()), queue.Done, 200, "")
		time.AfterFunc(time.Second, cancel)
		if r := h.Deliver(ctx, message()); r.Outcome != queue.Failed || r.Duration != time.Second {
			t.Errorf("%+v", r)
		}
		a.wantCounts(t, 1, 2)
	})
}

type countedContext struct {
	context.Context
	done               chan struct{}
	registered, closed int
}

func (c *countedContext) Done() <-chan struct{} { return c.done }

func (c *countedContext) AfterFunc(func()) func() bool {
	c.registered++
	return func() bool { c.closed++; return true }
}

func TestConnectionRegistersOnceWithAContextUntilItIsClosed(t *testing.T) {
	t.Parallel()
	h, a := startPiped(t, alwaysAnswer(ok200), func(o *Options) { o.KeepAlive = time.Hour })
	shared := &countedContext{Context: context.Background(), done: make(chan struct{})}
	want(t, h.Deliver(shared, message()), queue.Done, 200, "")
	first := shared.registered
	want(t, h.Deliver(shared, message()), queue.Done, 200, "")
	if shared.registered != first || shared.closed != first-1 {
		t.Errorf("%d registrations of %d are open after two deliveries, of %d after one", shared.registered-shared.closed,
			shared.registered, first)
	}
	a.wantCounts(t, 1, 2)
	h.Close()
	if shared.closed != first {
		t.Errorf("%d registrations are open after the connection is closed", first-shared.closed)
	}
}

type afterRead struct {
	net.Conn
	do func()
}

func (c afterRead) Read(p []byte) (int, error) {
	defer c.do()
	return c.Conn.Read(p)
}

func TestHalfWrittenRequestIsNotFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, a := startPiped(t, func(c *appConn) { c.readHead(); c.write(ok200); time.Sleep(time.Hour) },
			func(o *Options) { o.KeepAlive = time.Hour })
		m := message()
		m.Body = strings.Repeat("x", 4*writeChunk)
		want(t, deliver(h, m), queue.Done, 200, "")
		want(t, deliver(h, message()), queue.Done, 200, "")
		a.wantCounts(t, 2, 2)
	})
}

func TestReadStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours)
	c.resetForExchange(math.MaxInt64/4, time.Time{})
	c.limit = 3
	go theirs.Write([]byte("12345"))
	p := make([]byte, 10)
	if n, err := c.Read(p); n != 3 || err != nil {
		t.Errorf("read %d bytes, %v; want 3", n, err)
	}
	if n, err := c.Read(p); n != 0 || err != errHeadTooLong {
		t.Errorf("read %d bytes, %v; want the limit", n, err)
	}
	c.Close()
}
