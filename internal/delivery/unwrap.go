package delivery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"tendril/internal/delivery/envelope"
	"tendril/queue"
)

const (
	// fetchTimeout is enough for the largest payload at 5 Mbit/s.
	fetchTimeout = 30 * time.Second
	fetchPause   = 5 * time.Second
)

func unwrap(next stage, opts *Options) stage {
	log := cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return func(ctx context.Context, batch []*message) {
		limit := fetchTimeout
		if opts.Deadline != nil && opts.Deadline() > 0 {
			limit = min(limit, opts.Deadline())
		}

		deadline := time.Now().Add(limit)
		batch = keepReady(batch, opts.FIFO, func(m *message) bool {
			if m.Run.Named() {
				return true
			}
			if opts.SNS {
				openSNS(m, log)
			}
			return opts.Payloads == nil || fetchPayload(ctx, m, deadline, opts)
		})

		if len(batch) > 0 {
			next(ctx, batch)
		}
	}
}

func openSNS(m *message, log *slog.Logger) {
	inner, kind := envelope.SNS(m.Message)
	m.Message = &inner
	if kind == envelope.Confirmation {
		log.Warn("SNS subscription not confirmed", "message_id", m.ID,
			"hint", "confirm it in the SNS console: tendril never follows a link in a message")
	}
}

// fetchPayload replaces a pointer with its payload. If that fails, it sets the result and returns false.
func fetchPayload(ctx context.Context, m *message, deadline time.Time, opts *Options) bool {
	start := time.Now()
	fetching, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	opened, err := opts.Payloads.Open(fetching, m.Message)
	if err == nil {
		m.Message = &opened
		return true
	}
	if ctx.Err() == nil && !isTemporary(err) {
		m.result = queue.Result{Reason: "its payload in S3 is not available", Err: err, Unsent: true}
		return false
	}

	// The pause is longer than the fetch, so that most slots are free while S3 does not respond.
	retryIn := max(fetchPause, 2*time.Since(start))
	if ctx.Err() == nil && opts.Postponed != nil {
		opts.Postponed(m.Message, retryIn, err)
	}
	m.result = queue.Result{Outcome: queue.Postponed, Reason: "its payload in S3 is temporarily not available", Err: err,
		RetryAfter: retryIn}
	return false
}

// isTemporary reports whether S3 or the network, not the object, caused err.
func isTemporary(err error) bool {
	return errors.Is(err, queue.ErrUnreachable) || errors.Is(err, queue.ErrThrottled) ||
		errors.Is(err, context.DeadlineExceeded)
}
