package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/autoscale"
	"tendril/aws"
	"tendril/queue"
)

const (
	// lookAgain is the time between two attempts to find out which member of
	// which group this instance is.
	lookAgain = time.Minute
	// metadataTries is how often the metadata service is asked for the instance id. Outside
	// of EC2 it never answers.
	metadataTries = 3
)

// Member is this instance as a member of a group. It begins with [Member.Start], and ends with
// [Member.Leave].
type Member struct {
	opts    Options
	service *aws.AutoScaling
	// own is the group that this instance should be in; nil means whichever it is in.
	own *aws.Group
	// looked is closed after the first attempt to find out.
	looked chan struct{}
	// run ends protection and the watch for termination; released is closed when
	// everything else has ended.
	run      context.Context
	stop     context.CancelFunc
	released chan struct{}
	// terminating tells that the group terminates this instance; completed is closed
	// when the lifecycle action was completed.
	terminating atomic.Bool
	completed   chan struct{}
	all         sync.WaitGroup

	mu sync.Mutex
	// group is the one found; nil for none, or while it is not known.
	group *aws.Group
	// why says why the group, or this instance in it, is not known; known that
	// there is nothing more to find out.
	why   error
	known bool
}

func newMember(opts Options, service *aws.AutoScaling, own *aws.Group) *Member {
	m := &Member{opts: opts, service: service, own: own, looked: make(chan struct{}), released: make(chan struct{}),
		completed: make(chan struct{})}
	m.run, m.stop = context.WithCancel(context.Background())
	return m
}

// Start finds out, in the background, who this instance is. It then protects the instance
// while it works, and drains it when the group terminates it.
func (m *Member) Start() {
	m.all.Go(func() {
		looked := sync.OnceFunc(func() { close(m.looked) })
		defer looked()
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for try := 1; ; try++ {
			self, err := m.find(m.run, try)
			if m.run.Err() != nil {
				return
			}
			m.learn(self, err)
			looked()
			if m.settled() {
				m.hold(self)
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

// identity is what was found out; the zero value is an instance of no group.
type identity struct {
	id    string
	group *aws.Group
	hook  string // "" for none
}

// notAMember is a reason to look no further.
type notAMember struct{ error }

// Unwrap returns the reason.
func (e notAMember) Unwrap() error { return e.error }

// find asks the metadata and the group. A [notAMember] is an instance of no group.
func (m *Member) find(ctx context.Context, try int) (identity, error) {
	instance, err := aws.NewInstance("")
	if err != nil {
		return identity{}, notAMember{err}
	}
	id, err := instance.InstanceID(ctx)
	if err != nil {
		if try >= metadataTries || errors.Is(err, queue.ErrDenied) {
			err = notAMember{err}
		}
		return identity{}, err
	}
	self := identity{id: id, group: m.own}
	if self.group == nil {
		name, err := m.service.GroupOf(ctx, id)
		if err != nil {
			return self, final(err)
		}
		self.group = m.service.Group(name)
	}
	state, err := self.group.Describe(ctx)
	if err != nil {
		return self, err // a group that is made later is found later
	}
	if !slices.ContainsFunc(state.Instances, func(i aws.GroupInstance) bool { return i.ID == id }) {
		return self, notAMember{fmt.Errorf("instance %s is not in the group %s", id, self.group.Name())}
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

// learn keeps what was found out, and logs what is missing when it is new.
func (m *Member) learn(self identity, err error) {
	m.mu.Lock()
	before := m.why
	m.why = err
	if err == nil {
		m.group, m.known = self.group, true
	}
	m.known = m.known || errors.As(err, &notAMember{})
	m.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		m.opts.Log.Warn("instance not found in any Auto Scaling group: scale-in protection and the drain before "+
			"termination are off", "err", err)
	case err == nil && self.hook == "":
		m.opts.Log.Warn("group has no lifecycle hook for autoscaling:EC2_INSTANCE_TERMINATING", "group", self.group.Name(),
			"hint", "without it, an instance that is terminated has no more time to finish its work than its shutdown takes")
	}
}

func (m *Member) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// hold protects the instance while it works, and drains it when the group terminates it.
func (m *Member) hold(self identity) {
	if self.group == nil || m.Problem() != "" {
		return
	}
	one, timing := self.group.Member(self.id, self.hook), m.opts.Timing
	events := autoscale.LogEvents(m.opts.Log, "instances")
	protector := &autoscale.Protector{
		Guard: one, Work: m.opts.Work, Protection: autoscale.Protection{After: timing.ProtectAfter},
		Interval: timing.Look, Events: events,
	}
	if !m.opts.Unprotected {
		m.all.Go(func() { protector.Run(m.run) })
	}
	if self.hook == "" {
		return
	}
	instance, err := aws.NewInstance("")
	if err != nil {
		return // it was made once before
	}
	termination := &autoscale.Termination{
		Chosen: instance.Leaving, Hook: one, Drain: m.drain, Poll: timing.Poll, Events: events,
	}
	m.all.Go(func() { termination.Run(m.run); close(m.completed) })
}

// drain finishes the work, and returns when everything but the connection to the
// group has ended: then the group may terminate the machine.
func (m *Member) drain(ctx context.Context) error {
	m.terminating.Store(true)
	err := m.opts.Drain(ctx)
	select {
	case <-m.released:
	case <-ctx.Done():
	}
	return err
}

// Leave lets the group go on, where it waits, and takes the protection away. ctx bounds it.
// It is to be called when everything else has ended.
func (m *Member) Leave(ctx context.Context) {
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

// Looked is closed after the first attempt to find out which instance this is.
func (m *Member) Looked() <-chan struct{} { return m.looked }

// Count returns how many instances share the queue: those in service in the
// group, or this one.
func (m *Member) Count(ctx context.Context) (int, error) {
	m.mu.Lock()
	group, known, why := m.group, m.known, m.why
	m.mu.Unlock()
	switch {
	case group != nil:
		s, err := group.Describe(ctx)
		return s.InService(), err
	case known:
		return 1, nil
	}
	return 0, why
}

// Problem says why this instance is not a member of a group; "" where it is, or where
// that is not known yet.
func (m *Member) Problem() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		return ""
	}
	return m.why.Error()
}
