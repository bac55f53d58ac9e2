package deliver

import (
	"context"
	"crypto/tls"
	"strings"
	"time"

	"tendril/internal/delivery/webhook"
	"tendril/queue"
)

// Client delivers messages to one app by POST. It may be used by any number of
// goroutines.
type Client struct {
	head     *requestHead
	dialer   *dialer
	pool     pool
	slots    chan struct{}
	protocol protocol
	batches  protocol // of requests with several messages
	record   string   // the end of each of their records; "" where there are none
	fifo     bool
	deadline time.Duration
	trace    func(context.Context, *queue.Message) TraceContext // may be nil
	terminal StatusSet
	reasons  reasons
	events   Events
}

// NewClient returns a deliverer for the app that opts names. Nothing is dialled
// yet. The error says which option is wrong and what it may be.
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
	several := single
	several.keep = o.maxBody
	return &Client{
		head:     newHead(t, o, signer),
		dialer:   dialer,
		pool:     pool{keep: o.KeepAlive},
		slots:    make(chan struct{}, o.Connections),
		protocol: single,
		batches:  several,
		record:   record,
		fifo:     strings.HasSuffix(o.QueueARN, ".fifo"),
		deadline: o.Deadline,
		trace:    o.Trace,
		terminal: o.TerminalCodes,
		reasons:  newReasons(o),
		events:   o.Events,
	}, nil
}

// Deliver posts m to the app and says what became of it. There is at most one
// POST per call: a second connection is tried only if a kept one took no byte.
// It returns when the app has answered, when the connection is lost, when one of
// the timeouts has passed, or soon after ctx ended; in the last case the app may
// be at work all the same, and the outcome is Failed.
func (h *Client) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	run, err := runOf(m)
	if err != nil {
		return queue.Result{Reason: err.Error(), Err: err, Unsent: true}
	}
	r := content{message: m, run: run, body: m.Body}
	if run != nil {
		r.body = "" // a scheduled run is told by its headers alone
	}
	return h.deliver(ctx, &r)
}

// acquire waits for one of the slots for a POST.
func (h *Client) acquire(ctx context.Context, end time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := withEnd(ctx, end)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withEnd bounds a context by an end, which may be zero for none.
func withEnd(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if end.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end)
}

// attempt makes the one POST. It returns the time at which it was over.
func (h *Client) attempt(ctx context.Context, r *content, start, end time.Time) (queue.Result, time.Time) {
	c := h.pool.get(start)
	for {
		if c == nil {
			var err error
			dialing, cancel := withEnd(ctx, end)
			c, err = h.dialer.dial(dialing)
			cancel()
			if err != nil {
				reason := h.dialer.reason(err)
				if h.reasons.bound(ctx, end) != "" {
					reason = h.reasons.unsentReason(ctx, end)
				}
				return queue.Result{Outcome: queue.Unreached, Reason: reason, Err: err}, time.Now()
			}
		}
		a := h.post(ctx, c, r, end)
		if !a.sent && c.reused && !isLate(a.err) {
			c.close()
			c = nil
			if h.events.Reconnected != nil {
				h.events.Reconnected()
			}
			continue
		}
		result, now := h.judge(ctx, &a, r, end), time.Now()
		if a.problem != "" && h.events.OutcomeIgnored != nil {
			h.events.OutcomeIgnored(a.problem)
		}
		if a.keep {
			h.pool.put(c, now)
		} else {
			c.close()
		}
		return result, now
	}
}

// judge says what an exchange means for what it carried. One of the terminal statuses is an instruction where it is
// about one message: in a batch it may be about any of them.
func (h *Client) judge(ctx context.Context, a *answer, r *content, end time.Time) queue.Result {
	result := h.reasons.judge(ctx, a, r.run, end)
	switch {
	case a.wanted.wish != wishNothing || a.broken:
	case result.Outcome == queue.Failed && len(r.batch) <= 1 && h.terminal.Has(result.Status):
		result.Instruction = queue.TerminalStatus
	case result.Outcome == queue.Done && r.batch != nil:
		if problem := r.readFailures(a); problem != "" {
			return queue.Result{Status: result.Status, Reason: problem}
		}
	}
	return result
}

// recorder returns who gets the exchange; nil for nobody.
func (h *Client) recorder(r *content) func(*Exchange) {
	switch {
	case h.events.Record == nil:
		return nil
	case r.batch == nil:
		return h.events.Record(r.message)
	}
	var all []func(*Exchange)
	for _, m := range r.batch {
		if report := h.events.Record(m); report != nil {
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

// post renders a request and exchanges it for an answer over c.
func (h *Client) post(ctx context.Context, c *conn, r *content, end time.Time) answer {
	var trace TraceContext
	if h.trace != nil {
		trace = h.trace(ctx, r.message)
	}
	var dropped int
	protocol, report := &h.protocol, h.recorder(r)
	if r.batch == nil {
		c.out, dropped = h.head.append(c.out[:0], r.message, r.run, r.body, &trace)
	} else {
		c.out, protocol = h.head.appendBatch(c.out[:0], r, &trace), &h.batches
	}
	var head string
	if report != nil {
		recorded := *protocol
		recorded.keep, recorded.headers = max(recorded.keep, exchangeBody), true
		protocol, head = &recorded, string(c.out)
	}
	began := time.Now()
	a := c.exchange(ctx, r.body, protocol, end)
	if report != nil {
		report(newExchange(head, r.body, &a, began))
	}
	if dropped > 0 && a.sent && h.events.AttributesDropped != nil {
		h.events.AttributesDropped(AttributesDropped{MessageID: r.message.ID, Count: dropped})
	}
	return a
}

// probeWait bounds a probe: long enough for two repeats of a connection's first
// packet.
const probeWait = 4 * time.Second

// Probe returns nil when the app takes connections. It sends no request. With TLS
// it ends the handshake, since servers log a connection that breaks off before. The
// error says in a few words why not.
func (h *Client) Probe(ctx context.Context) error {
	d := *h.dialer
	d.timeout = min(d.timeout, probeWait)
	c, err := d.dial(ctx)
	if err != nil {
		return &queue.Error{Message: d.reason(err), Err: err}
	}
	defer c.close()
	if secure, ok := c.stream.(*tls.Conn); ok {
		if err := awaitRefusal(secure); err != nil {
			return &queue.Error{Message: refusedReason, Err: err}
		}
	}
	return c.stream.Close()
}

// TLSConfig is what the next connection would use, for other requests to the target; nil without TLS. It must not be
// changed.
func (h *Client) TLSConfig() *tls.Config { return h.dialer.config() }

// Close closes the unused connections, and those in use as soon as their
// deliveries end. It does not end deliveries: their contexts do.
func (h *Client) Close() { h.pool.close() }
