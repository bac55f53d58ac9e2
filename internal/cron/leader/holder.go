package leader

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// holder makes the calls about one lease that its core decides on. It belongs to one goroutine.
type holder struct {
	store Store
	opts  Options
	core  core
	// onFailure is called with each failure of the store; it may be nil.
	onFailure func(err error, retry time.Duration)
	err       error // the last failure
}

// read reads the lease.
func (h *holder) read(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, h.opts.CallTimeout)
	defer cancel()
	l, err := h.store.Read(limited, h.opts.Name)
	if err != nil {
		h.failed(ctx, err)
		return err
	}
	h.core.observed(time.Now(), l)
	return nil
}

// try makes one try of an attempt. The core does not know its outcome yet.
func (h *holder) try(ctx context.Context, a *attempt) (won bool, current queue.Lease, err error) {
	limited, cancel := context.WithTimeout(ctx, h.opts.CallTimeout)
	defer cancel()
	won, current, err = h.store.Swap(limited, h.opts.Name, a.old, a.next)
	if err == nil && !won && current.Version == a.old.Version {
		err = fmt.Errorf("the store refused to replace version %q and says that it is still stored", a.old.Version)
	}
	return won, current, err
}

// failed notes an error of the store, unless it is the end of ctx.
func (h *holder) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	h.err = err
	retry := h.core.failed(time.Now())
	if h.onFailure != nil {
		h.onFailure(err, retry)
	}
}

// release releases the lease if it is this instance's, also when the outcome of the last attempt is not known. It
// reports whether the lease is this instance's and released. The error is ctx's.
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

		a, ours := h.core.giveBack(time.Now())
		if !ours {
			return h.core.seen.Released && h.core.mine(h.core.seen), nil
		}

		won, current, err := h.try(ctx, a)
		if err != nil {
			h.failed(ctx, err)
			h.core.lose() // the stored lease has to be read
			waitUntil(ctx, h.core.notBefore, nil)
			continue
		}
		h.core.swapped(time.Now(), a, won, current)
	}
	return false, ctx.Err()
}

// waitUntil waits until a time, or until ctx is done or poke receives.
func waitUntil(ctx context.Context, until time.Time, poke <-chan struct{}) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-poke:
	case <-timer.C:
	}
}
