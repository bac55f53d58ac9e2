package instances

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	rolloutTick   = 2 * time.Second
	recordsMaxAge = 5 * time.Second
	rolloutRetry  = 30 * time.Second
)

// After these errors of [RolloutApp.Deploy], the version does not count as failed.
var (
	// ErrDeployAborted means that the deployment was aborted, or that the instance is stopping.
	ErrDeployAborted = errors.New("the deployment was aborted")
	// ErrDeployLater means that the deployment may succeed later.
	ErrDeployLater = errors.New("the deployment is repeated")
)

// RolloutApp is the app of an instance.
type RolloutApp interface {
	// Running returns the running version's number, or 0 if it was deployed on this instance only.
	Running() int
	// Deploy switches to v without downtime. If it fails, the previous version keeps running.
	Deploy(ctx context.Context, v *AppVersion) error
	Abort(ctx context.Context)
	// Hold stops new deliveries for a reason; "" resumes them.
	Hold(reason string)
}

// Rollouts keeps this instance's app at the desired version, and advances rollouts on the leader.
type Rollouts struct {
	state *DesiredState
	app   RolloutApp

	// These are used only by Run.
	conductor Conductor
	begun     int // reported to RolloutOptions.Begun

	wake    chan struct{}
	deploys sync.WaitGroup

	holding sync.Mutex // held until a decision is applied, so that an older one never overrides it

	mu        sync.Mutex
	unknown   bool // the desired version has not been read yet, or does not run here yet
	switching int  // version being deployed here, or 0
	failed    int  // version whose last deployment failed here, or 0
	reason    string
	failedAt  time.Time
}

// NewRollouts returns the rollouts of an app.
func NewRollouts(state *DesiredState, app RolloutApp) *Rollouts {
	return &Rollouts{state: state, app: app, wake: make(chan struct{}, 1)}
}

// Fleet gives the leader access to all instances' records. All fields are required.
type Fleet struct {
	Store   Store
	ID      string
	Self    func() Record
	Others  *Watcher
	Leads   func() bool
	Healthy func(*Record) bool
}

func (f *Fleet) records(ctx context.Context) ([]Instance, error) {
	all, err := f.Others.ReadOnce(ctx, recordsMaxAge)
	self := f.Self()
	self.ID = f.ID
	all = slices.DeleteFunc(all, func(one Instance) bool { return one.ID == self.ID })
	return append(all, Instance{Record: self}), err
}

// RolloutOptions configure [Rollouts.Run]. All fields are required.
type RolloutOptions struct {
	*Fleet
	// While Active returns false, Run does nothing.
	Active func() bool
	// Begun is called before this instance first advances a rollout as the leader.
	Begun func(context.Context, *App)
	// Changed is called after this instance changes the desired state, Finished if that ends a rollout.
	Changed  func()
	Finished func(before, now *App)
	Tried    func()
	Log      *slog.Logger
}

// Run deploys the desired version and, on the leader, advances its rollout, until ctx ends.
func (r *Rollouts) Run(ctx context.Context, o *RolloutOptions) {
	defer r.deploys.Wait()
	tick := time.Tick(rolloutTick)
	for {
		if o.Active() {
			if o.Leads() {
				r.advance(ctx, o)
			}
			r.followDesired(ctx, o)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-r.wake:
		}
	}
}

func (r *Rollouts) advance(ctx context.Context, o *RolloutOptions) {
	now, _ := r.state.Current()
	if now.App == nil || now.App.Next == nil {
		return
	}
	if r.begun != now.App.Next.Number && !r.begin(ctx, o) {
		return
	}
	all, err := o.records(ctx)
	if err != nil {
		return // logged by the watcher
	}

	before := *now.App
	next, changed := r.conductor.Next(before, all, time.Now(), o.Healthy)
	if !changed {
		return
	}

	_, err = r.state.Change(ctx, o.Store, func(d *Desired) error {
		if d.App == nil || d.App.Next == nil || d.App.Next.Number != before.Next.Number || d.App.Until != before.Until {
			return ErrNoRollout
		}
		d.App = &next
		return nil
	})
	switch {
	case err == nil:
		o.Changed()
		if next.Next == nil {
			o.Finished(&before, &next)
		}
	case !errors.Is(err, ErrNoRollout) && ctx.Err() == nil:
		o.Log.Warn("rollout not continued", "version", before.Next.Number, "err", err)
	}
}

