package leader

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"tendril/queue"
)

// errClaimLost is the cause of the end of [Claim.Context] when another instance may have taken the work over.
var errClaimLost = errors.New("the claim on this work was not renewed in time, and another instance may do it")

// workDone is the data of the lease of work that is finished.
const workDone = "done"

// Claim is the right of this instance to do a piece of work that one instance is to do, once. It is renewed until
// [Claim.Finish].
type Claim struct {
	store Store
	opts  Options
	held  queue.Lease

	ctx  context.Context
	lose context.CancelCauseFunc
	stop chan struct{} // is closed by Finish
	over chan struct{} // is closed when nothing is renewed any more
}

// AcquireClaim returns the claim on the work that opts.Name names; nil when an instance has finished that work. While
// another instance is at it, it waits, after a call of Following; an instance that fails, or does not renew its claim
// for opts.Lease, is replaced. With repeat, work that was finished before the call is done again. Of opts it uses
// Name, Owner, Lease, Renew, CallTimeout, Margin and Events.Following. The error is ctx's, or the store's when that
// fails for as long as patience.
func AcquireClaim(ctx context.Context, store Store, opts Options, repeat bool, patience time.Duration) (*Claim, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	w := claimWatch{repeat: repeat, following: opts.Events.Following}
	failing := time.Now()
	for {
		won, stored, err := w.try(ctx, store, &opts)
		switch {
		case won:
			return newClaim(ctx, store, opts, stored, w.began), nil
		case err == nil && w.finished(stored):
			return nil, nil
		case err == nil:
			failing = time.Now()
			w.observe(opts.Name, stored, failing)
		case time.Since(failing) >= patience:
			return nil, fmt.Errorf("claiming %s: %w", opts.Name, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(w.pause(time.Now(), opts.Renew)):
		}
	}
}

// claimWatch decides whether the work of another instance may be taken over. No clocks are compared: a lease is over
// when it did not change for its own duration.
type claimWatch struct {
	repeat    bool
	following func(Following) // nil for nobody
	seen      queue.Lease
	seenAt    time.Time // when its version was seen first
	read      bool
	// next is a write whose answer was lost, and began when it was tried first; its version is "" for none.
	next  queue.Lease
	began time.Time
}

// try reads the lease, or writes its own where that may be: then won is true when this instance has it.
func (w *claimWatch) try(ctx context.Context, store Store, opts *Options) (won bool, stored queue.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, opts.CallTimeout)
	defer cancel()
	if !w.read || !w.free(time.Now()) {
		stored, err = store.Read(ctx, opts.Name)
		return false, stored, err
	}
	if w.next.Version == "" {
		w.began = time.Now()
		w.next = queue.Lease{Owner: opts.Owner, Version: rand.Text(), Term: w.seen.Term + 1, Duration: opts.Lease}
	}
	return store.Swap(ctx, opts.Name, w.seen, w.next)
}

func (w *claimWatch) observe(name string, stored queue.Lease, now time.Time) {
	isNew := !w.read || stored.Term != w.seen.Term
	if w.next = (queue.Lease{}); !w.read || stored.Version != w.seen.Version {
		w.seen, w.seenAt = stored, now
	}
	w.read = true
	if w.free(now) {
		return
	}
	w.repeat = false // what another instance does now is not done before
	if isNew && w.following != nil {
		w.following(Following{Name: name, Owner: stored.Owner, Term: stored.Term})
	}
}

func (w *claimWatch) finished(l queue.Lease) bool { return l.Data == workDone && !w.repeat }

// free reports whether the lease that was seen may be replaced.
func (w *claimWatch) free(now time.Time) bool {
	return w.seen.Version == "" || w.seen.Released || now.Sub(w.seenAt) >= w.seen.Duration
}

// pause is how long to wait for the next look.
func (w *claimWatch) pause(now time.Time, usual time.Duration) time.Duration {
	switch {
	case !w.read || w.next.Version != "":
		return usual / 5
	case w.free(now):
		return 0
	}
	return min(usual, w.seenAt.Add(w.seen.Duration).Sub(now))
}

func newClaim(ctx context.Context, store Store, opts Options, held queue.Lease, began time.Time) *Claim {
	c := &Claim{store: store, opts: opts, held: held, stop: make(chan struct{}), over: make(chan struct{})}
	c.ctx, c.lose = context.WithCancelCause(ctx)
	go c.renew(began.Add(opts.Lease - opts.Margin))
	return c
}

// Context is done when the claim is lost, with a cause that says so, or with the context of its acquisition. Work
// ends with it.
func (c *Claim) Context() context.Context { return c.ctx }

// renew renews the claim until the work is over. trusted is until when others leave the last write alone.
func (c *Claim) renew(trusted time.Time) {
	defer close(c.over)
	pause := c.opts.Renew
	next := c.successor()
	for {
		select {
		case <-c.stop:
			return
		case <-time.After(min(pause, time.Until(trusted))):
		}
		began := time.Now()
		if !began.Before(trusted) {
			c.lose(errClaimLost)
			return
		}
		won, _, err := c.swap(context.Background(), next)
		switch {
		case won:
			c.held, trusted, pause = next, began.Add(c.opts.Lease-c.opts.Margin), c.opts.Renew
			next = c.successor()
		case err == nil: // another instance wrote
			c.lose(errClaimLost)
			return
		default: // the same write again: it may have been applied
			pause = c.opts.Renew / 5
		}
	}
}

func (c *Claim) successor() queue.Lease {
	next := c.held
	next.Version = rand.Text()
	return next
}

func (c *Claim) swap(ctx context.Context, next queue.Lease) (bool, queue.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	return c.store.Swap(ctx, c.opts.Name, c.held, next)
}

// Finish ends the claim. done tells that the work is finished, so that no other instance does it; else the next one
// may begin at once. The error says that this could not be written: another instance may do the work again. Finish is
// called once.
func (c *Claim) Finish(ctx context.Context, done bool) error {
	close(c.stop)
	<-c.over
	defer c.lose(nil)
	if errors.Is(context.Cause(c.ctx), errClaimLost) {
		return errClaimLost
	}
	last := c.successor()
	if last.Released = true; done {
		last.Data = workDone
	}
	limit := time.Now().Add(c.opts.Lease - c.opts.Margin)
	for {
		won, stored, err := c.swap(ctx, last)
		switch {
		case won:
			return nil
		case err == nil && (stored.Owner != c.held.Owner || stored.Term != c.held.Term):
			return errClaimLost
		case err == nil: // a renewal whose answer was lost
			c.held = stored
		case ctx.Err() != nil || !time.Now().Before(limit):
			return fmt.Errorf("finishing %s: %w", c.opts.Name, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.opts.Renew / 5):
		}
	}
}
