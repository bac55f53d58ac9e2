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

// Options says where and how [Client] delivers. Only Target must be set.
type Options struct {
	// Target is the app: an http or https URL, or a unix socket as
	// unix:///run/app.sock, http+unix:///run/app.sock or
	// http+unix://%2Frun%2Fapp.sock/path. Nothing else is ever dialled. A path
	// in it stands for Path.
	Target string
	// Path is where ordinary messages are posted; it may carry a query. Default:
	// the target's path, else "/". A missing first slash is added.
	Path string
	// MimeType is the Content-Type of every POST; default application/json.
	MimeType string
	// QueueName is sent to the app in X-Aws-Sqsd-Queue; may be "".
	QueueName string
	// QueueARN lets [Client.DeliverBatch] post several messages at once, whose records have it; may be "".
	QueueARN string
	// ConnectTimeout bounds one connect, the name look-up and the TLS handshake
	// included; default 5 s.
	ConnectTimeout time.Duration
	// InactivityTimeout is how long the app may stay silent; default 180 s. Every
	// byte from the app starts it anew, those of an informational answer (1xx) and
	// of the body too, and so does every part of a long message it takes.
	InactivityTimeout time.Duration
	// Deadline bounds a whole delivery, the wait for a connection included. 0
	// means no bound.
	Deadline time.Duration
	// KeepAlive is how long an unused connection is kept; default 1 s, shorter
	// than common servers keep theirs. Negative: every POST has its own connection.
	KeepAlive time.Duration
	// SuccessCodes are the statuses that mean done; the empty set means {200}.
	SuccessCodes StatusSet
	// TerminalCodes are the statuses that are not tried again: [queue.TerminalStatus]. A status that means done stays so.
	TerminalCodes StatusSet
	// HeaderBudget is the room for all attribute and trace headers together in
	// bytes; default 8 KiB. Common servers refuse a request with more than that.
	HeaderBudget int
	// TLS are the files for a target that speaks TLS; the zero value means the system's.
	TLS TLSFiles
	// SigningKeys sign every POST, each for itself, as package webhook has it; without them POSTs are not signed.
	SigningKeys []string
	// Trace returns the trace context of each POST; may be nil.
	Trace func(ctx context.Context, m *queue.Message) TraceContext
	// Version is tendril's own version for the User-Agent "aws-sqsd/3.0 tendril/VERSION",
	// whose beginning receivers test for; may be "".
	Version string
	// Events observes; may be the zero value.
	Events Events

	// dial and tls stand in for the network and the certificates in tests, maxBody for
	// how many bytes of an answer's body are read.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	maxBody int
}

// TraceContext is what a request says about the trace that it belongs to: the values of
// headers, "" for those that it does not have. One that no header can carry is left out.
type TraceContext struct {
	// Traceparent, Tracestate and Baggage are those of W3C, XRay is X-Amzn-Trace-Id.
	Traceparent, Tracestate, Baggage, XRay string
}

// Events are the occurrences inside a delivery that its result does not tell.
// Each func may be nil; each is called from the delivering goroutine and should
// return soon.
type Events struct {
	// Connected: a new connection was opened, or could not be.
	Connected func(Connected)
	// AttributesDropped: a message was posted without some of its attributes.
	AttributesDropped func(AttributesDropped)
	// CertificateRead: the files of [Options].TLS changed, or a certificate in them ends soon.
	CertificateRead func(CertificateRead)
	// Record returns, before each POST, the function that gets its exchange; nil if the exchange is not recorded.
	Record func(m *queue.Message) func(*Exchange)
	// OutcomeIgnored: an answer has a Tendril-Outcome header that is ignored. The problem is one of a few texts, without
	// anything of the header.
	OutcomeIgnored func(problem string)
	// Reconnected: a kept connection took no byte of a message, so the message
	// went out on a new one.
	Reconnected func()
}

// Connected tells of one connect.
type Connected struct {
	// Address is what was dialled: host and port, or a socket's path.
	Address string
	// Duration is how long the connect took.
	Duration time.Duration
	// Err is why it failed; nil when it did not.
	Err error
}

// CertificateRead tells of the certificates in [TLSFiles].
type CertificateRead struct {
	// Changed: the files changed, and are used from now on. Err is why files that changed are not used.
	Changed bool
	Err     error
	// Expires is when the first of the certificates ends; Soon says that this is near, or past. It is reported once
	// a day while connections are opened.
	Expires time.Time
	Soon    bool
}

// AttributesDropped tells how many of a message's attributes no header could
// carry.
type AttributesDropped struct {
	MessageID string
	Count     int
}

// withDefaults returns a checked copy of o with every zero value replaced, and
// its target.
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

// setPath settles on the request target for ordinary messages.
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

// checkHeaders refuses settings that would break the request apart.
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