// begin refreshes the state first: the rollout may have been aborted.
func (r *Rollouts) begin(ctx context.Context, o *RolloutOptions) bool {
	now, err := r.state.Refresh(ctx, o.Store)
	if err != nil || now.App == nil || now.App.Next == nil {
		return false
	}
	r.begun = now.App.Next.Number
	o.Begun(ctx, now.App)
	return true
}

// HoldUntilKnown holds deliveries until the registry has answered and this instance runs the desired version.
func (r *Rollouts) HoldUntilKnown() {
	r.mu.Lock()
	r.unknown = true
	r.mu.Unlock()
	r.applyHold()
}

// Apply reacts to a change of the desired state. It stops deliveries on a withdrawn version at once.
func (r *Rollouts) Apply() {
	r.applyHold()
	r.notify()
}

func (r *Rollouts) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Rollouts) applyHold() {
	r.holding.Lock()
	defer r.holding.Unlock()
	r.app.Hold(r.holdReason())
}

func (r *Rollouts) holdReason() string {
	r.mu.Lock()
	unknown, switching := r.unknown, r.switching
	r.mu.Unlock()
	if unknown {
		return "the registry, which has the current version of the app, has not responded yet"
	}

	now, _ := r.state.Current()
	if now.App == nil {
		return ""
	}
	for _, number := range []int{r.app.Running(), switching} { // it may be too late to abort a deployment
		if now.App.Withdrawn(number) {
			return fmt.Sprintf("version %d of the app was rolled back", number)
		}
	}
	return ""
}

func (r *Rollouts) followDesired(ctx context.Context, o *RolloutOptions) {
	r.resolveUnknown(ctx, o)
	r.applyHold()
	now, _ := r.state.Current()
	if now.App == nil {
		return
	}
	wanted, running := now.App.Wanted(o.ID), r.app.Running()
	isRollout := now.App.Next != nil && wanted.Number == now.App.Next.Number

	r.mu.Lock()
	defer r.mu.Unlock()
	failedHere := wanted.Number == r.failed && (isRollout || time.Since(r.failedAt) < rolloutRetry)
	switch {
	case r.switching != 0 && r.switching != wanted.Number:
		r.deploys.Go(func() { r.app.Abort(ctx) })
	case r.switching != 0, wanted.Number == running, failedHere:
	default:
		r.switching = wanted.Number
		r.deploys.Go(func() { r.deploy(ctx, &wanted, o) })
	}
}

func (r *Rollouts) resolveUnknown(ctx context.Context, o *RolloutOptions) {
	r.mu.Lock()
	unknown := r.unknown
	r.mu.Unlock()
	if !unknown {
		return
	}
	now, err := r.state.Refresh(ctx, o.Store)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.unknown = now.App != nil && now.App.Wanted(o.ID).Number != r.app.Running()
	r.mu.Unlock()
}

func (r *Rollouts) deploy(ctx context.Context, v *AppVersion, o *RolloutOptions) {
	err := r.app.Deploy(ctx, v)
	later, aborted := errors.Is(err, ErrDeployLater), errors.Is(err, ErrDeployAborted)

	r.mu.Lock()
	r.switching = 0
	switch {
	case err == nil:
		r.failed, r.reason = 0, ""
	case !aborted && !later:
		r.failed = v.Number
		r.reason = err.Error()
		r.failedAt = time.Now()
	}
	r.mu.Unlock()

	if err != nil && !aborted {
		o.Log.Warn("version not deployed on this instance", "version", v.Number, "err", err)
	}
	if later {
		select {
		case <-time.After(rolloutTick):
		case <-ctx.Done():
		}
	}
	o.Tried()
	r.notify()
}

// Report returns the app's part of this instance's record.
func (r *Rollouts) Report() AppReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return AppReport{Takes: true, Number: r.app.Running(), Failed: r.failed, Error: r.reason}
}
