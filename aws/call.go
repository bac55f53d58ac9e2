package aws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/queue"
)

// maxAnswer bounds what is read of one answer: ten messages of the largest
// size, each character escaped in the longest way.
const maxAnswer = 10 * 6 << 20

// caller makes the hot calls: one signed POST of JSON each. What is delicate
// in that is the SDK's own: credentials and their renewal, the signature, and
// the rules of what is tried again, after how long and how often in all.
type caller struct {
	transport   http.RoundTripper
	credentials sdk.CredentialsProvider
	signer      sqs.HTTPSignerV4
	retryer     sdk.RetryerV2
	clock       clock
	buffers     sync.Pool // of *[]byte, for answers
	events      Events
}

// call is one call to one queue.
type call struct {
	site   site
	queue  string // its name
	action string
	body   []byte
	// patience bounds one attempt.
	patience time.Duration
	// once forbids a second attempt where the first may have had an effect.
	once bool
}

// do makes the call and hands the answer's body to read, which must not keep
// it. The error is a [*queue.Error], or ctx's own.
func (c *caller) do(ctx context.Context, call call, read func(body []byte) error) error {
	err := c.attempts(ctx, call, read)
	return explain(ctx, call.queue, call.site.endpoint.Host, err)
}

// attempts repeats the call as the SDK's retryer says.
func (c *caller) attempts(ctx context.Context, call call, read func([]byte) error) error {
	release := func(error) error { return nil }
	for attempt := 1; ; attempt++ {
		began, err := c.retryer.GetAttemptToken(ctx)
		if err != nil {
			return err
		}
		offset := c.clock.offset()
		started := time.Now()
		status, err := c.attempt(ctx, call, offset, read)
		c.events.called(Call{call.action, call.queue, attempt, status, time.Since(started), err})
		// Handing a token back cannot fail in a way that matters here.
		_, _ = release(err), began(err)
		if err == nil {
			return nil
		}
		skewed := c.clock.learn(err, offset)
		if skewed && attempt == 1 {
			c.events.clockAdjusted(c.clock.offset())
			continue
		}
		if call.once || attempt >= c.retryer.MaxAttempts() || !c.retryer.IsErrorRetryable(err) {
			return err
		}
		if release, err = c.pause(ctx, attempt, err); err != nil {
			return err
		}
	}
}

// pause takes a retry token and waits for the next attempt. Without a token,
// or when ctx ends, it returns the error that ends the call.
func (c *caller) pause(ctx context.Context, attempt int, cause error) (release func(error) error, err error) {
	release, err = c.retryer.GetRetryToken(ctx, cause)
	if err != nil {
		return nil, cause
	}
	delay, err := c.retryer.RetryDelay(attempt, cause)
	if err != nil {
		return nil, cause
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// attempt makes one HTTP exchange. A status of 0 means that there was no
// answer.
func (c *caller) attempt(ctx context.Context, call call, offset time.Duration, read func([]byte) error) (status int,
	err error) {
	limited, cancel := context.WithTimeout(ctx, call.patience)
	defer cancel()
	req, err := c.request(limited, call, time.Now().Add(offset))
	if err != nil {
		return 0, err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, undelivered(ctx, err)
	}
	defer resp.Body.Close()
	buffer, _ := c.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer c.recycle(buffer)
	if *buffer, err = readAll((*buffer)[:0], resp); err != nil {
		return resp.StatusCode, undelivered(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, datedRefusal(resp, *buffer)
	}
	if err := read(*buffer); err != nil {
		return resp.StatusCode, &queue.Error{Code: queue.CodeUnreachable, Err: err,
			Message: fmt.Sprintf("%s gave an answer to %s that is not one of SQS: %v; check AWS_ENDPOINT_URL_SQS",
				call.site.endpoint.Host, call.action, err)}
	}
	return resp.StatusCode, nil
}

// recycle keeps a buffer for the next answer, unless one large answer made it
// too big to keep.
func (c *caller) recycle(buffer *[]byte) {
	if cap(*buffer) <= 1<<20 {
		c.buffers.Put(buffer)
	}
}

// request builds and signs one POST. It has no way to rewind its body, so that
// nothing below us can send it twice.
func (c *caller) request(ctx context.Context, call call, at time.Time) (*http.Request, error) {
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return nil, noCredentials(err)
	}
	where := call.site.endpoint // the signer writes to the URL: a copy
	req := &http.Request{
		Method: http.MethodPost, URL: &where, Host: where.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":      {"application/x-amz-json-1.0"},
			"User-Agent":        {"tendril"},
			"X-Amz-Target":      {"AmazonSQS." + call.action},
			"X-Amzn-Query-Mode": {"true"},
		},
		Body: io.NopCloser(bytes.NewReader(call.body)), ContentLength: int64(len(call.body)),
	}
	sum := sha256.Sum256(call.body)
	if err := c.signer.SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "sqs", call.site.region,
		at); err != nil {
		return nil, fmt.Errorf("signing %s: %w", call.action, err)
	}
	return req.WithContext(ctx), nil
}

