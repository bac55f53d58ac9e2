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
	closed      bool
}

func (r *recorder) SetDeadline(t time.Time) error      { r.read, r.write = t, t; return nil }
func (r *recorder) SetReadDeadline(t time.Time) error  { r.read = t; return nil }
func (r *recorder) SetWriteDeadline(t time.Time) error { r.write = t; return nil }
func (r *recorder) Close() error                       { r.closed = true; return nil }

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
		c.begin(time.Minute, time.Time{})
		check("no end", time.Minute, time.Minute)
		c.begin(time.Minute, now.Add(time.Hour))
		check("far end", time.Minute, time.Minute)
		c.begin(time.Minute, now.Add(time.Second))
		check("near end", time.Second, time.Second)
		c.closing.Store(true)
		c.extend()
		check("answered", time.Second, writeGrace)
		c.stop()
		past := time.Unix(1, 0).Sub(now)
		check("stopped", past, past)
		c.extend() // as in a goroutine that has not noticed the stop yet
		check("stopped for good", past, past)
	})
}

// The connection is closed, and the next message is not affected.
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

type afterRead struct {
	net.Conn
	do func()
}

func (c afterRead) Read(p []byte) (int, error) {
	defer c.do()
	return c.Conn.Read(p)
}

// A connection whose last request was written only partially is not reused.
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

func TestPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pool{keep: time.Second}
		var raws []*recorder
		open := func() *conn {
			raws = append(raws, &recorder{})
			return newConn(raws[len(raws)-1])
		}
		if p.get(time.Now()) != nil {
			t.Error("an empty pool gave a connection")
		}
		first, second := open(), open()
		p.put(first, time.Now())
		time.Sleep(600 * time.Millisecond)
		p.put(second, time.Now())
		if c := p.get(time.Now()); c != second {
			t.Error("the last one used is not on top")
		}
		p.put(second, time.Now())
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		if !raws[0].closed || raws[1].closed {
			t.Errorf("after 1.2 s and 0.6 s: closed %v and %v", raws[0].closed, raws[1].closed)
		}
		// Connections may expire before the sweep runs.
		if p.get(time.Now().Add(time.Minute)) != nil || !raws[1].closed {
			t.Error("a connection too old was given out")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.sweep != nil {
			t.Error("the sweep goes on over an empty pool")
		}
		third, fourth := open(), open()
		p.put(third, time.Now())
		p.close()
		p.put(fourth, time.Now())
		if !raws[2].closed || !raws[3].closed {
			t.Error("a closed pool keeps connections")
		}
	})
}

func TestReadStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours)
	c.begin(math.MaxInt64/4, time.Time{})
	c.limit = 3
	go theirs.Write([]byte("12345"))
	p := make([]byte, 10)
	if n, err := c.Read(p); n != 3 || err != nil {
		t.Errorf("read %d bytes, %v; want 3", n, err)
	}
	if n, err := c.Read(p); n != 0 || err != errHeadTooLong {
		t.Errorf("read %d bytes, %v; want the limit", n, err)
	}
	c.close()
}
