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
	// Target is the app: an http or https URL, or a unix socket as unix:///run/app.sock, http+unix:///run/app.sock or
	// http+unix://%2Frun%2Fapp.sock/path. No other address is dialled. Its path, if any, replaces Path.
	Target string
	// Path is where ordinary messages are posted, optionally with a query; default: the target's path, or "/". A
	// missing leading slash is added.
	Path string
	// MimeType is the Content-Type of every POST; default application/json.
	MimeType string
	// QueueName is sent in X-Aws-Sqsd-Queue; may be "".
	QueueName string
	// QueueARN enables batches in [Client.DeliverBatch], and is part of their records; may be "".
	QueueARN string
	// ConnectTimeout limits connecting, including name lookup and TLS handshake; default 5 s.
	ConnectTimeout time.Duration
	// InactivityTimeout is how long the app may be silent; default 180 s. It restarts with every byte from the app,
	// including informational (1xx) responses, and with every part of a long message that the app accepts.
	InactivityTimeout time.Duration
	// Deadline limits a whole delivery, including connecting; 0 means no limit.
	Deadline time.Duration
	// KeepAlive is how long an unused connection is kept; default 1 s, shorter than common servers do. If negative,
	// every POST uses a new connection.
	KeepAlive time.Duration
	// SuccessCodes are the statuses that mean done; default {200}.
	SuccessCodes StatusSet
	// TerminalCodes are statuses that are not retried, see [queue.TerminalStatus]. SuccessCodes take precedence.
	TerminalCodes StatusSet
	// HeaderBudget is the maximum total size of attribute and trace headers in bytes; default 8 KiB. Common servers
	// refuse larger requests.
	HeaderBudget int
	// TLS are the certificate files for a TLS target.
	TLS TLSFiles
	// SigningKeys sign every POST, see package webhook; without keys POSTs are not signed.
	SigningKeys []string
	// Trace returns the trace context of each POST; may be nil.
	Trace func(ctx context.Context, m *queue.Message) TraceContext
	// Version is tendril's version in the User-Agent "aws-sqsd/3.0 tendril/VERSION"; receivers check its beginning.
	// May be "".
	Version string
	// Events are listeners; may be the zero value.
	Events Events

	// Tests replace the network, the certificates and the limit of a response body.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	maxBody int
}

// TraceContext contains the trace headers of a request. Empty values and those invalid in a header are omitted.
type TraceContext struct {
	// Traceparent, Tracestate and Baggage are W3C headers, XRay is X-Amzn-Trace-Id.
	Traceparent, Tracestate, Baggage, XRay string
}

// Events report occurrences during a delivery that are not part of its result. Each may be nil; each is called by the
// delivering goroutine and should return soon.
type Events struct {
	// Connected is called after each attempt to connect.
	Connected func(Connected)
	// AttributesDropped is called if a message was posted without some of its attributes.
	AttributesDropped func(AttributesDropped)
	// CertificateRead is called if the files of [Options].TLS changed, or a certificate expires soon.
	CertificateRead func(CertificateRead)
	// Record returns, before each POST, the function to call with its exchange; nil if it is not recorded.
	Record func(m *queue.Message) func(*Exchange)
	// OutcomeIgnored is called for an ignored Tendril-Outcome header. The problem is a fixed text without the
	// header's content.
	OutcomeIgnored func(problem string)
	// Reconnected is called if a kept connection accepted no byte of a message, which was then sent on a new one.
	Reconnected func()
}

// Connected is one attempt to connect.
type Connected struct {
	// Address is the host and port dialled, or a socket's path.
	Address  string
	Duration time.Duration
	// Err is nil if the connection succeeded.
	Err error
}

// CertificateRead is news about the certificates in [TLSFiles].
type CertificateRead struct {
	// Changed is true if changed files are now in use. Err is why changed files are not used.
	Changed bool
	Err     error
	// Expires is the earliest expiry of the certificates; Soon is true if that is near or past, reported once a day
	// when connections are opened.
	Expires time.Time
	Soon    bool
}

// AttributesDropped is the number of a message's attributes that did not fit in headers.
type AttributesDropped struct {
	MessageID string
	Count     int
}

// withDefaults returns a checked copy of o with defaults filled in, and its target.
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

// setPath sets the request target for ordinary messages.
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
		return fmt.Errorf("HTTP path %q cannot be used: %w; give a path such as /worker", path, err)
	}
	o.Path = parsed
	return nil
}

// checkHeaders rejects settings that are invalid in a header.
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