// readAll reads an answer's body into buf.
func readAll(buf []byte, resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n > maxAnswer {
		return buf, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	} else if need := int(n) + 1; n >= 0 && cap(buf) < need {
		buf = make([]byte, 0, need)
	}
	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), 2*cap(buf)+4096)
			copy(grown, buf)
			buf = grown
		}
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) > maxAnswer:
			return buf, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
		}
	}
}

// site is where a queue lives.
type site struct {
	endpoint url.URL
	region   string
}

// clock remembers how far the service's clock is from ours. A signature holds
// the time, and SQS refuses one that is more than minutes away from its own;
// a machine with a wrong clock would then never work.
//
// As in the SDK, only a refusal that may be about the time, with a Date that
// really is far from the time signed, changes the offset, in both directions.
type clock struct {
	nanoseconds atomic.Int64
}

// tooFar is how different the clocks must be for a refused signature to be
// blamed on them.
const tooFar = 4 * time.Minute

func (c *clock) offset() time.Duration { return time.Duration(c.nanoseconds.Load()) }

// learn adjusts the clock if err, the result of a request signed with offset,
// says that it was wrong, and reports whether it did.
func (c *clock) learn(err error, offset time.Duration) bool {
	var dated *dated
	if !errors.As(err, &dated) || !dated.mayBeTime() {
		return false
	}
	if (dated.skew - offset).Abs() <= tooFar {
		return false
	}
	c.nanoseconds.Store(int64(dated.skew))
	return true
}

// dated is a refusal with the time at which the service gave it.
type dated struct {
	*refusal
	// skew is the service's time minus ours.
	skew time.Duration
}

// Unwrap returns the refusal.
func (d *dated) Unwrap() error { return d.refusal }

// mayBeTime reports whether the refusal can be about the time of the request.
// No code is only about that.
func (d *dated) mayBeTime() bool {
	for _, code := range []string{d.shape, d.query} {
		switch code {
		case "InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure",
			"RequestTimeTooSkewed", "RequestExpired", "AccessDeniedException":
			return true
		}
	}
	return false
}

// datedRefusal is the error of an answer, with its time if it tells one. An
// answer with an Age came out of a cache: its date is old.
func datedRefusal(resp *http.Response, body []byte) error {
	refused := newRefusal(resp, body)
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || resp.Header.Get("Age") != "" {
		return refused
	}
	return &dated{refused, time.Until(at)}
}

func newRefusal(resp *http.Response, body []byte) *refusal {
	r := &refusal{status: resp.StatusCode}
	r.shape, r.message = readRefusal(body)
	r.message = firstLine(r.message)
	r.query, _, _ = strings.Cut(resp.Header.Get("X-Amzn-Query-Error"), ";")
	return r
}

// readRefusal decodes the body of an error answer: the shape's name without
// its namespace, and the sentence. Both are "" when buf is something else.
func readRefusal(buf []byte) (shape, message string) {
	s := scanner{buf: buf}
	s.object(func(name []byte) {
		switch string(name) {
		case "__type":
			shape = string(s.text())
		case "message", "Message":
			message = string(s.text())
		default:
			s.skip()
		}
	})
	if s.end() != nil {
		return "", ""
	}
	return shape[strings.LastIndexByte(shape, '#')+1:], message
}
