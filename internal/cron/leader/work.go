package leader

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errWorkLost = errors.New("the lease of this work was not renewed in time, and another instance may do it")

const workDone = "done"

// Work is a task that only one instance performs, once. Its lease is renewed until [Work.Finish].
type Work struct {
	lease holder

	ctx          context.Context
	end          context.CancelCauseFunc
	stop         context.CancelFunc
	renewalEnded chan struct{} // closed after the last renewal
}

// AcquireWork acquires the work opts.Name, or returns nil if another instance has finished it. While another instance
// holds the work, AcquireWork calls Following and waits until the lease is released or expires. With repeat, finished
// work is done again, unless another instance is already repeating it. Of opts, set only Name, Owner, Lease, Renew,
// CallTimeout, Margin and Events.Following. AcquireWork fails if ctx ends, or if the store fails for longer than
// patience.
func AcquireWork(ctx context.Context, store Store, opts Options, repeat bool, patience time.Duration) (*Work, error) {
	opts.Random = func() float64 { return 0 } // too few instances to spread their retries
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}

	w := &Work{lease: holder{store: store, core: newCore(&opts)}, renewalEnded: make(chan struct{})}
	core := &w.lease.core
	lastSuccess := time.Now()
	var reported Following
	for core.term == 0 {
		if core.failures == 0 {
			lastSuccess = time.Now()
		} else if time.Since(lastSuccess) >= patience {
			return nil, fmt.Errorf("acquiring %s: %w", opts.Name, w.lease.err)
		}
		if core.known && core.seen.Data == workDone && !repeat {
			return nil, nil
		}

		if core.known && !core.mayTake() {
			repeat = false // another instance's work counts as the repetition
			holder := Following{Name: opts.Name, Owner: core.seen.Owner, Term: core.seen.Term}
			if holder != reported {
				reported = holder
				call(opts.Events.Following, holder)
			}
		}

		w.step(ctx, earlier(time.Now().Add(opts.Renew), lastSuccess.Add(patience)))
		if core.term == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	w.startRenewing(ctx)
	return w, nil
}

func (w *Work) startRenewing(ctx context.Context) {
	w.ctx, w.end = context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.renew(renewing)
}

func (w *Work) step(ctx context.Context, until time.Time) {
	switch next := w.lease.core.decide(time.Now()); next.do {
	case wait:
		waitUntil(ctx, earlier(next.until, until), nil)
	case read:
		_ = w.lease.read(ctx) // the next step tries again
	case swap:
		won, current, err := w.lease.swap(ctx, next.attempt)
		if err != nil {
			w.lease.recordFailure(ctx, err)
			return
		}
		w.lease.core.swapped(time.Now(), next.attempt, won, current)
	}
}

// Context returns a context that is canceled with AcquireWork's, and when the work is lost or finished.
func (w *Work) Context() context.Context { return w.ctx }

func (w *Work) renew(ctx context.Context) {
	defer close(w.renewalEnded)
	for core := &w.lease.core; ctx.Err() == nil; {
		next := core.decide(time.Now())
		if core.term == 0 {
			w.end(errWorkLost)
			return
		}
		if next.do == wait {
			waitUntil(ctx, next.until, nil)
			continue
		}
		w.step(context.WithoutCancel(ctx), core.trusted)
	}
}

// Finish ends the work and must be called once. If done is false, or after an error, another instance may start the
// work.
func (w *Work) Finish(ctx context.Context, done bool) error {
	w.stop()
	<-w.renewalEnded
	defer w.end(nil)
	if errors.Is(context.Cause(w.ctx), errWorkLost) {
		return errWorkLost
	}
	opts := w.lease.core.opts
	if done {
		opts.Data = workDone
	}

	ctx, cancel := context.WithTimeout(ctx, opts.Lease-opts.Margin)
	defer cancel()
	released, err := w.lease.release(ctx)
	switch {
	case err != nil && w.lease.err != nil:
		return fmt.Errorf("finishing %s: %w", opts.Name, w.lease.err)
	case err != nil:
		return fmt.Errorf("finishing %s: %w", opts.Name, err)
	case !released:
		return errWorkLost
	}
	return nil
}
