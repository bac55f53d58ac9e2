package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

type dialer struct {
	target  *target
	timeout time.Duration
	open    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config // nil without TLS
	files   *identity   // updates tls when the certificate files change; may be nil
	event   func(Connected)
}

func newDialer(t *target, opts *Options) (d *dialer, err error) {
	d = &dialer{target: t, timeout: opts.ConnectTimeout, open: opts.dial, event: opts.Events.Connected}
	if d.open == nil {
		d.open = (&net.Dialer{ControlContext: refuseAtConnect}).DialContext
	}
	if t.name != "" {
		d.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if opts.tls != nil {
			d.tls = opts.tls.Clone()
		}
		d.tls.ServerName = t.name
		d.tls.NextProtos = []string{"http/1.1"}
		if opts.TLS != (TLSFiles{}) {
			d.files, err = openIdentity(opts.TLS, d.tls, opts.Events.CertificateRead)
		}
	}
	return d, err
}

func refuseAtConnect(_ context.Context, _, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err == nil {
		return refuseAddress(a.Addr())
	}
	return nil
}

// dial connects and completes the TLS handshake. A zero end means no deadline.
func (d *dialer) dial(ctx context.Context, end time.Time) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if !end.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}

	raw, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := newConn(raw)
	if d.tls == nil {
		return c, nil
	}

	secure := tls.Client(raw, d.config())
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	c.stream = secure
	return c, nil
}

func (d *dialer) config() *tls.Config {
	if d.files == nil {
		return d.tls
	}
	return d.files.currentConfig(time.Now())
}

func (d *dialer) connect(ctx context.Context) (net.Conn, error) {
	var first error
	for _, address := range d.target.dials {
		raw, err := d.open(ctx, d.target.network, address)
		if d.event != nil {
			d.event(Connected{Address: address, Err: err})
		}
		if err == nil {
			return raw, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}

	return nil, first
}

var errHandshake = errors.New("TLS handshake")
