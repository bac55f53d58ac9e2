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
	// lookAgain is the time between two attempts to find out which member of which group this instance is.
	lookAgain = time.Minute
	// metadataTries is how often the metadata service is asked for the instance id. Outside
	// of EC2 it never answers.
	metadataTries = 3
)

// Options say what a [Fleet] needs. Work, Drain, Load, IsLeader and Log are required.
type Options struct {
	// Region is where the group is; "" means what the environment, the profile or the
	// metadata of the instance say.
	Region string
	// Group is the name of the Auto Scaling group whose size is set, Cluster and Service are the names
	// of the service of Amazon ECS. All "" means that this instance may be in any of them, and
	// publishes the load into Namespace.
	Group, Cluster, Service, Namespace string
	// Work returns how much is in flight, which decides about protection from scale-in.
	Work func() autoscale.Work
	// Unprotected leaves protection from scale-in to others.
	Unprotected bool
	// Drain finishes what is in flight, before the group terminates this instance.
	Drain func(context.Context) error
	// Load measures the load to publish.
	Load func() autoscale.Inputs
	// IsLeader reports whether this instance sets the size or publishes the load.
	IsLeader func() bool
	// Log gets what happens, and LogSDK what the AWS SDK logs.
	Log    *slog.Logger
	LogSDK func(level slog.Level, text string)
	// Protected is told whether this instance is protected from scale-in, when that begins to be decided here and
	// whenever it changes.
	Protected func(on bool)
	// Timing is for tests that do not wait; the zero value means the usual times.
	Timing Timing
}

// Timing are the times of a member; 0 means the default of each.
type Timing struct {
	// ProtectAfter is how long a delivery lasts before the instance is protected; negative
	// means at once. Look is the time between two looks at the work, Poll that between two
	// questions whether the instance is being terminated.
	ProtectAfter, Look, Poll time.Duration
}

// member is this instance as a member of a group, from start to leave.
type member struct {
	opts    Options
	service *aws.AutoScaling
	looked  chan struct{} // closed after the first attempt to find out
	// run ends protection and the watch for termination; released is closed when everything else has ended.
	run      context.Context
	stop     context.CancelFunc
	released chan struct{}
	// terminating tells that the group terminates this instance; completed is closed
	// when the lifecycle action was completed.
	terminating atomic.Bool
	completed   chan struct{}
	all         sync.WaitGroup

	mu      sync.Mutex
	group   *aws.Group // the one found; nil for none, or while it is not known
	why     error      // why the group, or this instance in it, is not known
	settled bool       // there is nothing more to find out
	// members are those of the group when it was asked last.
	members Members
}

func newMember(opts Options, service *aws.AutoScaling) *member {
	m := &member{opts: opts, service: service, looked: make(chan struct{}), released: make(chan struct{}),
		completed: make(chan struct{})}
	m.run, m.stop = context.WithCancel(context.Background())
	return m
}

// start finds out, in the background, who this instance is. It then protects the instance
// while it works, and drains it when the group terminates it.
func (m *member) start() {
	m.all.Go(func() {
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for try := 1; ; try++ {
			self, err := m.find(m.run, try)
			if m.run.Err() != nil {
				return
			}

			settled, isNew := m.keep(self, err)
			m.logFound(self, err, settled, isNew)
			if try == 1 {
				close(m.looked)
			}
			if err == nil {
				m.hold(self)
			}
			if settled {
				return
			}

			select {
			case <-tick.C:
			case <-m.run.Done():
				return
			}
		}
	})
}

type identity struct {
	machine *aws.Instance
	id      string
	group   *aws.Group
	hook    string // "" for none
}

// notAMember is a reason to look no further.
type notAMember struct{ error }

// Unwrap returns the reason.
func (e notAMember) Unwrap() error { return e.error }

