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
	// Target is an http or https URL, or a Unix socket: unix:///run/app.sock, http+unix:///run/app.sock or
	// http+unix://%2Frun%2Fapp.sock/path.
	Target string
	// Path is the path of ordinary messages, optionally with a query; "" means Target's path or "/". It must be "" if
	// Target has a path other than "/".
	Path string
	// MimeType is the Content-Type of single messages; "" means application/json.
	MimeType string
	// QueueName is sent in X-Aws-Sqsd-Queue.
	QueueName string
	// QueueARN is part of each batch record; "" disables batches.
	QueueARN string
	// ConnectTimeout includes name resolution and the TLS handshake; 0 means 5 s.
	ConnectTimeout time.Duration
	// InactivityTimeout is the longest time without activity; 0 means 180 s. Activity is any byte from the app and any
	// chunk of a long message that it accepts.
	InactivityTimeout time.Duration
	// Deadline limits an entire delivery, including connecting; 0 means no limit.
	Deadline time.Duration
	// KeepAlive is how long an unused connection is kept; 0 means 1 s, less than the default of common servers. A
	// negative value disables reuse.
	KeepAlive time.Duration
	// SuccessCodes are the status codes of success; the zero value means 200.
	SuccessCodes StatusSet
	// TerminalCodes are status codes after which a message is dead-lettered at once. SuccessCodes take precedence.
	TerminalCodes StatusSet
	// HeaderBudget limits attribute and trace headers in bytes; 0 means 8 KiB, the limit of common servers.
	HeaderBudget int
	TLS          TLSFiles
	// SigningKeys all sign every request; see package webhook.
	SigningKeys []string
	// Paused reports whether deliveries are paused; may be nil. It is called just before sending.
	Paused func() bool
	// Trace returns the trace context of a request; may be nil.
	Trace func(ctx context.Context, m *queue.Message) TraceContext
	// Version is the last part of the User-Agent "aws-sqsd/3.0 tendril/VERSION".
	Version string
	Events  Events

	// For tests.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	maxBody int
}

// TraceContext has trace headers. Empty and invalid values are omitted.
type TraceContext struct {
	// XRay is X-Amzn-Trace-Id; the others are W3C headers.
	Traceparent, Tracestate, Baggage, XRay string
}

// Events are the listeners of a [Client]; each may be nil. They delay the delivery, so they should return quickly.
type Events struct {
	Connected         func(Connected)
	AttributesDropped func(AttributesDropped)
	CertificateRead   func(CertificateRead)
	// Record returns a function that receives m's exchange, or nil.
	Record func(m *queue.Message) func(*Exchange)
	// OutcomeIgnored is called for an invalid Tendril-Outcome header or trailer. problem does not quote it.
	OutcomeIgnored func(problem string)
	// Reconnected is called when a kept connection accepted no bytes and is replaced.
	Reconnected func()
}

// Connected is an attempt to connect.
type Connected struct {
	// Address is host and port, or a socket's path.
	Address string
	Err     error
}

// CertificateRead reports changed certificate files or a certificate that expires soon.
type CertificateRead struct {
	// Changed means that changed files are in use. Err is the reason why they are not.
	Changed bool
	Err     error
	// Expires is the earliest expiry. Soon is set at most once a day if that is less than 14 days away or past.
	Expires time.Time
	Soon    bool
}

// AttributesDropped counts a message's dropped or trimmed attributes.
type AttributesDropped struct {
	MessageID string
	Count     int
}

func (o Options) withDefaults() (*Options, *target, error) {
	t, err := parseTarget(o.Target)
	if err != nil {
		return nil, nil, err
	}

	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.InactivityTimeout = cmp.Or(o.InactivityTimeout, 180*time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, time.Second)
	o.HeaderBudget = cmp.Or(o.HeaderBudget, 8<<10)
	o.maxBody = cmp.Or(o.maxBody, maxResponseBody)
	o.Paused = orNever(o.Paused)
	o.MimeType = cmp.Or(o.MimeType, "application/json")
	if o.SuccessCodes == (StatusSet{}) {
		o.SuccessCodes[200] = true
	}

	if err := o.setPath(t.path); err != nil {
		return nil, nil, err
	}
	return &o, t, o.checkHeaders()
}

func (o *Options) setPath(fromTarget string) error {
	if o.Path != "" && fromTarget != "" && fromTarget != "/" {
		return fmt.Errorf("the target %q has a path and the HTTP path is %q: set only one of them", o.Target, o.Path)
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
