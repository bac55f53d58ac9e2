package delivery

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
	"tendril/queue"
)

// Remote is a target that tendril does not run itself.
type Remote struct {
	open  func() (*deliver.Client, error)
	check supervisor.Check
	http  atomic.Pointer[deliver.Client]
}

// NewRemote returns a target with a client from open. With a zero check, the app only has to accept connections.
func NewRemote(open func() (*deliver.Client, error), check supervisor.Check) (*Remote, error) {
	r := &Remote{open: open, check: check}
	return r, r.Renew()
}

// Deliver implements [Target].
func (r *Remote) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return r.http.Load().Deliver(ctx, m)
}

// DeliverBatch implements [worker.BatchDeliverer].
func (r *Remote) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	return r.http.Load().DeliverBatch(ctx, ms)
}

// Probe implements [Target].
func (r *Remote) Probe(ctx context.Context) error {
	if check := r.check; !check.IsZero() {
		if check.TLS {
			check.TLSConfig = r.http.Load().TLSConfig()
		}
		return check.Probe(ctx)
	}
	return r.http.Load().Probe(ctx)
}

// Renew replaces the client. If open fails, the previous one stays in use.
func (r *Remote) Renew() error {
	opened, err := r.open()
	if err != nil {
		return err
	}
	if old := r.http.Swap(opened); old != nil {
		old.Close()
	}
	return nil
}

// Close closes the client.
func (r *Remote) Close() { r.http.Load().Close() }

// CheckAt returns check for target's host, unless target is a socket. An HTTP check of target's port uses TLS if target
// does.
func CheckAt(check supervisor.Check, target string) supervisor.Check {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return check
	}
	if host := u.Hostname(); !strings.EqualFold(host, "localhost") {
		check.Host = host
	}
	check.TLS = u.Scheme == "https" && check.Path != "" && strconv.Itoa(check.Port) == cmp.Or(u.Port(), "443")
	return check
}