// find asks the metadata and the group. A [notAMember] is an instance of no group.
func (m *member) find(ctx context.Context, try int) (self identity, err error) {
	if !aws.MayBeInstance() {
		return self, notAMember{errors.New("this machine is not an EC2 instance; set TENDRIL_INSTANCE_ID if it is one")}
	}

	if self.machine, err = aws.NewInstance(""); err != nil {
		return self, notAMember{err}
	}
	if self.id, err = self.machine.InstanceID(ctx); err != nil {
		if try >= metadataTries || errors.Is(err, queue.ErrDenied) {
			err = notAMember{err}
		}
		return self, err
	}

	name := m.opts.Group
	if name == "" {
		if name, err = m.service.GroupOf(ctx, self.id); err != nil {
			return self, final(err)
		}
	}

	self.group = m.service.Group(name)
	state, err := self.group.Describe(ctx)
	if err != nil {
		return self, err // a group that is made later is found later
	}
	if !slices.ContainsFunc(state.Instances, func(i aws.GroupInstance) bool { return i.ID == self.id }) {
		return self, notAMember{fmt.Errorf("instance %s is not in the group %s", self.id, self.group.Name())}
	}
	self.hook, err = self.group.TerminationHook(ctx)
	return self, err
}

// final marks the error of an instance that is in no group as final.
func final(err error) error {
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return notAMember{err}
	}
	return err
}

// keep records the result of find. settled reports whether there is nothing more to find out, isNew whether the error is
// another one than the last time.
func (m *member) keep(self identity, err error) (settled, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.why
	m.why, m.settled = err, err == nil || errors.As(err, &notAMember{})
	if err == nil {
		m.group, m.members.Self = self.group, self.id
	}
	return m.settled, err != nil && (before == nil || before.Error() != err.Error())
}

// logFound logs a result of find: a new error, or a group without a lifecycle hook.
func (m *member) logFound(self identity, err error, settled, isNew bool) {
	switch {
	case isNew && settled && m.opts.Group == "":
		m.opts.Log.Info("instances are not counted: the backlog is published as a whole", "reason", err)
	case isNew:
		m.opts.Log.Warn("instance not found in any Auto Scaling group: scale-in protection and the drain before "+
			"termination are off", "err", err)
	case err == nil && self.hook == "":
		m.opts.Log.Warn("group has no lifecycle hook for autoscaling:EC2_INSTANCE_TERMINATING", "group", self.group.Name(),
			"hint", "without it, an instance that is terminated has no more time to finish its work than its shutdown takes")
	}
}

// hold protects the instance while it works, and drains it when the group terminates it.
func (m *member) hold(self identity) {
	one, timing := self.group.Member(self.id, self.hook), m.opts.Timing
	events := autoscale.LogEvents(m.opts.Log, "instances")
	if !m.opts.Unprotected {
		protected := withProtection(events, m.opts.Protected)
		protector := &autoscale.Protector{
			Guard: one, Work: m.opts.Work, Protection: autoscale.Protection{After: timing.ProtectAfter},
			Interval: timing.Look, Events: protected,
		}
		m.all.Go(func() { protector.Run(m.run) })
	}
	if self.hook == "" {
		return
	}
	termination := &autoscale.Termination{
		Chosen: self.machine.Leaving, Hook: one, Drain: m.drain, Poll: timing.Poll, Events: events,
	}
	m.all.Go(func() { termination.Run(m.run); close(m.completed) })
}

// drain finishes the work, and returns when everything but the connection to the
// group has ended: then the group may terminate the machine.
func (m *member) drain(ctx context.Context) error {
	m.terminating.Store(true)
	err := m.opts.Drain(ctx)
	select {
	case <-m.released:
	case <-ctx.Done():
	}
	return err
}

// leave lets the group go on, where it waits, and takes the protection away. ctx bounds it.
// It is to be called when everything else has ended.
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

// count returns how many instances share the queue: those in service in the group, or this one.
func (m *member) count(ctx context.Context) (int, error) {
	m.mu.Lock()
	group, settled, why := m.group, m.settled, m.why
	m.mu.Unlock()
	switch {
	case group != nil:
		s, err := group.Describe(ctx)
		if err == nil {
			m.saw(group.Name(), s)
		}
		return s.InService(), err
	case settled:
		return 1, nil
	}
	return 0, why
}

// saw keeps who is in the group.
func (m *member) saw(group string, s aws.GroupState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members.Group, m.members.Instances, m.members.At = group, s.Instances, time.Now()
}

// withProtection returns events that report to protected too, which learns now that there is no protection yet.
func withProtection(events autoscale.Events, protected func(on bool)) autoscale.Events {
	if protected == nil {
		return events
	}
	protected(false)
	logged := events.Protected
	events.Protected = func(on bool) { logged(on); protected(on) }
	return events
}

// problem says why this instance is not a member of a group; "" where it is, or where that is not known yet.
func (m *member) problem() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		return ""
	}
	return m.why.Error()
}
