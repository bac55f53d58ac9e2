package autoscale

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Target is a set of processes or instances to resize.
type Target interface {
	// Size returns the number of ready members and the last requested number.
	Size(ctx context.Context) (current, desired int, err error)
	// SetSize returns once the request is accepted. It is idempotent.
	SetSize(ctx context.Context, n int) error
}

type boundedTarget interface {
	// Bounds returns the target's own limits as of the last Size.
	Bounds() (least, most int)
}

// Advice is a target that stores the size for an external scaler. The zero value has size 1.
type Advice struct{ size atomic.Int64 }

// Size returns the last requested size as both results.
func (a *Advice) Size(context.Context) (current, desired int, err error) {
	n := int(max(a.size.Load(), 1))
	return n, n, nil
}

// SetSize stores the size.
func (a *Advice) SetSize(_ context.Context, n int) error {
	a.size.Store(int64(n))
	return nil
}

// Options configure a [Loop].
type Options struct {
	Policy Policy
	// Interval is the time between readings.
	Interval time.Duration
	// IsLeader reports whether this instance may change the size; nil means always.
	IsLeader func() bool
	// Metric returns the trigger's newest value; nil means that load returns it. Only the leader calls Metric.
	Metric func(context.Context) (Datapoint, error)
	Events Events
}

// Loop applies a policy. Except for Run, it is safe for concurrent use.
type Loop struct {
	load   func() Inputs
	target Target
	opts   Options

	// state, calls and size are for Run only.
	state policyState
	calls caller
	size  knownSize

	mu     sync.Mutex
	status Status
}

// New returns a loop; [Loop.Run] starts it. load returns the current measures, such as [Gauge.Read].
func New(load func() Inputs, target Target, opts Options) *Loop {
	opts.Policy.FromMetric = opts.Metric != nil
	opts.Policy = opts.Policy.inWholePeriods()

	l := &Loop{load: load, target: target, opts: opts, status: Status{Policy: opts.Policy}}
	l.calls = newCaller(func(f Failed) {
		l.mu.Lock()
		l.status.Failed = &f
		l.mu.Unlock()
		notify(opts.Events.Failed, f)
	})
	return l
}

// Run decides immediately and then once per interval, until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	every(ctx, l.opts.Interval, func() bool { l.decideOnce(ctx); return true })
}

func (l *Loop) decideOnce(ctx context.Context) {
	mayApply := l.isLeader()
	if err := l.readSize(ctx, mayApply); err != nil {
		return
	}

	in := l.load()
	if ctx.Err() != nil {
		return
	}
	in.Desired, in.Ready = l.size.desired, l.size.current
	if l.opts.Metric != nil && mayApply {
		in = l.replaceMeasure(ctx, in)
	}

	d := Decision{At: time.Now(), From: in.Desired, Desired: in.Desired}
	policy, ok := l.boundedPolicy()
	if ok {
		l.state, d = policy.Decide(l.state, in, d.At)
	} else {
		d.because(ruleHeld, "the maximum size of the target is 0")
	}
	l.recordDecision(policy, in, l.apply(ctx, d, mayApply))
}

// ok is false if the target's own maximum is 0.
func (l *Loop) boundedPolicy() (p Policy, ok bool) {
	bounded, isBounded := l.target.(boundedTarget)
	if !isBounded {
		return l.opts.Policy, true
	}
	least, most := bounded.Bounds()
	if most < 1 {
		return l.opts.Policy, false
	}
	return l.opts.Policy.within(least, most), true
}

// Followers read the size only every followerIntervals, because AWS would throttle the account if all instances of a
// large group read it in every interval.
const followerIntervals = 10

type knownSize struct {
	current, desired int
	read             bool
	age              int
}

func (l *Loop) readSize(ctx context.Context, leader bool) error {
	l.size.age++
	if !leader && l.size.read && l.size.age < followerIntervals {
		return nil
	}

	l.size.age = 0
	return l.call(ctx, "reading the size", func(ctx context.Context) error {
		current, desired, err := l.target.Size(ctx)
		if err == nil {
			l.size = knownSize{current: current, desired: desired, read: true}
		}
		return err
	})
}

func (l *Loop) replaceMeasure(ctx context.Context, in Inputs) Inputs {
	var newest Datapoint
	_ = l.call(ctx, "reading "+string(l.opts.Policy.Measure), func(ctx context.Context) (err error) { // reported already
		newest, err = l.opts.Metric(ctx)
		return err
	})

	in.Measured = &Reading{newest.Value, newest.Samples > 0}
	in.MeasuredFrom = newest.From
	if l.opts.Policy.Measure == CPUUtilization {
		in.CPU = *in.Measured
	}
	if 2*newest.Samples < in.Desired {
		in.HoldScaleIn = cmp.Or(in.HoldScaleIn,
			fmt.Sprintf("the metric has readings from only %d of %d instances", newest.Samples, in.Desired))
	}
	return in
}

func (l *Loop) isLeader() bool { return l.opts.IsLeader == nil || l.opts.IsLeader() }

func (l *Loop) apply(ctx context.Context, d Decision, mayApply bool) Decided {
	if !d.Changes() {
		return Decided{Decision: d}
	}
	if !mayApply || !l.isLeader() {
		return Decided{Decision: d, NotApplied: "another instance is the leader"}
	}

	err := l.call(ctx, "setting the size", func(ctx context.Context) error { return l.target.SetSize(ctx, d.Desired) })
	if err != nil {
		return Decided{Decision: d, NotApplied: err.Error()}
	}
	return Decided{Decision: d, Applied: true}
}

func (l *Loop) call(ctx context.Context, doing string, f func(context.Context) error) error {
	if err := l.calls.do(ctx, doing, f); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed := l.status.Failed; failed != nil && failed.Doing == doing {
		l.status.Failed = nil
	}
	return nil
}

func (l *Loop) recordDecision(policy Policy, in Inputs, d Decided) {
	l.mu.Lock()
	l.status.Policy = policy
	l.status.Inputs = in
	l.status.Desired = d.Decision.Desired
	l.status.Ready = in.Ready
	changed := l.status.record(d, in)
	l.mu.Unlock()

	if changed {
		notify(l.opts.Events.Decided, d)
	}
}

const maxDecisions = 100

// Status is a snapshot of a loop.
type Status struct {
	Policy Policy
	// Desired is the size that the policy chose, applied or not; 0 before the first decision.
	Inputs         Inputs
	Desired, Ready int
	// Decisions contains the last hundred entries, newest first. Repeated decisions share one.
	Decisions []Entry
	// Failed is the last failed call; nil once it succeeds.
	Failed *Failed
}

// Entry is a decision with its repetitions.
type Entry struct {
	Decided Decided

	Inputs Inputs
	// Until is the time of the last repetition. Times includes the first decision.
	Until time.Time
	Times int
}

// Status returns a snapshot of the loop.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Decisions = slices.Clone(s.Decisions)
	slices.Reverse(s.Decisions)
	return s
}

func (s *Status) record(d Decided, in Inputs) (changed bool) {
	if n := len(s.Decisions); n > 0 {
		last := &s.Decisions[n-1]
		if last.Decided.repeats(d) {
			last.Until = d.Decision.At
			last.Decided.Decision.Why = d.Decision.Why
			last.Inputs = in
			last.Times++
			return false
		}

		if n == maxDecisions {
			s.Decisions = slices.Delete(s.Decisions, 0, 1)
		}
	}
	s.Decisions = append(s.Decisions, Entry{Decided: d, Inputs: in, Until: d.Decision.At, Times: 1})
	return true
}
