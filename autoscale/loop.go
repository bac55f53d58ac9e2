package autoscale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Gauge measures. What it cannot measure it leaves out: an error means that
// nothing was measured.
type Gauge interface {
	// Read returns what is known now; Desired and Ready are not looked at.
	Read(ctx context.Context) (Inputs, error)
}

// Target is what has a size.
type Target interface {
	// Size returns how many can work now, and how many it was told to have.
	Size(ctx context.Context) (current, desired int, err error)
	// SetSize tells it how many to have. It returns when that is accepted, not
	// when it is done; the same number again is not an error.
	SetSize(ctx context.Context, n int) error
}

// Bounded is a [Target] with bounds of its own, within which those of the policy count.
type Bounded interface {
	// Bounds returns the least and the largest size that it had at the last Size.
	Bounds() (least, most int)
}

// Options configure a [Loop]. The zero value works.
type Options struct {
	Policy Policy
	// Interval is the time between two readings; 0 means 10 s.
	Interval time.Duration
	// CallTimeout bounds each call of the gauge and of the target; 0 means 10 s.
	CallTimeout time.Duration
	// DryRun decides and tells, and sets nothing. [Loop.SetDryRun] changes it.
	DryRun bool
	// InCharge, unless nil, is asked before each change of size: of several
	// instances that look at one group, only one should set it.
	InCharge func() bool
	Events   Events
}

// Loop carries a policy out. Every method but Run may be called at any time by
// any goroutine.
type Loop struct {
	gauge  Gauge
	target Target
	opts   Options

	// state and failures belong to Run; failures counts by what was done.
	state    State
	failures map[string]int

	mu     sync.Mutex
	status Status
}

// New returns a loop; [Loop.Run] starts it. It refuses a policy with values
// out of range.
func New(gauge Gauge, target Target, opts Options) (*Loop, error) {
	if gauge == nil || target == nil {
		return nil, errors.New("scaling needs a gauge and a target")
	}
	policy, err := opts.Policy.Complete()
	if err != nil {
		return nil, err
	}
	opts.Policy = policy
	if opts.Interval <= 0 {
		opts.Interval = 10 * time.Second
	}
	if opts.CallTimeout <= 0 {
		opts.CallTimeout = 10 * time.Second
	}
	if policy.Measure != "" && opts.Interval > policy.Period {
		return nil, fmt.Errorf("the measure is read every %v, less than once in a Period of %v: make the period longer", opts.Interval, policy.Period)
	}
	return &Loop{
		gauge: gauge, target: target, opts: opts, failures: map[string]int{},
		status: Status{Policy: policy, DryRun: opts.DryRun},
	}, nil
}

// Run reads and decides every interval, at once for the first time, until ctx
// ends, and returns nil. The size stays what it is then.
func (l *Loop) Run(ctx context.Context) error {
	ticker := time.NewTicker(l.opts.Interval)
	defer ticker.Stop()
	for {
		l.decideOnce(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round makes one decision.
func (l *Loop) decideOnce(ctx context.Context) {
	var current, desired int
	err := l.callWithTimeout(ctx, "reading the size", func(ctx context.Context) (err error) {
		current, desired, err = l.target.Size(ctx)
		return err
	})
	if err != nil {
		return
	}
	var in Inputs
	_ = l.callWithTimeout(ctx, "reading the load", func(ctx context.Context) (err error) {
		in, err = l.gauge.Read(ctx)
		if err != nil {
			in = Inputs{} // told by try; the policy holds
		}
		return err
	})
	if ctx.Err() != nil {
		return
	}
	in.Desired, in.Ready = desired, current
	policy, now := l.opts.Policy, time.Now()
	if own, ok := l.target.(Bounded); ok {
		least, most := own.Bounds()
		if most < 1 { // which somebody wanted so
			d := Decision{At: now, From: desired, Desired: desired, Rule: RuleHeld, Why: "it may have none, by its own bounds"}
			l.decided(policy, in, l.apply(ctx, d))
			return
		}
		policy = policy.within(least, most)
	}
	next, d := policy.Decide(l.state, in, now)
	l.state = next
	l.decided(policy, in, l.apply(ctx, d))
}

// apply carries a decision out, unless something bars it.
func (l *Loop) apply(ctx context.Context, d Decision) Decided {
	done := Decided{Decision: d}
	switch {
	case !d.Changes():
	case l.Status().DryRun:
		done.NotApplied = "dry run"
	case l.opts.InCharge != nil && !l.opts.InCharge():
		done.NotApplied = "another instance is in charge"
	default:
		err := l.callWithTimeout(ctx, "setting the size", func(ctx context.Context) error { return l.target.SetSize(ctx, d.Desired) })
		if err != nil {
			done.NotApplied = err.Error()
		}
		done.Applied = err == nil
	}
	return done
}

// try makes one call within CallTimeout, and tells of its failure, unless ctx
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
	failed := Failed{Doing: doing, Err: err, InARow: l.failures[doing]}
	l.mu.Lock()
	l.status.Failed = &failed
	l.mu.Unlock()
	call(l.opts.Events.Failed, failed)
	return err
}

// decided keeps a decision in the log, and tells it if it is news.
func (l *Loop) decided(policy Policy, in Inputs, d Decided) {
	l.mu.Lock()
	l.status.Policy = policy
	l.status.Inputs, l.status.Desired, l.status.Ready = in, d.Desired, in.Ready
	news := l.status.note(d)
	l.mu.Unlock()
	if news {
		call(l.opts.Events.Decided, d)
	}
}

// SetDryRun makes the loop decide and set nothing, or set again.
func (l *Loop) SetDryRun(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.DryRun = on
}
