package connpool

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

type fakeConn struct{ dead, closed bool }

func (c *fakeConn) Alive() bool { return !c.dead }

func (c *fakeConn) Close() error { c.closed = true; return nil }

func TestPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Pool[*fakeConn]{Keep: time.Second}
		if _, found := p.Get(time.Now()); found {
			t.Error("an empty pool gave a connection")
		}
		first, second, third := &fakeConn{}, &fakeConn{}, &fakeConn{}
		p.Put(first, time.Now())
		time.Sleep(600 * time.Millisecond)
		p.Put(second, time.Now())
		if c, _ := p.Get(time.Now()); c != second {
			t.Error("the last one used is not on top")
		}
		p.Put(second, time.Now())
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		if !first.closed || second.closed {
			t.Errorf("after 1.2 s and 0.6 s: closed %v and %v", first.closed, second.closed)
		}
		if _, found := p.Get(time.Now().Add(time.Minute)); found || !second.closed {
			t.Error("a connection too old was given out")
		}
		third.dead = true
		p.Put(third, time.Now())
		if _, found := p.Get(time.Now()); found || !third.closed {
			t.Error("a dead connection was given out")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.sweep != nil {
			t.Error("the sweep goes on over an empty pool")
		}
		fourth, fifth := &fakeConn{}, &fakeConn{}
		p.Put(fourth, time.Now())
		p.Close()
		p.Put(fifth, time.Now())
		if !fourth.closed || !fifth.closed {
			t.Error("a closed pool keeps connections")
		}
	})
}

func TestPeekerSeesDataAndTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		do    func(server net.Conn)
		alive bool
	}{
		{"quiet", func(net.Conn) {}, true},
		{"unsolicited data", func(c net.Conn) { c.Write([]byte("x")) }, false},
		{"closed by the server", func(c net.Conn) { c.Close() }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			p := NewPeeker(client)
			if !p.Alive() {
				t.Fatal("a new connection is not alive")
			}
			test.do(server)
			if !test.alive {
				testpeer.AwaitReadable(t, client)
			}
			if alive := p.Alive(); alive != test.alive {
				t.Errorf("alive: %v, want %v", alive, test.alive)
			}
		})
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	if !NewPeeker(ours).Alive() {
		t.Error("a connection that cannot be checked is not alive")
	}
}
