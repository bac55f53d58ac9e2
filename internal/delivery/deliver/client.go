package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tendril/internal/delivery/webhook"
	"tendril/internal/host/connpool"
	"tendril/queue"
)

// Client delivers messages to one app in POST requests. It is safe for concurrent use.
type Client struct {
	head      *requestHead
	transport *transport
	single    protocol
	batches   protocol
	record    string // end of each batch record; "" disables batches
	fifo      bool
	deadline  time.Duration
	trace     func(context.Context, *queue.Message) TraceContext // may be nil
	terminal  StatusSet
	reasons   reasons
	events    Events
}

// NewClient returns a client that is not connected yet.
func NewClient(opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	o, t, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	signer, err := webhook.NewSigner(o.SigningKeys)
	if err != nil {
		return nil, err
	}
	dialer, err := newDialer(t, o)
	if err != nil {
		return nil, err
	}
	record := ""
	if o.QueueARN != "" {
		if record, err = recordEnd(o.QueueARN); err != nil {
			return nil, err
		}
	}

	single := protocol{idle: o.InactivityTimeout, success: o.SuccessCodes, maxBody: o.maxBody}
	batches := single
	batches.keepBytes = o.maxBody
	return &Client{
		head: newRequestHead(t, o, signer),
		transport: &transport{dialer: dialer, paused: o.Paused, reconnected: o.Events.Reconnected,
			pool: connpool.Pool[*conn]{Keep: o.KeepAlive}},
		single:   single,
		batches:  batches,
		record:   record,
		fifo:     queue.IsFIFO(o.QueueARN),
		deadline: o.Deadline,
		trace:    o.Trace,
		terminal: o.TerminalCodes,
		reasons:  newReasons(o),
		events:   o.Events,
	}, nil
}

// Deliver posts m to the app at most once. If a kept connection accepts no bytes, it tries a new one. It returns soon
// after ctx is done; if the app may be processing the message, the outcome is then Failed.
func (c *Client) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	run, err := runOf(m)
	if err != nil {
		return queue.Result{Reason: err.Error(), Err: err, Unsent: true}
	}
	p := content{message: m, run: run, body: m.Body}
	if run != nil {
		p.body = ""
	}
	return c.deliver(ctx, &p)
}

// DeliverBatch posts several messages in one request, in the format of Lambda events. The app may respond with
// batchItemFailures. Scheduled runs, and all messages without [Options].QueueARN, are posted alone. On a FIFO queue,
// an unfinished message holds back its group in later requests.
func (c *Client) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	isAlone := func(m *queue.Message) bool { return c.record == "" || m.Run != nil }
	return InParts(ms, c.fifo, isAlone, func(part []*queue.Message) []queue.Result {
		if isAlone(part[0]) {
			return []queue.Result{c.Deliver(ctx, part[0])}
		}

		body, _ := renderEvent(part, c.record, math.MaxInt)
		p := content{message: &queue.Message{}, batch: part, body: string(body)}
		all := c.deliver(ctx, &p)
		results := slices.Repeat([]queue.Result{all}, len(part))
		for i, m := range part {
			if p.failed[m.ID] {
				results[i] = queue.Result{Status: all.Status, Reason: "reported in batchItemFailures", Duration: all.Duration}
			}
		}
		return results
	})
}

type content struct {
	message *queue.Message
	run     *scheduledRun    // nil for ordinary messages
	batch   []*queue.Message // nil for a single message
	body    string
	failed  map[string]bool
}

type scheduledRun struct {
	*queue.Run
	target string
}

func runOf(m *queue.Message) (*scheduledRun, error) {
	if m.Run == nil {
		return nil, nil
	}
	target, err := queue.ParsePath(m.Run.Path)
	if err != nil {
		return nil, fmt.Errorf("task path rejected: %w", err)
	}
	return &scheduledRun{m.Run, target}, nil
}

func (c *Client) deliver(ctx context.Context, p *content) queue.Result {
	start := time.Now()
	var end time.Time
	if c.deadline > 0 {
		end = start.Add(c.deadline)
	}
	r := newRequest(p.body, end)
	defer r.release()
	dropped := c.writeHead(ctx, r, p)

	report := c.recorder(p)
	if report != nil {
		r.protocol = r.protocol.recorded()
	}
	res, err := c.transport.exchange(ctx, r)
	if errors.Is(err, errPaused) {
		return Paused()
	}
	if err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: c.reasons.unconnectedReason(ctx, err, end), Err: err,
			Duration: time.Since(start)}
	}

	result := c.judge(ctx, &res, p, end)
	now := time.Now()
	result.Duration = now.Sub(start)
	if report != nil {
		report(newExchange(r, &res))
	}
	c.transport.release(&res, now)

	if dropped > 0 && res.sent && c.events.AttributesDropped != nil {
		c.events.AttributesDropped(AttributesDropped{MessageID: p.message.ID, Count: dropped})
	}
	if res.problem != "" && c.events.OutcomeIgnored != nil {
		c.events.OutcomeIgnored(res.problem)
	}
	return result
}

func (c *Client) writeHead(ctx context.Context, r *request, p *content) (dropped int) {
	var trace TraceContext
	if c.trace != nil {
		trace = c.trace(ctx, p.message)
	}
	if p.batch != nil {
		r.protocol = &c.batches
		r.head = c.head.appendBatchHead(r.head, p, &trace)
		return 0
	}
	r.protocol = &c.single
	r.head, dropped = c.head.append(r.head, p.message, p.run, p.body, &trace)
	return dropped
}

func (c *Client) recorder(p *content) func(*Exchange) {
	switch {
	case c.events.Record == nil:
		return nil
	case p.batch == nil:
		return c.events.Record(p.message)
	}

	var all []func(*Exchange)
	for _, m := range p.batch {
		if report := c.events.Record(m); report != nil {
			all = append(all, report)
		}
	}
	if all == nil {
		return nil
	}
	return func(x *Exchange) {
		for _, report := range all {
			report(x)
		}
	}
}

// Probe returns nil if the app accepts connections. With TLS, it completes the handshake, because servers log
// incomplete ones.
func (c *Client) Probe(ctx context.Context) error {
	if err := c.transport.probe(ctx); err != nil {
		return &queue.Error{Message: connectReason(err, min(c.reasons.connectTimeout, probeWait)), Err: err}
	}
	return nil
}

// TLSConfig returns the current TLS configuration, which must not be modified, or nil.
func (c *Client) TLSConfig() *tls.Config { return c.transport.dialer.config() }

// Close closes unused connections immediately, and the others after their deliveries.
func (c *Client) Close() { c.transport.pool.Close() }
