package deliver

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"tendril/queue"
)

// Options configure a [Client]. Only Target is required.
type Options struct {
	// Target is an http or https URL, or a unix socket as unix:///run/app.sock, http+unix:///run/app.sock or
	// http+unix://%2Frun%2Fapp.sock/path. Its path, if any, replaces Path.
	Target string
	// Path is where ordinary messages are posted, optionally with a query; default "/".
	Path string
	// MimeType is the Content-Type of every POST; default application/json.
	MimeType string
	// QueueName is sent in X-Aws-Sqsd-Queue.
	QueueName string
	// QueueARN enables batches, and is part of their records.
	QueueARN string
	// ConnectTimeout limits connecting, including name lookup and TLS handshake; default 5 s.
	ConnectTimeout time.Duration
	// InactivityTimeout is how long the app may be silent; default 180 s. Every byte from the app restarts it, and
	// every part of a long message that the app accepts.
	InactivityTimeout time.Duration
	// Deadline limits a whole delivery, including connecting; 0 means no limit.
	Deadline time.Duration
	// KeepAlive is how long to keep an unused connection; default 1 s, which is less than common servers do. A
	// negative value disables reuse.
	KeepAlive time.Duration
	// SuccessCodes are the statuses that mean done; default {200}.
	SuccessCodes StatusSet
	// TerminalCodes are statuses that are not retried. SuccessCodes take precedence.
	TerminalCodes StatusSet
	// HeaderBudget limits attribute and trace headers in bytes; default 8 KiB, the limit of common servers.
	HeaderBudget int
	TLS          TLSFiles
	// SigningKeys sign every POST, see package webhook.
	SigningKeys []string
	// Trace returns the trace context of each POST; may be nil.
	Trace func(ctx context.Context, m *queue.Message) TraceContext
	// Version is part of the User-Agent "aws-sqsd/3.0 tendril/VERSION". Receivers check its beginning.
	Version string
	// Events are listeners; may be the zero value.
	Events Events

	// for tests
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	maxBody int
}

// TraceContext contains trace headers. Empty and invalid values are omitted.
type TraceContext struct {
	// Traceparent, Tracestate and Baggage are W3C headers, XRay is X-Amzn-Trace-Id.
	Traceparent, Tracestate, Baggage, XRay string
}

// Events are listeners. Each may be nil; each is called by the delivering goroutine and should return soon.
type Events struct {
	// Connected is called after each attempt to connect.
	Connected func(Connected)
	// AttributesDropped is called if attributes were dropped.
	AttributesDropped func(AttributesDropped)
	// CertificateRead is called if certificate files changed or expire soon.
	CertificateRead func(CertificateRead)
	// Record returns the function to call with the exchange of m; nil if it is not recorded.
	Record func(m *queue.Message) func(*Exchange)
	// OutcomeIgnored is called for an invalid Tendril-Outcome header. The problem does not quote it.
	OutcomeIgnored func(problem string)
	// Reconnected is called if a kept connection accepted no byte and was replaced.
	Reconnected func()
}

// Connected is one attempt to connect.
type Connected struct {
	// Address is host and port, or a socket's path.
	Address  string
	Duration time.Duration
	Err      error
}

// CertificateRead reports news about the files in [TLSFiles].
type CertificateRead struct {
	// Changed is true if changed files are now in use. Err is why they are not.
	Changed bool
	Err     error
	// Expires is the earliest expiry. Soon is true once a day if that is near or past.
	Expires time.Time
	Soon    bool
}

// AttributesDropped is the number of a message's attributes that did not fit in headers.
type AttributesDropped struct {
	MessageID string
	Count     int
}

func (o Options) withDefaults() (*Options, *target, error) {
	t, err := parseTarget(o.Target)
	if err != nil {
		return nil, nil, err
	}
	if err := o.checkRanges(); err != nil {
		return nil, nil, err
	}

	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.InactivityTimeout = cmp.Or(o.InactivityTimeout, 180*time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, time.Second)
	o.HeaderBudget = cmp.Or(o.HeaderBudget, 8<<10)
	o.maxBody = cmp.Or(o.maxBody, maxAnswerBody)
	o.MimeType = cmp.Or(o.MimeType, "application/json")
	if o.SuccessCodes == (StatusSet{}) {
		o.SuccessCodes[200] = true
	}

	if err := o.setPath(t.path); err != nil {
		return nil, nil, err
	}
	return &o, t, o.checkHeaders()
}

func (o *Options) checkRanges() error {
	const number, duration = "1 or more", "a duration such as 30s"
	for _, v := range []struct {
		name       string
		isNegative bool
		value      any
		allowed    string
	}{
		{"header budget", o.HeaderBudget < 0, o.HeaderBudget, number},
		{"connect timeout", o.ConnectTimeout < 0, o.ConnectTimeout, duration},
		{"inactivity timeout", o.InactivityTimeout < 0, o.InactivityTimeout, duration},
		{"deadline", o.Deadline < 0, o.Deadline, duration},
	} {
		if v.isNegative {
			return fmt.Errorf("%s %v is negative: give %s, or 0 for the default", v.name, v.value, v.allowed)
		}
	}
	return nil
}

func (o *Options) setPath(fromTarget string) error {
	if o.Path != "" && fromTarget != "" && fromTarget != "/" {
		return fmt.Errorf("the target %q has a path and the HTTP path is %q: give only one of them only", o.Target, o.Path)
	}
	path := cmp.Or(o.Path, fromTarget, "/")
	if path[0] != '/' {
		path = "/" + path
	}
	parsed, err := queue.ParsePath(path)
	if err != nil {
		return fmt.Errorf("invalid HTTP path %q: %w; use a path such as /worker", path, err)
	}
	o.Path = parsed
	return nil
}

func (o *Options) checkHeaders() error {
	for _, v := range []struct{ name, value string }{
		{"MIME type", o.MimeType}, {"queue name", o.QueueName}, {"version", o.Version},
	} {
		if !isFieldValue(v.value) {
			return fmt.Errorf("%s %q cannot be sent in a header: remove line breaks and other control characters", v.name,
				v.value)
		}
	}
	return nil
}
