package supervisor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tendril/internal/host/terminal"
)

const checkTimeout = 5 * time.Second

// Check is a readiness check. The zero value means no check.
type Check struct {
	// Host "" means this machine: 127.0.0.1, or ::1 if connecting to 127.0.0.1 fails.
	Host string
	// TLS selects HTTPS and requires a Path.
	TLS       bool
	TLSConfig *tls.Config
	Port      int
	// Path is requested with GET; the status must be 200 to 299, and redirects are not followed. If Path is "", the
	// check only opens a TCP connection.
	Path string
}

// ParseCheck parses "TCP:port", "HTTP:port" or "HTTP:port/path". The case of TCP and HTTP does not matter.
func ParseCheck(s string) (Check, error) {
	kind, rest, _ := strings.Cut(s, ":")
	portText, path, hasPath := strings.Cut(rest, "/")
	port, err := strconv.Atoi(portText)
	c := Check{Port: port}
	valid := err == nil && port != 0 // the zero Check would pass validate
	switch strings.ToLower(kind) {
	case "http":
		c.Path = "/" + path
	case "tcp":
		valid = valid && !hasPath
	default:
		valid = false
	}

	if !valid || c.validate() != nil {
		return Check{}, fmt.Errorf("invalid health check %q: use TCP:port or HTTP:port/path, for example "+
			"HTTP:5000/health", s)
	}
	return c, nil
}

// String returns the check in the format of [ParseCheck], or "" for the zero value.
func (c Check) String() string {
	switch {
	case c.IsZero():
		return ""
	case c.Path == "":
		return fmt.Sprintf("TCP:%d", c.Port)
	default:
		return fmt.Sprintf("HTTP:%d%s", c.Port, c.Path)
	}
}

// IsZero reports whether c means no check.
func (c Check) IsZero() bool { return c == Check{} }

func (c Check) validate() error {
	if c.IsZero() {
		return nil
	}
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("invalid port %d: use 1 to 65535", c.Port)
	}
	if c.Path == "" {
		return nil
	}
	if _, err := url.ParseRequestURI(c.Path); err != nil || c.Path[0] != '/' || strings.ContainsAny(c.Path, "# ") {
		return fmt.Errorf("invalid path %q: use a path that begins with a slash", c.Path)
	}
	return nil
}

// Probe checks once, with a timeout of 5 s. It returns nil if the check passes.
func (c Check) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if c.Path == "" {
		conn, err := c.dial(ctx)
		if err != nil {
			return fmt.Errorf("TCP connection to %s: %w", c.address(), plainReason(err))
		}
		return conn.Close()
	}
	return c.get(ctx)
}

func (c Check) get(ctx context.Context) error {
	transport := &http.Transport{
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        c.TLSConfig,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx)
		},
	}

	target := "http://" + c.address()
	if c.TLS {
		target = "https://" + c.address()
	}
	path, _, _ := strings.Cut(c.Path, "?") // the query may contain secrets
	asked := "GET " + target + path

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target+c.Path, nil)
	if err != nil {
		return fmt.Errorf("checking %s: %w", c, err)
	}

	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", asked, plainReason(err))
	}
	resp.Body.Close()

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%s: status %d%s; 200 to 299 is expected", asked, resp.StatusCode, redirectedTo(resp))
	}
	return nil
}

func redirectedTo(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || resp.StatusCode > 399 {
		return ""
	}
	to.User = nil
	to.RawQuery = ""
	to.Fragment = ""
	return " to " + terminal.Plain(to.String(), false)
}

func (c Check) address() string {
	return net.JoinHostPort(cmp.Or(c.Host, "localhost"), strconv.Itoa(c.Port))
}

func (c Check) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	if c.Host != "" {
		return d.DialContext(ctx, "tcp", c.address())
	}
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)))
	if err == nil {
		return conn, nil
	}
	if conn, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(c.Port))); err6 == nil {
		return conn, nil
	}
	return nil, err
}

var errNothingListens = errors.New("connection refused, nothing is listening")

func plainReason(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errNothingListens
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no response within %s", checkTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed without a response")
	default:
		return err
	}
}
