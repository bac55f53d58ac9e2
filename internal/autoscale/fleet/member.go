package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/aws"
	"tendril/queue"
)

const (
	findInterval = time.Minute
	// Outside EC2, the metadata service never responds.
	metadataTries = 3
)

// Options configure a [Fleet]. Work, Drain, Load, IsLeader and Log are required.
type Options struct {
	// Region is the group's region; "" means the region of the environment, the profile or the instance.
	Region string
	// Group is the Auto Scaling group to resize; Cluster and Service identify the ECS service to resize. If all are "",
	// this process finds its own group or service, and publishes the load to Namespace.
	Group, Cluster, Service, Namespace string
	Work                               func() autoscale.Work
	Unprotected                        bool
	CPUMetric                          bool
	Drain                              func(context.Context) error
	Load                               func() autoscale.Inputs
	IsLeader                           func() bool
	Log                                *slog.Logger
	LogSDK                             func(level slog.Level, text string)
	// Protected is called with the initial state and after every change; may be nil.
	Protected func(on bool)
	Timing    Timing
}

// Timing contains durations for tests; 0 means the default.
type Timing struct {
	// ProtectAfter is the age from which a delivery protects the instance; negative means immediately. Look is the
	// interval between checks of the work in flight, Poll between checks for a termination.
	ProtectAfter, Look, Poll time.Duration
}

type member struct {
	opts    Options
	service *aws.AutoScaling
	looked  chan struct{} // closed after the first attempt to find the group
	// run is the context of the search, the protection and the wait for termination. released is closed after everything
	// else has stopped.
	run      context.Context
	stop     context.CancelFunc
	released chan struct{}
	// terminating means that the group is terminating this instance. completed is closed after the lifecycle action.
	terminating atomic.Bool
	completed   chan struct{}
	all         sync.WaitGroup

	mu      sync.Mutex
	group   *aws.Group // nil if unknown or absent
	why     error
	settled bool
	members Members
}

func newMember(opts Options, service *aws.AutoScaling) *member {
	m := &member{opts: opts, service: service, looked: make(chan struct{}), released: make(chan struct{}),
		completed: make(chan struct{})}
	m.run, m.stop = context.WithCancel(context.Background())
	return m
}

func (m *member) start() { m.all.Go(m.findAndJoin) }

func (m *member) findAndJoin() {
	tick := time.Tick(findInterval)
	for try := 1; ; try++ {
		self, err := m.identify(m.run, try)
		if m.run.Err() != nil {
			return
		}

		settled := m.recordAttempt(self, err)
		if try == 1 {
			close(m.looked)
		}
		if err == nil {
			m.protectAndDrain(self)
		}
		if settled {
			return
		}

		select {
		case <-tick:
		case <-m.run.Done():
			return
		}
	}
}

type identity struct {
	machine *aws.Instance
	id      string
	group   *aws.Group
	hooks   aws.TerminationHooks
}

type notAMember struct{ error }

func (e notAMember) Unwrap() error { return e.error }

func (m *member) identify(ctx context.Context, try int) (identity, error) {
	if !aws.MayBeInstance() {
		return identity{}, notAMember{errors.New("this machine does not look like an EC2 instance; if it is one, set TENDRIL_INSTANCE_ID")}
	}
	machine, err := aws.NewInstance("")
	if err != nil {
		return identity{}, notAMember{err}
	}

	id, err := machine.InstanceID(ctx)
	if err != nil {
		if try >= metadataTries || errors.Is(err, queue.ErrDenied) {
			err = notAMember{err}
		}
		return identity{}, err
	}

	name := m.opts.Group
	if name == "" {
		if name, err = m.service.GroupOf(ctx, id); err != nil {
			return identity{}, permanentIfMissing(err)
		}
	}
	group := m.service.Group(name)
	state, err := group.Describe(ctx)
	if err != nil {
		return identity{}, err // the group may be created later
	}
	if !slices.ContainsFunc(state.Instances, func(i aws.GroupInstance) bool { return i.ID == id }) {
		return identity{}, notAMember{fmt.Errorf("instance %s is not in the group %s", id, group.Name())}
	}

	hooks, err := group.TerminationHooks(ctx)
	return identity{machine, id, group, hooks}, err
}

func permanentIfMissing(err error) error {
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return notAMember{err}
	}
	return err
}

func (m *member) recordAttempt(self identity, err error) (settled bool) {
	settled = err == nil || errors.As(err, &notAMember{})

	m.mu.Lock()
	before := m.why
	m.why, m.settled = err, settled
	if err == nil {
		m.group, m.members.Self = self.group, self.id
	}
	m.mu.Unlock()

	if err != nil && (before == nil || before.Error() != err.Error()) {
		m.logNoMembership(err, settled)
	}
	return settled
}

func (m *member) logNoMembership(err error, settled bool) {
	switch {
	case settled && m.opts.Group == "":
		m.opts.Log.Info("instances not counted, publishing the total backlog", "reason", err)
	case settled:
		m.opts.Log.Warn("instance not found in any Auto Scaling group: scale-in protection and the drain before "+
			"termination are off", "err", err)
	default:
		m.opts.Log.Warn("Auto Scaling group of this instance not read yet, trying again: scale-in protection and the "+
			"drain before termination are off", "err", err)
	}
}

func (m *member) protectAndDrain(self identity) {
	one := self.group.Member(self.id, self.hooks)
	timing := m.opts.Timing
	events := autoscale.LogEvents(m.opts.Log, "instances")
	if !m.opts.Unprotected {
		protected := withProtection(events, m.opts.Protected)
		protector := &autoscale.Protector{
			Guard: one, Work: m.opts.Work, After: timing.ProtectAfter,
			Interval: timing.Look, Events: protected,
		}
		m.all.Go(func() { protector.Run(m.run) })
	}

	if len(self.hooks.All) == 0 {
		m.opts.Log.Warn("group has no lifecycle hook for autoscaling:EC2_INSTANCE_TERMINATING", "group", self.group.Name(),
			"hint", "without it, a terminated instance has no time beyond its shutdown to finish its work")
		return
	}

	termination := &autoscale.Termination{
		Chosen: self.machine.Leaving, Hook: one, Drain: m.drain, Poll: timing.Poll, Events: events,
	}
	m.all.Go(func() { termination.Run(m.run); close(m.completed) })
}

func (m *member) drain(ctx context.Context) error {
	m.terminating.Store(true)
	err := m.opts.Drain(ctx)
	select {
	case <-m.released:
	case <-ctx.Done():
	}
	return err
}

func (m *member) leave(ctx context.Context) {
	close(m.released)
	if m.terminating.Load() {
		select {
		case <-m.completed:
		case <-ctx.Done():
		}
	}
	m.stop()
	m.all.Wait()
}

func (m *member) countInstances(ctx context.Context) (int, error) {
	m.mu.Lock()
	group := m.group
	settled := m.settled
	why := m.why
	m.mu.Unlock()

	if group == nil && settled {
		return 1, nil
	}
	if group == nil {
		return 0, why
	}

	s, err := group.Describe(ctx)
	if err == nil {
		m.setMembers(group.Name(), s)
	}
	return s.InService(), err
}

func (m *member) setMembers(group string, s aws.GroupState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members.Group = group
	m.members.Instances = s.Instances
	m.members.At = time.Now()
}

func withProtection(events autoscale.Events, protected func(on bool)) autoscale.Events {
	if protected == nil {
		return events
	}
	protected(false)
	logged := events.Protected
	events.Protected = func(on bool) { logged(on); protected(on) }
	return events
}

func (m *member) problem() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		return ""
	}
	return m.why.Error()
}
