package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tendril/deliver"
	"tendril/logging"
	"tendril/queue"
	"tendril/supervisor"
	"tendril/telemetry"
)

// openTarget opens what a queue's messages are handed to.
func (e *Environment) openTarget(ctx context.Context, l *line, c *courier) error {
	c.fifo = l.queue.fifo
	switch {
	case l.settings().Function != "":
		return e.openFunction(ctx, l, c)
	case l.settings().Lambda != "":
		return e.openLocalFunction(l, c)
	}
	return e.openApp(l, c)
}

// openApp opens the way to an app over HTTP.
func (e *Environment) openApp(l *line, c *courier) error {
	target := l.settings().Target
	if target == "" {
		target = fmt.Sprintf("http://localhost:%d", e.s.Port)
	}
	l.base = strings.TrimSuffix(target, "/")
	l.target = l.goesTo()
	c.deadline = func() time.Duration { return l.settings().Deadline }
	// The app's part of a trace belongs below the delivery's span.
	c.tracer = e.otlp.Tracer(telemetry.TracerOptions{Queue: l.queue.name, QueueURL: l.queue.url,
		Target: logging.TargetAddress(target)})
	c.goesTo = func(path string) string {
		path, _, _ = strings.Cut(cmp.Or(path, l.settings().HTTPPath), "?")
		return strings.TrimSuffix(logging.TargetAddress(target), "/") + path
	}
	open := func(address string) (*deliver.HTTP, error) { return e.openHTTP(l, address, c.tracer != nil) }
	if l.settings().ToOwnApp() && e.app != nil {
		l.route = e.app.Route(open)
		c.to, l.close, l.renew = l.route, l.route.Close, l.route.Close
		return nil
	}
	d := &door{open: func() (*deliver.HTTP, error) { return open(target) }}
	if e.s.Healthcheck != "" && l.base == strings.TrimSuffix(e.s.Target, "/") {
		check, err := supervisor.ParseCheck(e.s.Healthcheck)
		if err != nil {
			return err
		}
		d.check, l.checked = atTarget(check, target), true
	}
	if err := d.renew(); err != nil {
		return fmt.Errorf("the app's address: %w", err)
	}
	c.to, l.close = d, d.close
	l.renew = func() {
		if err := d.renew(); err != nil {
			e.report.note(slog.LevelError, "worker", "the old way to "+l.goesTo()+" is kept: "+err.Error())
		}
	}
	return nil
}

// atTarget is a health check for the host of a target. At the target's own port it
// speaks TLS where the target does.
func atTarget(check supervisor.Check, target string) supervisor.Check {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" { // a socket has no host
		return check
	}
	if host := u.Hostname(); !strings.EqualFold(host, "localhost") {
		check.Host = host
	}
	check.TLS = u.Scheme == "https" && check.Path != "" && strconv.Itoa(check.Port) == cmp.Or(u.Port(), "443")
	return check
}

// openHTTP opens connections to an address by the settings in force.
func (e *Environment) openHTTP(l *line, address string, traced bool) (*deliver.HTTP, error) {
	s, set := e.inForce(), l.settings()
	codes, err := deliver.ParseStatusSet(s.SuccessCodes)
	if err != nil {
		return nil, fmt.Errorf("success codes: %w", err)
	}
	opts := deliver.HTTPOptions{
		Target: address, Path: set.HTTPPath, MimeType: set.MimeType, QueueName: l.queue.name,
		Connections: set.Concurrency, ConnectTimeout: s.ConnectTimeout, InactivityTimeout: set.InactivityTimeout,
		Deadline: set.Deadline, SuccessCodes: codes, HeaderBudget: int(s.HeaderBudget), Version: e.Version,
		Events: e.telemetry.Deliver(l.queue.name, l.target),
	}
	if !s.Keepalive {
		opts.KeepAlive = -1
	}
	if traced {
		opts.Traceparent = func(ctx context.Context, _ *queue.Message) string { return telemetry.Traceparent(ctx) }
	}
	return deliver.NewHTTP(&opts)
}

// door is the way to an app that runs elsewhere.
type door struct {
	open func() (*deliver.HTTP, error)
	way  atomic.Pointer[deliver.HTTP]
	// check is the health check of the settings, which is about the target of all
	// queues; the zero value for a target that a queue has for itself.
	check supervisor.Check
}

// Deliver hands over one message.
func (d *door) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return d.way.Load().Deliver(ctx, m)
}

// Probe asks whether the app passes its health check, or takes connections where
// it has none.
func (d *door) Probe(ctx context.Context) error {
	if !d.check.IsZero() {
		return d.check.Probe(ctx)
	}
	return d.way.Load().Probe(ctx)
}

// renew opens the way anew. Deliveries under way end on the old one.
func (d *door) renew() error {
	way, err := d.open()
	if err != nil {
		return err
	}
	if old := d.way.Swap(way); old != nil {
		old.Close()
	}
	return nil
}

func (d *door) close() { d.way.Load().Close() }
