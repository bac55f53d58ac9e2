package aws

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

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
