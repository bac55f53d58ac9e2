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

// retries applies the SDK's retry policy to calls that bypass its client.
type retries struct {
	retryer sdk.RetryerV2
	// clock is how far the service's clock is ahead, in nanoseconds.
	clock    atomic.Int64
	adjusted func(offset time.Duration) // may be nil
}

func retryerV2(r sdk.Retryer) sdk.RetryerV2 {
	if v2, ok := r.(sdk.RetryerV2); ok {
		return v2
	}
	return retry.AddWithMaxAttempts(r, r.MaxAttempts()).(sdk.RetryerV2)
}

// do calls attempt, which must add offset to the signing time. once limits retries to signatures rejected because of
// the local clock.
func (r *retries) do(ctx context.Context, once bool, attempt func(offset time.Duration) error) error {
	returnRetryToken := func(error) error { return nil } // the first attempt has none
	for tried := 1; ; tried++ {
		returnAttemptToken, err := r.retryer.GetAttemptToken(ctx)
		if err != nil {
			return err
		}

		offset := time.Duration(r.clock.Load())
		err = attempt(offset)
		_ = returnRetryToken(err) // failing to return a token is harmless
		_ = returnAttemptToken(err)
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
		if returnRetryToken, err = r.waitToRetry(ctx, tried, err); err != nil {
			return err
		}
	}
}

func (r *retries) waitToRetry(ctx context.Context, tried int, cause error) (returnToken func(error) error, err error) {
	returnToken, noToken := r.retryer.GetRetryToken(ctx, cause)
	delay, noDelay := r.retryer.RetryDelay(tried, cause)
	if noToken != nil || noDelay != nil {
		return nil, cause
	}
	select {
	case <-time.After(delay):
		return returnToken, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Clock errors of up to maxClockSkew do not explain a rejected signature.
const maxClockSkew = 4 * time.Minute

// learnClock adjusts the clock and returns true if a wrong clock made a request signed with offset fail. As in the SDK,
// the error code must permit this cause, and the response's Date must be far from the signing time.
func (r *retries) learnClock(err error, offset time.Duration) bool {
	var refused *refusal
	if !errors.As(err, &refused) || !refused.dated || !refused.mayBeClockSkew() {
		return false
	}
	if (refused.skew - offset).Abs() <= maxClockSkew {
		return false
	}
	r.clock.Store(int64(refused.skew))
	return true
}

// refusalOf ignores the Date of a response with an Age header: it comes from a cache.
func refusalOf(resp *http.Response, shape, message string) *refusal {
	r := &refusal{status: resp.StatusCode, shape: shape, message: firstLine(message)}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" {
		r.dated, r.skew = true, time.Until(at)
	}
	return r
}
