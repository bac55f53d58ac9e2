package aws

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// retries repeats the calls that are made without the SDK's client as the SDK's retryer says.
type retries struct {
	retryer sdk.RetryerV2
	// clock is how many nanoseconds the service's clock is ahead of ours.
	clock    atomic.Int64
	adjusted func(offset time.Duration) // is told of a new offset of the clock; may be nil
}

// retryerV2 gives any retryer the newer interface.
func retryerV2(r sdk.Retryer) sdk.RetryerV2 {
	if v2, ok := r.(sdk.RetryerV2); ok {
		return v2
	}
	return retry.AddWithMaxAttempts(r, r.MaxAttempts()).(sdk.RetryerV2)
}

// do makes attempts until one succeeds or must not be repeated. offset is added to the time that is signed. once
// forbids a second attempt where the first may have had an effect.
func (r *retries) do(ctx context.Context, once bool, attempt func(offset time.Duration) error) error {
	release := func(error) error { return nil }
	for tried := 1; ; tried++ {
		began, err := r.retryer.GetAttemptToken(ctx)
		if err != nil {
			return err
		}

		offset := time.Duration(r.clock.Load())
		err = attempt(offset)
		// Handing a token back cannot fail in a way that matters here.
		_, _ = release(err), began(err)
		if err == nil {
			return nil
		}

		if r.learnClock(err, offset) && tried == 1 {
			if r.adjusted != nil {
				r.adjusted(time.Duration(r.clock.Load()))
			}
			continue
		}

		if once || tried >= r.retryer.MaxAttempts() || !r.retryer.IsErrorRetryable(err) {
			return err
		}
		if release, err = r.pause(ctx, tried, err); err != nil {
			return err
		}
	}
}

// pause takes a retry token and waits for the next attempt. Without a token,
// or when ctx ends, it returns the error that ends the call.
func (r *retries) pause(ctx context.Context, tried int, cause error) (release func(error) error, err error) {
	release, noToken := r.retryer.GetRetryToken(ctx, cause)
	delay, noDelay := r.retryer.RetryDelay(tried, cause)
	if noToken != nil || noDelay != nil {
		return nil, cause
	}
	select {
	case <-time.After(delay):
		return release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tooFar is how different the clocks must be for a refused signature to be
// blamed on them.
const tooFar = 4 * time.Minute

// learnClock adjusts the clock if err, the result of a request signed with offset,
// says that it was wrong, and reports whether it did.
//
// A signature holds the time, and AWS refuses one that is more than minutes away from its
// own; a machine with a wrong clock would then never work. As in the SDK, only a refusal that
// may be about the time, with a Date that really is far from the time signed, changes the
// offset, in both directions.
func (r *retries) learnClock(err error, offset time.Duration) bool {
	var refused *refusal
	if !errors.As(err, &refused) || !refused.dated || !refused.mayBeTime() || (refused.skew-offset).Abs() <= tooFar {
		return false
	}
	r.clock.Store(int64(refused.skew))
	return true
}

// refusalOf is the error of an answer, with its time if it tells one. An
// answer with an Age came out of a cache: its date is old.
func refusalOf(resp *http.Response, shape, message string) *refusal {
	r := &refusal{status: resp.StatusCode, shape: shape, message: firstLine(message)}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" {
		r.dated, r.skew = true, time.Until(at)
	}
	return r
}
