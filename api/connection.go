package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tendril/internal/host/proof"
)

const (
	maxAnswer     = 256 << 20 // far more than a page of messages needs
	maxPeerAnswer = 8 << 20
)

type connection struct {
	instance       Instance
	dataDir, token string       // "" for a [Peer]
	quick, slow    *http.Client // slow is for routes with their own time limit
	maxAnswer      int64        // bytes
}

// Peer is a read-only connection to another instance's console.
type Peer struct{ *connection }

// PeerPatience is how long a [Peer] waits for a response to start. Handlers that wait must respond well within it.
const PeerPatience = 2 * time.Second

// NewPeer returns a connection to an instance. It trusts only the instance's ConsoleCertificate, or uses plain HTTP
// if that is "". Either way, the instance must prove that it knows the secret.
func NewPeer(instance Instance, secret string) *Peer {
	c := &connection{instance: instance, maxAnswer: maxPeerAnswer}
	c.quick = c.client(PeerPatience, secret)
	c.slow = c.quick
	return &Peer{c}
}

// Unproved reports whether the server failed to prove its identity. It has then received only a challenge, not the
// request.
func Unproved(err error) bool {
	var unproved *proof.Error
	return errors.Is(err, errCertificate) || errors.As(err, &unproved)
}

var errCertificate = errors.New("unexpected certificate")

// Servers prove their identity by the certificate or, over plain HTTP, by the token.
func newConnection(instance Instance, dataDir, token string) *connection {
	c := &connection{instance: instance, dataDir: dataDir, token: token, maxAnswer: maxAnswer}
	secret := ""
	if instance.ConsoleCertificate == "" {
		secret = token
	}
	c.quick = c.client(2*MaxWait, secret)
	c.slow = c.client(MaxDeploy+MaxWait, secret)
	return c
}

// client follows no redirects. Unless secret is "", servers must prove that they know it.
func (c *connection) client(patience time.Duration, secret string) *http.Client {
	transport := &http.Transport{
		// VerifyConnection compares the whole certificate, so name and issuer do not matter.
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true, VerifyConnection: c.checkCertificate},
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		ResponseHeaderTimeout: patience,
		IdleConnTimeout:       10 * time.Second,
	}
	if secret != "" {
		transport = proof.Require(transport, secret)
	}
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// The certificate may have changed since Dial, so checkCertificate also accepts the one in the current instance file.
func (c *connection) checkCertificate(s tls.ConnectionState) error {
	shown := CertificateFingerprint(s.PeerCertificates[0].Raw)
	if shown == c.instance.ConsoleCertificate {
		return nil
	}
	if c.dataDir == "" {
		return fmt.Errorf("%w: it has the fingerprint %s", errCertificate, shown)
	}
	if i, err := ReadInstance(c.dataDir); err == nil && shown == i.ConsoleCertificate {
		return nil
	}
	return &Error{
		Message: "its certificate is not the one in " + filepath.Join(c.dataDir, InstanceFile),
		Hint:    "another program may be listening there; use the environment's own --data-dir, or restart it",
	}
}

func (c *connection) Answer(ctx context.Context, r *Request, into any) error {
	resp, err := c.send(ctx, r, "application/json")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer))
	if err != nil {
		return c.unanswered(err)
	}
	return c.decode(resp.StatusCode, data, into)
}

func (c *connection) send(ctx context.Context, r *Request, accept string) (*http.Response, error) {
	if r.Body != nil && c.token == "" { // without a token, the server is not authenticated
		return nil, c.unauthorized(Unauthorized("this needs the console's token", ""))
	}
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("calling the console at %s: %w", c.instance.Console, err)
	}
	req.Header.Set("Accept", accept)

	client := c.quick
	if r.Limit > 0 {
		client = c.slow
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, c.unanswered(err)
	}
	return resp, nil
}

func (c *connection) newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	var payload io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}

	method, _, _ := strings.Cut(r.Pattern, " ")
	// Dots are escaped so that no server resolves "." and ".." in names.
	path := r.Path(func(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") })
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, c.instance.ConsoleURL()+path, payload)
	if err != nil {
		return nil, err
	}

	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

func follow[T any](ctx context.Context, c *Client, r *Request, each func(T) error) error {
	conn, ok := c.transport.(*connection)
	if !ok {
		return errors.ErrUnsupported
	}
	return conn.Follow(ctx, c.withInstance(r), func(line []byte) error {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			return nil
		}
		var event T
		if err := json.Unmarshal(data, &event); err != nil {
			return fmt.Errorf("decoding the stream of the console at %s: %w", conn.instance.Console, err)
		}
		return each(event)
	})
}

// Follow calls each for every line of a stream.
func (c *connection) Follow(ctx context.Context, r *Request, each func(line []byte) error) error {
	resp, err := c.send(ctx, r, "text/event-stream")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
		return c.decode(resp.StatusCode, data, nil)
	}

	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, MaxBody)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return c.unanswered(err)
	}
	return ctx.Err()
}

func (c *connection) Close() {
	c.quick.CloseIdleConnections()
	c.slow.CloseIdleConnections()
}

func (c *connection) unanswered(err error) error {
	if c.dataDir == "" {
		return fmt.Errorf("reading from the console at %s: %w", c.instance.Console, err)
	}
	if _, gone := ReadInstance(c.dataDir); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(gone, ErrNotRunning) {
		return notRunning(c.dataDir)
	}

	var unproved *proof.Error
	switch {
	case errors.As(err, &unproved) && unproved.Other:
		return c.unauthorized(&Error{Status: http.StatusUnauthorized})
	case errors.As(err, &unproved):
		return &Error{Status: http.StatusUnauthorized, cause: unproved, Message: fmt.Sprintf(
			"the server at %s does not prove that it is environment %q, so nothing was sent to it", c.instance.Console,
			c.instance.Environment),
			Hint: fmt.Sprintf("restart the environment (process %d), which may run an older version (%s), with this "+
				"version of tendril; another program may also be listening there", c.instance.PID, c.instance.Version)}
	}

	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}

	return fmt.Errorf("calling the console at %s: %w", c.instance.Console, err)
}

func (c *connection) decode(status int, data []byte, into any) error {
	if status >= 200 && status <= 299 {
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("decoding the response of the console at %s: %w", c.instance.Console, err)
		}
		return nil
	}
	refusal := &Error{Status: status}
	if json.Unmarshal(data, refusal) != nil || refusal.Message == "" {
		refusal.Message = fmt.Sprintf("the console at %s responded with %d %s", c.instance.Console, status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized && c.dataDir != "" {
		return c.unauthorized(refusal)
	}
	return refusal
}

func (c *connection) unauthorized(refusal *Error) error {
	if c.token != "" {
		refusal.Message = "the console at " + c.instance.Console + " rejects the token of " + c.dataDir
		refusal.Hint = "another environment may be listening there; use its --data-dir"
		return refusal
	}
	if _, err := ReadToken(c.dataDir); errors.Is(err, fs.ErrPermission) {
		return foreign(filepath.Join(c.dataDir, TokenFile))
	}
	refusal.Hint = "file " + TokenFile + " not found in " + c.dataDir + "; restart the environment to write it"
	return refusal
}
