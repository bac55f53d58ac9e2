package leader

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// holder makes the store calls for one lease. It is not safe for concurrent use.
type holder struct {
	store     Store
	core      core
	onFailure func(Failure) // may be nil
	err       error
}

func (h *holder) failure() error {
	if h.core.failures == 0 {
		return nil
	}
	return h.err
}

func (h *holder) read(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, h.core.opts.CallTimeout)
	defer cancel()
	l, err := h.store.Read(limited, h.core.opts.Name)
	if err != nil {
		h.recordFailure(ctx, err)
		return err
	}
	h.core.observed(time.Now(), l)
	return nil
}

func (h *holder) swap(ctx context.Context, a *attempt) (won bool, current queue.Lease, err error) {
	limited, cancel := context.WithTimeout(ctx, h.core.opts.CallTimeout)
	defer cancel()
	won, current, err = h.store.Swap(limited, h.core.opts.Name, a.old, a.next)
	if err == nil && !won && current.Version == a.old.Version {
		err = fmt.Errorf("the store refused to replace version %q, but still stores it", a.old.Version)
	}
	return won, current, err
}

// recordFailure ignores errors after the end of ctx, which are not the store's.
func (h *holder) recordFailure(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	h.err = err
	retry := h.core.backOff(time.Now())
	call(h.onFailure, Failure{Name: h.core.opts.Name, Err: err, Consecutive: h.core.failures, Retry: retry})
}

// release works even if an attempt is pending. released reports whether the stored lease is this instance's and is
// released. The only error is ctx's.
func (h *holder) release(ctx context.Context) (released bool, err error) {
	if h.core.pending != nil {
		h.core.lose()
	}

	for ctx.Err() == nil {
		if !h.core.known {
			if h.read(ctx) != nil {
				waitUntil(ctx, h.core.notBefore, nil)
			}
			continue
		}

		a := h.core.releaseAttempt(time.Now())
		if a == nil {
			return h.core.seen.Released && h.core.isOwn(h.core.seen), nil
		}

		won, current, err := h.swap(ctx, a)
		if err != nil {
			h.recordFailure(ctx, err)
			h.core.lose()
			waitUntil(ctx, h.core.notBefore, nil)
			continue
		}
		h.core.swapped(time.Now(), a, won, current)
	}
	return false, ctx.Err()
}

func waitUntil(ctx context.Context, until time.Time, wake <-chan struct{}) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
