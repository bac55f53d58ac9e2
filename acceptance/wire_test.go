package acceptance

import (
	"io"
	"net"
	"sync"
	"testing"
)

type wire struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	off  bool
	open map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to, open: map[net.Conn]bool{}}
	go w.serve()
	t.Cleanup(func() { l.Close(); w.cut(true) })
	return w
}

func (w *wire) address() string { return w.l.Addr().String() }

func (w *wire) serve() {
	for {
		conn, err := w.l.Accept()
		if err != nil {
			return
		}
		go w.pass(conn)
	}
}

func (w *wire) pass(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", w.to)
	if err != nil || !w.keep(conn, out) {
		return
	}
	defer out.Close()
	go io.Copy(out, conn)
	io.Copy(conn, out)
}

func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		if w.off {
			c.Close()
		}
		w.open[c] = true
	}
	return !w.off
}

func (w *wire) cut(off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = off
	if off {
		for c := range w.open {
			c.Close()
			delete(w.open, c)
		}
	}
}
