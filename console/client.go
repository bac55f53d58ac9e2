package console

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
	"syscall"
	"time"
)

// ErrOff means that an environment runs but has no console to ask.
var ErrOff = errors.New("the console is off")

// maxAnswer bounds what a client reads of one answer; a page of messages ends
// well below it.
const maxAnswer = 256 << 20

// Client asks the console of one running environment. All methods are safe for
// concurrent use. Their errors are [*Error] for what the console refused, and
// wrap [ErrNotRunning] when the environment is gone.
type Client struct {
	// Instance is the environment that answers.
	Instance Instance

	dataDir string
	token   string
	http    *http.Client
	// slow is http for answers that may come late.
	slow *http.Client
}

// Dial returns a client for the environment that runs on dataDir. It reads
// files only; the first request finds out whether the console answers. The
// error wraps [ErrNotRunning] when no environment runs there, [ErrOff] when it
// runs without a console. A token that this user may not read is no error yet:
// health and counts need none.
func Dial(dataDir string) (*Client, error) {
	instance, err := ReadInstance(dataDir)
	if err != nil {
		return nil, err
	}
	if instance.Console == "" {
		return nil, &Error{
			Message: fmt.Sprintf("environment %q on %s runs with its console off", instance.Environment, dataDir),
			Hint:    "start it with --console 127.0.0.1:9325 (or port 0 for a free one), or name a queue by its URL",
			cause:   ErrOff,
		}
	}
	token, err := ReadToken(dataDir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the console's token: %w", err)
	}
	c := &Client{Instance: *instance, dataDir: dataDir, token: token}
	c.http, c.slow = c.httpClient(2*MaxWait), c.httpClient(MaxDeploy+MaxWait)
	return c, nil
}

// httpClient returns one that waits for the beginning of an answer for up to
// patience, and follows nobody elsewhere.
func (c *Client) httpClient(patience time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// Whatever name it bears and whoever signed it: there is one certificate
			// that is trusted.
			TLSClientConfig:       &tls.Config{InsecureSkipVerify: true, VerifyConnection: c.checkCertificate},
			DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			ResponseHeaderTimeout: patience,
			IdleConnTimeout:       10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// checkCertificate accepts the certificate that the instance file names, and no
// other. The file is read again for one that is new since Dial.
func (c *Client) checkCertificate(s tls.ConnectionState) error {
	shown := fingerprint(s.PeerCertificates[0].Raw)
	if shown == c.Instance.ConsoleCertificate {
		return nil
	}
	if i, err := ReadInstance(c.dataDir); err == nil && shown == i.ConsoleCertificate {
		return nil
	}
	return &Error{
		Message: "its certificate is not the one that " + filepath.Join(c.dataDir, InstanceFile) + " names",
		Hint:    "another program may listen there; name the environment's own --data-dir, or restart it",
	}
}

// Close drops idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.slow.CloseIdleConnections()
}

// call sends one request and decodes its answer into a value; body and into
// may be nil. It returns the HTTP status.
func (c *Client) call(ctx context.Context, method, path string, body, into any) (int, error) {
	return c.callBy(ctx, c.http, method, path, body, into)
}

func (c *Client) callBy(ctx context.Context, client *http.Client, method, path string, body, into any) (int, error) {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Instance.ConsoleURL()+path, payload)
	if err != nil {
		return 0, fmt.Errorf("asking the console at %s: %w", c.Instance.Console, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, c.trouble(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, c.trouble(err)
	}
	return resp.StatusCode, c.decode(resp.StatusCode, data, into)
}

// trouble explains why there is no answer.
func (c *Client) trouble(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || !ProcessAlive(c.Instance.PID) {
		return notRunning(c.dataDir)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("asking the console at %s: %w", c.Instance.Console, err)
}

func (c *Client) decode(status int, data []byte, into any) error {
	if status >= 200 && status <= 299 || status == http.StatusServiceUnavailable && wants503(into) {
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("the console at %s answered what this program does not understand: %w", c.Instance.Console, err)
		}
		return nil
	}
	refusal := &Error{Status: status}
	if json.Unmarshal(data, refusal) != nil || refusal.Message == "" {
		refusal.Message = fmt.Sprintf("the console at %s answered %d %s", c.Instance.Console, status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		return c.unauthorized(refusal)
	}
	return refusal
}

// wants503 tells the one answer that is meant to be read whatever its status.
func wants503(into any) bool {
	_, ok := into.(*readiness)
	return ok
}

// unauthorized says where the token would have come from.
func (c *Client) unauthorized(refusal *Error) error {
	if c.token == "" {
		if _, err := ReadToken(c.dataDir); errors.Is(err, fs.ErrPermission) {
			return foreign(filepath.Join(c.dataDir, TokenFile))
		}
		refusal.Hint = "there is no " + TokenFile + " in " + c.dataDir + "; restart the environment to have one written"
		return refusal
	}
	refusal.Message = "the console at " + c.Instance.Console + " does not know the token of " + c.dataDir
	refusal.Hint = "another environment may listen there; name its --data-dir"
	return refusal
}
