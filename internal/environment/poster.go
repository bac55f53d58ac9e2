package environment

import (
	"cmp"
	"context"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/delivery"
	"tendril/internal/delivery/deliver"
	"tendril/internal/observe/telemetry"
	"tendril/internal/worker"
	"tendril/queue"
)

// Poster posts messages to a queue's target like deliveries, but does not use the queue. It is not safe for concurrent
// use.
type Poster struct {
	// URL is the destination of ordinary messages.
	URL     string
	http    *deliver.Client
	deliver worker.Deliverer
	last    *api.Exchange
}

// NewPoster returns a poster that connects to address. path "" means the configured one.
func NewPoster(s *config.Settings, set *config.QueueSettings, name, version, address, path string) (*Poster, error) {
	opts, err := httpOptions(s, set, name)
	if err != nil {
		return nil, err
	}

	opts.Target = address
	opts.Path = cmp.Or(path, opts.Path)
	opts.Version = version
	opts.Trace = telemetry.Propagate
	p := &Poster{URL: address + opts.Path}
	opts.Events.Record = func(m *queue.Message) func(*deliver.Exchange) {
		return func(x *deliver.Exchange) {
			shown := exchangeOf(x, name, address, m.ID)
			p.last = &shown
		}
	}

	if p.http, err = deliver.NewClient(opts); err != nil {
		return nil, err
	}

	p.deliver = delivery.ForWorker(&delivery.Options{Target: p.http, SNS: set.ViaSNS})
	return p, nil
}

// Post posts a message. The returned exchange is nil if nothing was sent.
func (p *Poster) Post(ctx context.Context, m *queue.Message) (queue.Result, *api.Exchange) {
	p.last = nil
	result := p.deliver.Deliver(ctx, m)
	return result, p.last
}

// Close closes the connections.
func (p *Poster) Close() { p.http.Close() }
