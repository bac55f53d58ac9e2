package api

import (
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

// maxAnswer bounds what a client reads of one answer; a page of messages ends
// well below it.
const maxAnswer = 256 << 20

// connection sends the requests of a [Client].
type connection struct {
	instance       Instance
	dataDir, token string
	onlyReads      bool // see [Client.OnlyRead]
	http           *http.Client
}

// previewPattern is the one route that has a body and changes nothing.
const previewPattern = "POST /api/v1/config/preview"

// ErrOnlyReads is the error of a call that would change something.
var ErrOnlyReads = errors.New("this client only reads")

// newConnection returns one that waits for the beginning of an answer for up to
// patience, and follows no redirect.
func newConnection(instance Instance, dataDir, token string, patience time.Duration) *connection {
	c := &connection{instance: instance, dataDir: dataDir, token: token}
	transport := &http.Transport{
		// Whatever name it bears and whoever signed it: there is one certificate
		// that is trusted.
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true, VerifyConnection: c.checkCertificate},
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		ResponseHeaderTimeout: patience,
		IdleConnTimeout:       10 * time.Second,
	}
	if token != "" && instance.ConsoleCertificate == "" {
		transport = proof.Require(transport, token)
	}
	c.http = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// checkCertificate accepts the certificate that the instance file names, and no
// other. The file is read again for one that is new since Dial.
func (c *connection) checkCertificate(s tls.ConnectionState) error {
	shown := CertificateFingerprint(s.PeerCertificates[0].Raw)
	if shown == c.instance.ConsoleCertificate {
		return nil
	}
	if i, err := ReadInstance(c.dataDir); err == nil && shown == i.ConsoleCertificate {
		return nil
	}
	return &Error{
		Message: "its certificate is not the one in " + filepath.Join(c.dataDir, InstanceFile),
		Hint:    "another program may listen there; name the environment's own --data-dir, or restart it",
	}
}

// ask sends a request to a route, whose pattern may be followed by a query and whose
// wildcards stand for names in order, and returns the answer. A nil body sends no body.
func ask[T any](ctx context.Context, c *connection, pattern string, body any, names ...string) (answer T, err error) {
	err = c.call(ctx, pattern, body, &answer, names)
	return answer, err
}

// command is ask for a route whose answer says nothing more than that it is done.
func command(ctx context.Context, c *connection, pattern string, body any, names ...string) error {
	return c.call(ctx, pattern, body, &json.RawMessage{}, names)
}

func (c *connection) call(ctx context.Context, pattern string, body, into any, names []string) error {
	if body != nil && c.token == "" && c.dataDir != "" { // nothing can tell whether the environment gets it
		return c.unauthorized(NewError(http.StatusUnauthorized, "this needs the console's token", ""))
	}
	req, err := c.request(ctx, pattern, body, names)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return c.unanswered(err)
	}
	return c.decode(resp.StatusCode, data, into)
}

// request makes the request of a call.
func (c *connection) request(ctx context.Context, pattern string, body any, names []string) (*http.Request, error) {
	method, path, _ := strings.Cut(pattern, " ")
	if c.onlyReads && method != http.MethodGet && pattern != previewPattern {
		return nil, fmt.Errorf("%s: %w", pattern, ErrOnlyReads)
	}
	for _, name := range names {
		start, end := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		// A name may be any text, "/" and ".." included: dots are escaped so that
		// nobody takes them for steps.
		path = path[:start] + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + path[end+1:]
	}
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.instance.ConsoleURL()+path, payload)
	if err != nil {
		return nil, fmt.Errorf("asking the console at %s: %w", c.instance.Console, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// unanswered explains why there is no answer.
func (c *connection) unanswered(err error) error {
	if c.dataDir != "" {
		if _, gone := ReadInstance(c.dataDir); errors.Is(err, syscall.ECONNREFUSED) || errors.Is(gone, ErrNotRunning) {
			return notRunning(c.dataDir)
		}
	}
	var unproved *proof.Error
	switch {
	case errors.As(err, &unproved) && unproved.Other:
		return c.unauthorized(&Error{Status: http.StatusUnauthorized})
	case errors.As(err, &unproved):
		return &Error{Status: http.StatusUnauthorized, cause: unproved, Message: fmt.Sprintf(
			"the server at %s does not prove that it is environment %q, so nothing was sent to it", c.instance.Console,
			c.instance.Environment),
			Hint: fmt.Sprintf("restart the environment (process %d), which may be of an older version (%s), with this version "+
				"of tendril; another program may also listen there", c.instance.PID, c.instance.Version)}
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("asking the console at %s: %w", c.instance.Console, err)
}

func (c *connection) decode(status int, data []byte, into any) error {
	if status >= 200 && status <= 299 {
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("decoding the answer of the console at %s: %w", c.instance.Console, err)
		}
		return nil
	}
	refusal := &Error{Status: status}
	if json.Unmarshal(data, refusal) != nil || refusal.Message == "" {
		refusal.Message = fmt.Sprintf("the console at %s answered %d %s", c.instance.Console, status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		return c.unauthorized(refusal)
	}
	return refusal
}

// unauthorized says where the token would have come from.
func (c *connection) unauthorized(refusal *Error) error {
	if c.dataDir == "" { // in process: what the sender has is not from a file
		return refusal
	}
	if c.token != "" {
		refusal.Message = "the console at " + c.instance.Console + " rejects the token of " + c.dataDir
		refusal.Hint = "another environment may listen there; name its --data-dir"
		return refusal
	}
	if _, err := ReadToken(c.dataDir); errors.Is(err, fs.ErrPermission) {
		return foreign(filepath.Join(c.dataDir, TokenFile))
	}
	refusal.Hint = "there is no " + TokenFile + " in " + c.dataDir + "; restart the environment to have one written"
	return refusal
}
