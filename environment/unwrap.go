package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tendril/aws"
	"tendril/config"
	"tendril/envelope"
	"tendril/queue"
)

// openBuckets opens the way to the payloads in S3, where buckets are named.
func (e *Environment) openBuckets(ctx context.Context) error {
	if len(e.s.S3Payloads) == 0 {
		return nil
	}
	opts := &aws.S3Options{Log: e.report.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	s3, err := aws.OpenS3(ctx, opts)
	if err != nil && e.Config.Origin("region") != (config.Origin{}) {
		opts.Region = e.s.Region // the one in the queue's URL
		s3, err = aws.OpenS3(ctx, opts)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.steps.push("the connections to S3", func(context.Context) error { s3.Close(); return nil })
	e.payloads = &envelope.Opener{Fetcher: s3, Buckets: e.s.S3Payloads}
	return nil
}

const (
	// fetchLimit is how long the payloads of one delivery may take to come from S3:
	// the largest one does at 5 Mbit/s.
	fetchLimit = 30 * time.Second
	// fetchPause is how soon a payload is asked for again that S3 did not give.
	fetchPause = 5 * time.Second
)

// fetchBy is when the payloads of a delivery must be there that begins now.
func (c *courier) fetchBy(now time.Time) time.Time {
	limit := fetchLimit
	if c.deadline != nil && c.deadline() > 0 {
		limit = min(limit, c.deadline())
	}
	return now.Add(limit)
}

// unwrap takes a message out of what carries it, which has to be over by a time.
// failed says why it cannot be had; then nothing is delivered, for the body is not
// what was sent.
func (c *courier) unwrap(ctx context.Context, m *queue.Message, by time.Time) (inner *queue.Message,
	failed *queue.Result) {
	if c.viaSNS {
		unwrapped, kind := envelope.SNS(m)
		if kind == envelope.Confirmation {
			c.e.report.note(slog.LevelWarn, "worker",
				fmt.Sprintf("message %s asks to confirm a subscription of SNS; tendril visits no address that a message names: "+
					"confirm it in the console of SNS", m.ID),
				slog.String("message_id", m.ID))
		}
		m = &unwrapped
	}
	if c.e.payloads == nil {
		return m, nil
	}
	begin := time.Now()
	fetching, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	opened, _, err := c.e.payloads.Open(fetching, m)
	switch {
	case err == nil:
		return &opened, nil
	case ctx.Err() != nil, mayComeLater(err):
		return nil, c.later(m, err, time.Since(begin), ctx.Err() != nil)
	}
	return nil, &queue.Result{Reason: "its payload in S3 cannot be had", Err: err, Unsent: true}
}

// mayComeLater reports whether an error is about S3, or the way to it, rather than
// about the object.
func mayComeLater(err error) bool {
	return errors.Is(err, queue.ErrUnreachable) || errors.Is(err, queue.ErrThrottled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// later is the outcome where S3 did not answer, after a time, which is no fault of
// the message. One that took long to fail waits longer: payloads that hang must leave
// the slots to other messages for most of the time.
func (c *courier) later(m *queue.Message, err error, took time.Duration, stopping bool) *queue.Result {
	again := max(fetchPause, 2*took)
	if !stopping {
		c.e.report.Postponed(m.ID, again, err)
	}
	return &queue.Result{Outcome: queue.Postponed, Reason: "its payload in S3 cannot be had for now", Err: err,
		RetryAfter: again}
}
