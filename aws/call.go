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
	// clock is how many nanoseconds the service's clock is ahead of ours.
	clock   atomic.Int64
	buffers sync.Pool // of *[]byte, for answers
	events  *Events
}

// site is where a queue lives.
type site struct {
	queue    string // its name
	endpoint url.URL
	region   string
}

// call is one call to one queue.
type call struct {
	site   *site
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
	return explain(ctx, call.site.queue, call.site.endpoint.Host, c.attempts(ctx, call, read))
}

// attempts repeats the call as the SDK's retryer says.
func (c *caller) attempts(ctx context.Context, call call, read func([]byte) error) error {
	release := func(error) error { return nil }
	for attempt := 1; ; attempt++ {
		began, err := c.retryer.GetAttemptToken(ctx)
		if err != nil {
			return err
		}
		offset := time.Duration(c.clock.Load())
		err = c.attempt(ctx, call, offset, read)
		// Handing a token back cannot fail in a way that matters here.
		_, _ = release(err), began(err)
		if err == nil {
			return nil
		}
		if c.learnClock(err, offset) && attempt == 1 {
			if c.events.ClockAdjusted != nil {
				c.events.ClockAdjusted(time.Duration(c.clock.Load()))
			}
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

// attempt makes one HTTP exchange.
func (c *caller) attempt(ctx context.Context, call call, offset time.Duration, read func([]byte) error) error {
	limited, cancel := context.WithTimeout(ctx, call.patience)
	defer cancel()
	req, err := c.request(limited, call, time.Now().Add(offset))
	if err != nil {
		return err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return undelivered(ctx, err)
	}
	defer resp.Body.Close()
	buffer, _ := c.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer func() {
		if cap(*buffer) <= 1<<20 { // one large answer made it too big to keep
			c.buffers.Put(buffer)
		}
	}()
	if *buffer, err = readAll((*buffer)[:0], resp); err != nil {
		return undelivered(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		return newRefusal(resp, *buffer)
	}
	if err := read(*buffer); err != nil {
		return queue.Errorf(queue.CodeUnreachable,
			"%s gave an answer to %s that is not one of SQS: %w; check AWS_ENDPOINT_URL_SQS",
			call.site.endpoint.Host, call.action, err)
	}
	return nil
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
	err = c.signer.SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "sqs", call.site.region, at)
	if err != nil {
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

// tooFar is how different the clocks must be for a refused signature to be
// blamed on them.
const tooFar = 4 * time.Minute

// learnClock adjusts the clock if err, the result of a request signed with offset,
// says that it was wrong, and reports whether it did.
//
// A signature holds the time, and SQS refuses one that is more than minutes away from its
// own; a machine with a wrong clock would then never work. As in the SDK, only a refusal that
// may be about the time, with a Date that really is far from the time signed, changes the
// offset, in both directions.
func (c *caller) learnClock(err error, offset time.Duration) bool {
	var refused *refusal
	if !errors.As(err, &refused) || !refused.dated || !refused.mayBeTime() || (refused.skew-offset).Abs() <= tooFar {
		return false
	}
	c.clock.Store(int64(refused.skew))
	return true
}

// newRefusal is the error of an answer, with its time if it tells one. An
// answer with an Age came out of a cache: its date is old.
func newRefusal(resp *http.Response, body []byte) *refusal {
	r := &refusal{status: resp.StatusCode}
	r.shape, r.message = readRefusal(body)
	r.message = firstLine(r.message)
	r.query, _, _ = strings.Cut(resp.Header.Get("X-Amzn-Query-Error"), ";")
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" {
		r.dated, r.skew = true, time.Until(at)
	}
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
