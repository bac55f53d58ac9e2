package runtimeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tendril/internal/supervisor"
)

type Exit = supervisor.Exit

// fakeHost runs functions as goroutines with in-memory connections, in virtual time.
type fakeHost struct {
	behave func(f *function) Exit

	mu        sync.Mutex
	listeners map[string]*memoryListener
	starts    []time.Time
	alive     int
	mostAlive int
	startErr  error
	hold      chan struct{} // delays the start of a process
	closed    bool
	signals   []syscall.Signal
}

func newFakePool(t *testing.T, o Options, behave func(f *function) Exit) (*Pool, *fakeHost) {
	t.Helper()
	o.Command = []string{"/bin/sh"}
	set, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{behave: behave, listeners: map[string]*memoryListener{}}
	p := newPool(set, h.host())
	p.Start()
	return p, h
}

func (h *fakeHost) listen() (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &memoryListener{address: fmt.Sprintf("127.0.0.1:%d", 10_000+len(h.listeners)), conns: make(chan net.Conn),
		closed: make(chan struct{})}
	h.listeners[l.address] = l
	return l, nil
}

func (h *fakeHost) client(net.Conn) string { return "a client" }

func (h *fakeHost) host() host { return host{h.listen, h.client, h.start, h.close} }

func (h *fakeHost) start(_ int, env []string) (process, error) {
	h.mu.Lock()
	hold := h.hold
	h.mu.Unlock()
	if hold != nil {
		<-hold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts = append(h.starts, time.Now())
	if h.startErr != nil {
		return nil, h.startErr
	}
	h.alive++
	h.mostAlive = max(h.mostAlive, h.alive)
	ctx, kill := context.WithCancel(context.Background())
	address := lookup(env, "AWS_LAMBDA_RUNTIME_API")
	f := &function{host: h, number: len(h.starts), env: env, address: address, ctx: ctx, kill: kill,
		term: make(chan struct{}), ended: make(chan struct{})}
	f.client = &http.Client{Transport: &http.Transport{DialContext: h.listeners[address].dial}}
	go f.run()
	return f, nil
}

func (h *fakeHost) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

func (h *fakeHost) started() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts)
}

type function struct {
	host    *fakeHost
	number  int
	env     []string
	address string
	client  *http.Client
	ctx     context.Context
	kill    context.CancelFunc
	term    chan struct{}
	once    sync.Once
	ended   chan struct{}
	exit    Exit
	killed  atomic.Bool
	// disowned requests appear to come from another program.
	disowned atomic.Bool
}

func (f *function) run() {
	f.exit = f.host.behave(f)
	if f.killed.Load() {
		f.exit = Exit{Code: -1, Signal: "SIGKILL"}
	}
	f.kill()
	f.client.CloseIdleConnections()
	close(f.ended)
}

func (f *function) PID() int                { return 1000 + f.number }
func (f *function) Exited() <-chan struct{} { return f.ended }
func (f *function) Owns(net.Conn) bool      { return !f.disowned.Load() }

func (f *function) Signal(sig syscall.Signal) {
	f.host.mu.Lock()
	f.host.signals = append(f.host.signals, sig)
	f.host.mu.Unlock()
	if sig == syscall.SIGKILL {
		f.killed.Store(true)
		f.kill()
		return
	}
	f.once.Do(func() { close(f.term) })
}

func (f *function) Reap() Exit {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	f.host.alive--
	return f.exit
}

type event struct {
	id     string
	header http.Header
	body   []byte
}

var errEnding = errors.New("the process is to end")

func (f *function) next() (event, error) {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go func() {
		select {
		case <-f.term:
			cancel()
		case <-ctx.Done():
		}
	}()
	resp, err := f.get(ctx)
	if err != nil {
		return event{}, errEnding
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		return event{}, fmt.Errorf("next: status %d, %w", resp.StatusCode, err)
	}
	return event{resp.Header.Get("Lambda-Runtime-Aws-Request-Id"), resp.Header, body}, nil
}

func (f *function) get(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+f.address+"/2018-06-01/runtime/invocation/next", nil)
	if err != nil {
		return nil, err
	}
	return f.client.Do(req)
}

// post returns status 0 without a response. path is below /2018-06-01/runtime.
func (f *function) post(path, body string, header ...string) (int, string) {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodPost, "http://"+f.address+"/2018-06-01/runtime/"+path,
		bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err.Error()
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func (f *function) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-f.ctx.Done():
	}
}

func (f *function) serve(handle func(e event) string) Exit {
	for {
		e, err := f.next()
		if err != nil {
			return Exit{}
		}
		answer := handle(e)
		if f.ctx.Err() != nil {
			return Exit{}
		}
		f.post("invocation/"+e.id+"/response", answer)
	}
}

func echo(f *function) Exit { return f.serve(func(e event) string { return string(e.body) }) }

type memoryListener struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddress(l.address) }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryAddress string

func (a memoryAddress) Network() string { return "memory" }
func (a memoryAddress) String() string  { return string(a) }
