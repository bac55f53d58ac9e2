package aws

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"tendril/internal/host/connpool"
)

// exchanger is an http.RoundTripper for HTTP/1.1 that works on the caller's goroutine. It resends a request only if a
// kept connection accepted no byte of it. Requests through a proxy are left to http.Transport.
type exchanger struct {
	transport *http.Transport
	buffers   sync.Pool

	mu    sync.Mutex
	pools map[origin]*connpool.Pool[*connection]
}

type origin struct{ scheme, host string }

func newExchanger(t *http.Transport) *exchanger {
	return &exchanger{transport: t, pools: map[origin]*connpool.Pool[*connection]{}}
}

func (x *exchanger) RoundTrip(req *http.Request) (*http.Response, error) {
	if x.isProxied(req) || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return wholeBodies{x.transport}.RoundTrip(req)
	}

	text, _ := x.buffers.Get().(*bytes.Buffer)
	if text == nil {
		text = new(bytes.Buffer)
	}
	text.Reset()
	defer x.buffers.Put(text)
	if err := req.Write(text); err != nil {
		return nil, err
	}

	pool := x.pool(origin{req.URL.Scheme, req.URL.Host})
	for {
		c, kept := pool.Get(time.Now())
		if !kept {
			break
		}
		resp, sent, err := c.exchange(req, text.Bytes(), pool)
		if err == nil || sent || req.Context().Err() != nil {
			return resp, err
		}
	}

	c, err := x.dial(req.Context(), req.URL)
	if err != nil {
		return nil, err
	}
	resp, _, err := c.exchange(req, text.Bytes(), pool)
	return resp, err
}

// If the proxy settings are invalid, the transport reports the error.
func (x *exchanger) isProxied(req *http.Request) bool {
	if x.transport.Proxy == nil {
		return false
	}
	proxy, err := x.transport.Proxy(req)
	return proxy != nil || err != nil
}

func (x *exchanger) pool(o origin) *connpool.Pool[*connection] {
	x.mu.Lock()
	defer x.mu.Unlock()
	pool := x.pools[o]
	if pool == nil {
		pool = &connpool.Pool[*connection]{Keep: x.transport.IdleConnTimeout}
		x.pools[o] = pool
	}
	return pool
}

func (x *exchanger) close() {
	x.transport.CloseIdleConnections()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, pool := range x.pools {
		pool.Close()
	}
}

type connection struct {
	*connpool.Peeker
	raw    net.Conn
	stream net.Conn // TLS over raw, or raw itself
	limit  io.LimitedReader
	in     *bufio.Reader
	abort  func()
}

func (x *exchanger) dial(ctx context.Context, to *url.URL) (*connection, error) {
	raw, err := x.transport.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), to.Scheme)))
	if err != nil {
		return nil, err
	}

	c := &connection{Peeker: connpool.NewPeeker(raw), raw: raw, stream: raw,
		abort: func() { raw.SetDeadline(time.Unix(1, 0)) }}
	if to.Scheme == "https" {
		if c.stream, err = x.handshake(ctx, raw, to.Hostname()); err != nil {
			raw.Close()
			return nil, err
		}
	}
	c.limit.R = c.stream
	c.in = bufio.NewReaderSize(&c.limit, x.transport.ReadBufferSize)
	return c, nil
}

func (x *exchanger) handshake(ctx context.Context, raw net.Conn, host string) (*tls.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, x.transport.TLSHandshakeTimeout)
	defer cancel()

	config := x.transport.TLSClientConfig.Clone()
	config.ServerName = host
	config.NextProtos = []string{"http/1.1"}
	secure := tls.Client(raw, config)
	return secure, secure.HandshakeContext(limited)
}

// Close sends no TLS alert, which could block.
func (c *connection) Close() error { return c.raw.Close() }

const maxHeaders = 64 << 10

// exchange returns the connection to the pool once the response's body has been read to the end. sent reports whether
// the server may have received part of the request.
func (c *connection) exchange(req *http.Request, text []byte, pool *connpool.Pool[*connection]) (resp *http.Response,
	sent bool, err error) {
	stopAborting := context.AfterFunc(req.Context(), c.abort)
	written, writeErr := c.stream.Write(text)
	sent = written > 0 || writeErr == nil
	err = writeErr
	if sent { // the server may have responded without reading the whole request
		resp, err = c.readHead(req)
	}
	if err != nil {
		stopAborting()
		c.Close()
		return nil, sent, cmp.Or(writeErr, err)
	}

	resp.Body = &answerBody{body: resp.Body, release: func(whole bool) {
		intact := stopAborting() && whole && writeErr == nil
		if !intact || resp.Close || c.in.Buffered() > 0 {
			c.Close()
			return
		}
		pool.Put(c, time.Now())
	}}
	return resp, true, nil
}

func (c *connection) readHead(req *http.Request) (*http.Response, error) {
	c.limit.N = maxHeaders
	for {
		resp, err := http.ReadResponse(c.in, req)
		switch {
		case err != nil && c.limit.N <= 0:
			return nil, errors.New("the response headers are longer than 64 KiB")
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the response switches protocols")
		case resp.StatusCode/100 != 1:
			c.limit.N = math.MaxInt64
			return resp, nil
		}
	}
}

type answerBody struct {
	body    io.Reader
	release func(whole bool) // nil after the first call
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err == io.EOF {
		b.end(true)
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.end(false)
	return nil
}

func (b *answerBody) end(whole bool) {
	if b.release != nil {
		b.release(whole)
		b.release = nil
	}
}
