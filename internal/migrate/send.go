package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

const maxSendRetries = 6

func (r *run) sendBatch(ctx context.Context, items []Item) error {
	items, err := r.resolveUncertain(ctx, items)
	if err != nil {
		return err
	}

	for try := 0; len(items) > 0; try++ {
		again, cause, err := r.attempt(ctx, items)
		switch {
		case err != nil:
			return err
		case len(again) == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case try == maxSendRetries || !isTemporary(cause):
			return fmt.Errorf("sending %d messages: %w", len(again), cause)
		}

		if err := pause(ctx, time.Second<<min(try, 4)); err != nil {
			return err
		}
		// The deduplication interval may have passed by now.
		if items, err = r.resolveUncertain(ctx, again); err != nil {
			return err
		}
	}
	return nil
}

// attempt returns the messages that were neither accepted nor rejected, and the cause. err is a failure of the journal
// or of deleting at the source.
func (r *run) attempt(ctx context.Context, items []Item) (again []Item, cause, err error) {
	ids := idsOf(items)
	if err := r.journal.Intend(ids, r.options.FIFO); err != nil {
		return nil, nil, err
	}

	out := make([]queue.Outgoing, len(items))
	for i := range items {
		out[i] = r.outgoing(&items[i])
	}

	sent, err := r.to.Send(ctx, out)
	switch {
	case errors.Is(err, &queue.Error{Code: queue.CodeBatchRequestTooLong}) && len(items) > 1:
		r.journal.forget(ids...)
		return r.attemptHalves(ctx, items)
	case err != nil && isRefusal(err) && len(items) == 1:
		sent = []queue.Sent{{Err: err}}
	case err != nil:
		return items, err, nil
	}

	var accepted []Item
	for i := range sent {
		switch err := sent[i].Err; {
		case err == nil:
			accepted = append(accepted, items[i])
		case isRefusal(err):
			r.refuse(&items[i], err)
		default:
			again = append(again, items[i])
			cause = err
			if !errors.Is(err, &queue.Error{Code: queue.CodeUnreachable}) {
				r.journal.forget(items[i].ID)
			}
		}
	}
	return again, cause, r.accept(ctx, accepted)
}

func (r *run) attemptHalves(ctx context.Context, items []Item) (again []Item, cause, err error) {
	for half := range slices.Chunk(items, (len(items)+1)/2) {
		more, why, err := r.attempt(ctx, half)
		if err != nil {
			return nil, nil, err
		}
		again = append(again, more...)
		cause = cmp.Or(why, cause)
	}
	return again, cause, nil
}

func (r *run) refuse(it *Item, why error) {
	r.skip(it, Refused)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.refused(it.ID, why)
	if r.options.FIFO {
		r.blocked[it.Message.GroupID] = true
	}
	r.journal.forget(it.ID)
}

func (r *run) accept(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	if err := r.journal.Accept(idsOf(items)); err != nil {
		return err
	}
	if r.options.Progress != nil {
		r.options.Progress(r.journal.Sent(), r.journal.SourceBefore())
	}
	return r.deleteAtSource(context.WithoutCancel(ctx), items)
}

func idsOf(items []Item) []string {
	ids := make([]string, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	return ids
}

func (r *run) outgoing(it *Item) queue.Outgoing {
	out := it.Message
	if r.options.FIFO {
		// The original ID would deduplicate messages that were originally sent more than five minutes apart.
		out.DedupID = "migrate-" + it.ID
		return out
	}

	wait := max(0, time.Until(it.VisibleAt))
	if wait > 0 && r.options.MaxDelay == 0 {
		out.NotBefore = it.VisibleAt
		return out
	}

	if r.options.MaxDelay > 0 && wait > r.options.MaxDelay {
		wait = r.options.MaxDelay
		r.mu.Lock()
		r.cut[it.ID] = true
		r.mu.Unlock()
	}

	wait = (wait + time.Second - 1).Truncate(time.Second)
	out.Delay = &wait // 0 overrides the destination's default delay
	return out
}

// resolveUncertain returns the messages to send. It deletes messages of a FIFO queue at the source if their
// deduplication interval has passed and they count as accepted.
func (r *run) resolveUncertain(ctx context.Context, items []Item) ([]Item, error) {
	if !r.options.FIFO {
		return items, nil
	}

	old := slices.DeleteFunc(slices.Clone(items), func(it Item) bool {
		at := r.journal.intendedAt(it.ID)
		return at.IsZero() || time.Since(at) <= dedupWindow
	})
	if len(old) == 0 {
		return items, nil
	}

	earlier := !slices.ContainsFunc(old, func(it Item) bool { return r.journal.intendedAt(it.ID).After(r.began) })
	accepted, err := r.uncertainAccepted(ctx, earlier)
	if err != nil {
		return nil, err
	}
	if !accepted {
		for _, it := range old {
			r.journal.forget(it.ID)
		}
		return items, nil
	}

	if err := r.accept(ctx, old); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool { return r.journal.Accepted(it.ID) }), nil
}

// The result for messages of earlier runs is kept, because the count changes with each send.
func (r *run) uncertainAccepted(ctx context.Context, fromEarlierRun bool) (bool, error) {
	if fromEarlierRun && r.earlier.known {
		return r.earlier.accepted, nil
	}
	accepted, err := r.decideUncertain(ctx)
	if err != nil {
		return false, err
	}
	if fromEarlierRun {
		r.earlier = answer{known: true, accepted: accepted}
	}
	return accepted, nil
}

// decideUncertain assumes that nothing else uses the destination.
func (r *run) decideUncertain(ctx context.Context) (accepted bool, err error) {
	switch r.options.Uncertain {
	case Resend:
		return false, nil
	case Drop:
		return true, nil
	}

	count, err := r.countDestination(ctx)
	if err != nil {
		return false, err
	}

	more := count - r.journal.DestinationBefore() - r.journal.Sent()
	if r.options.DestinationExact || r.journal.DestinationBefore() == 0 {
		switch more {
		case 0:
			return false, nil
		case r.journal.Uncertain():
			return true, nil
		}
	}
	return false, fmt.Errorf("%s %w: the destination holds %d more than it has confirmed",
		messages(r.journal.Uncertain()), ErrUncertain, more)
}

func isRefusal(err error) bool {
	for _, code := range []string{queue.CodeInvalidParameterValue, queue.CodeInvalidMessageContents,
		queue.CodeMissingRequiredParameter, queue.CodeBatchRequestTooLong, queue.CodeUnsupportedOperation} {
		if errors.Is(err, &queue.Error{Code: code}) {
			return true
		}
	}
	return false
}

func isTemporary(err error) bool {
	var e *queue.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case queue.CodeUnreachable, queue.CodeRequestThrottled, queue.CodeStorageFailed, queue.CodeOverLimit,
		queue.CodeReceiptHandleIsInvalid, queue.CodeMessageNotInflight, "InternalError", "InternalFailure",
		"ServiceUnavailable":
		return true
	}
	return strings.HasPrefix(e.Code, "Throttl")
}
