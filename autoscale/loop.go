package autoscale

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Target is what the loop scales.
type Target interface {
	// Size returns how many are ready now, and how many were last requested.
	Size(ctx context.Context) (current, desired int, err error)
	// SetSize requests a size. It returns when the request is accepted, not when it is
	// fulfilled. Requesting the same size again is not an error.
	SetSize(ctx context.Context, n int) error
}

// Bounded is a [Target] with its own bounds, which limit those of the policy.
type Bounded interface {
	// Bounds returns the smallest and the largest allowed size, as of the last Size.
	Bounds() (least, most int)
}

// Options configure a [Loop]. The zero value works.
type Options struct {
	Policy Policy
	// Interval is the time between two readings; 0 means 10 s.
	Interval time.Duration
	// CallTimeout limits each call of the target; 0 means 10 s.
	CallTimeout time.Duration
	// IsLeader, unless nil, is called before each change of size, which is applied only
	// if it returns true: only one instance may set the size of a group.
	IsLeader func() bool
	Events   Events
}

// Loop applies a policy. All methods but Run are safe for concurrent use.
type Loop struct {
	load   func() Inputs
	target Target
	opts   Options

	// state and failures are used by Run only; failures counts by call.
	state    State
	failures map[string]int

	mu     sync.Mutex
	status Status
}

// New returns a loop; [Loop.Run] starts it. load returns the current measures, such as
// [Gauge.Read]; Desired and Ready in it are ignored. New returns an error for a policy with
// values out of range.
func New(load func() Inputs, target Target, opts Options) (*Loop, error) {
	policy, err := opts.Policy.Complete()
	if err != nil {
		return nil, err
	}
	opts.Policy = policy
	opts.Interval, opts.CallTimeout = durationOr(opts.Interval, 10*time.Second), durationOr(opts.CallTimeout, callTimeout)
	if policy.Measure != "" && opts.Interval > policy.Period {
		return nil, fmt.Errorf("invalid Period %v: use at least the interval of the readings, %v", policy.Period,
			opts.Interval)
	}
	return &Loop{
		load: load, target: target, opts: opts, failures: map[string]int{},
		status: Status{Policy: policy},
	}, nil
}

// Run reads and decides at once and then every interval until ctx ends. It leaves the size
// unchanged at the end.
func (l *Loop) Run(ctx context.Context) {
	ticker := time.NewTicker(l.opts.Interval)
	defer ticker.Stop()
	for {
		l.decideOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// decideOnce makes one decision and applies it.
func (l *Loop) decideOnce(ctx context.Context) {
	var current, desired int
	err := l.callWithTimeout(ctx, "reading the size", func(ctx context.Context) (err error) {
		current, desired, err = l.target.Size(ctx)
		return err
	})
	if err != nil {
		return
	}
	in := l.load()
	if ctx.Err() != nil {
		return
	}
	in.Desired, in.Ready = desired, current
	policy, now := l.opts.Policy, time.Now()
	if own, ok := l.target.(Bounded); ok {
		least, most := own.Bounds()
		if most < 1 { // set to 0 by the user
			d := Decision{At: now, From: desired, Desired: desired, Rule: RuleHeld, Why: "the bounds of the target allow none"}
			l.decided(policy, in, l.apply(ctx, d))
			return
		}
		policy = policy.within(least, most)
	}
	next, d := policy.Decide(l.state, in, now)
	l.state = next
	l.decided(policy, in, l.apply(ctx, d))
}

// apply applies a decision, unless another instance is the leader.
func (l *Loop) apply(ctx context.Context, d Decision) Decided {
	done := Decided{Decision: d}
	switch {
	case !d.Changes():
	case l.opts.IsLeader != nil && !l.opts.IsLeader():
		done.NotApplied = "another instance is the leader"
	default:
		err := l.callWithTimeout(ctx, "setting the size",
			func(ctx context.Context) error { return l.target.SetSize(ctx, d.Desired) })
		if err != nil {
			done.NotApplied = err.Error()
		}
		done.Applied = err == nil
	}
	return done
}

// callWithTimeout makes one call within CallTimeout and reports its failure, unless ctx
// has ended.
func (l *Loop) callWithTimeout(ctx context.Context, doing string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, l.opts.CallTimeout)
	defer cancel()
	err := f(limited)
	if err == nil {
		delete(l.failures, doing)
		l.mu.Lock()
		if l.status.Failed != nil && l.status.Failed.Doing == doing {
			l.status.Failed = nil
		}
		l.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	l.failures[doing]++
	failed := Failed{Doing: doing, Err: err, Consecutive: l.failures[doing]}
	l.mu.Lock()
	l.status.Failed = &failed
	l.mu.Unlock()
	call(l.opts.Events.Failed, failed)
	return err
}

// decided records a decision, and reports it if it differs from the last.
func (l *Loop) decided(policy Policy, in Inputs, d Decided) {
	l.mu.Lock()
	l.status.Policy = policy
	l.status.Inputs, l.status.Desired, l.status.Ready = in, d.Desired, in.Ready
	changed := l.status.record(d)
	l.mu.Unlock()
	if changed {
		call(l.opts.Events.Decided, d)
	}
}
