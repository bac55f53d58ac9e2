package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/autoscale"
	"tendril/aws"
	"tendril/config"
	"tendril/queue"
)

const (
	// lookAgain is the time between two attempts to find out which member of
	// which group this instance is.
	lookAgain = time.Minute
	// metadataTries is how often the metadata are asked for who this is. Outside
	// of EC2 they never answer.
	metadataTries = 3
)

// membership is this instance as a member of a group.
type membership struct {
	f *fleet
	// looked is closed after the first attempt to find out.
	looked chan struct{}
	// keep ends protection and the watch for the departure; letGo is closed when
	// everything else has ended.
	keep    context.Context
	endKeep context.CancelFunc
	letGo   chan struct{}
	// departing tells that the group takes this instance away; departed is closed
	// when it was told to go on.
	departing atomic.Bool
	departed  chan struct{}
	all       sync.WaitGroup

	mu sync.Mutex
	// group is the one found; nil for none, or while it is not known.
	group *aws.Group
	// why says why the group, or this instance in it, is not known; known that
	// there is nothing more to find out.
	why   error
	known bool
}

func (m *membership) open(f *fleet) {
	m.f, m.looked, m.letGo, m.departed = f, make(chan struct{}), make(chan struct{}), make(chan struct{})
	m.keep, m.endKeep = context.WithCancel(context.Background())
}

// run finds out, in the background, who this instance is, and then keeps it.
func (m *membership) run() {
	m.all.Go(func() {
		looked := sync.OnceFunc(func() { close(m.looked) })
		defer looked()
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for try := 1; ; try++ {
			self, err := m.find(m.keep, try)
			if m.keep.Err() != nil {
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
			case <-m.keep.Done():
				return
			}
		}
	})
}

// member is what was found out; the zero value is an instance of no group.
type member struct {
	id    string
	group *aws.Group
	hook  string // "" for none
}

// stranger is a reason to look no further.
type stranger struct{ error }

// Unwrap returns the reason.
func (s stranger) Unwrap() error { return s.error }

// find asks the metadata and the group. A [stranger] is an instance of none.
func (m *membership) find(ctx context.Context, try int) (member, error) {
	instance, err := aws.NewInstance("")
	if err != nil {
		return member{}, stranger{err}
	}
	id, err := instance.ID(ctx)
	if err != nil {
		if try >= metadataTries || errors.Is(err, queue.ErrDenied) {
			err = stranger{err}
		}
		return member{}, err
	}
	self := member{id: id, group: m.f.group}
	if self.group == nil {
		name, err := m.f.scaling.GroupOf(ctx, id)
		if err != nil {
			return self, final(err)
		}
		self.group = m.f.scaling.Group(name)
	}
	state, err := self.group.Describe(ctx)
	if err != nil {
		return self, err // a group that is made later is found later
	}
	if !slices.ContainsFunc(state.Instances, func(i aws.GroupInstance) bool { return i.ID == id }) {
		return self, stranger{fmt.Errorf("instance %s is none of the group %s", id, self.group.Name())}
	}
	self.hook, _, err = self.group.TerminationHook(ctx)
	return self, err
}

// final makes a stranger of an instance that is in no group.
func final(err error) error {
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return stranger{err}
	}
	return err
}

// learn keeps what was found out, and tells what is missing when it is news.
func (m *membership) learn(self member, err error) {
	m.mu.Lock()
	before := m.why
	m.why = err
	if err == nil {
		m.group, m.known = self.group, true
	}
	m.known = m.known || errors.As(err, &stranger{})
	m.mu.Unlock()
	note := func(level slog.Level, text string) { m.f.e.report.note(level, "scale", text) }
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		note(slog.LevelWarn, fmt.Sprintf("this machine is known as no instance of a group: it is not kept from being taken away while it works, and does not notice when it is: %v", err))
	case err == nil && self.hook == "":
		note(slog.LevelWarn, fmt.Sprintf("the group %s has no lifecycle hook for autoscaling:EC2_INSTANCE_TERMINATING: an instance that is taken away has no more time to finish its work than its shutdown takes", self.group.Name()))
	}
}

func (m *membership) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// hold protects the instance while it works, and drains it when it is taken
// away.
func (m *membership) hold(self member) {
	if self.group == nil || m.problem() != "" {
		return
	}
	e, one, pace := m.f.e, self.group.Member(self.id), m.f.pace
	protector := &autoscale.Protector{
		Guard: one, Work: e.hand.work, Protection: autoscale.Protection{After: pace.protectAfter}, Interval: pace.look, Events: e.scaleEvents("instance", "instances"),
	}
	if e.s.ScaleInProtection != config.ProtectionOff {
		m.all.Go(func() { protector.Run(m.keep) })
	}
	if self.hook == "" {
		return
	}
	instance, err := aws.NewInstance("")
	if err != nil {
		return // it was made once before
	}
	departure := &autoscale.Departure{Exit: instance, Hook: one.Hook(self.hook), Drain: m.drain, Poll: pace.poll, Events: e.scaleEvents("instance", "instances")}
	m.all.Go(func() { departure.Run(m.keep); close(m.departed) })
}

// drain ends this environment, and returns when everything but the way to the
// group has ended: then the group may take the machine.
func (m *membership) drain(ctx context.Context) error {
	m.departing.Store(true)
	err := m.f.e.Drain(ctx)
	select {
	case <-m.letGo:
	case <-ctx.Done():
	}
	return err
}

// leave lets the group go on, where it waits, and takes the protection away.
func (m *membership) leave(ctx context.Context) {
	close(m.letGo)
	if m.departing.Load() {
		select {
		case <-m.departed:
		case <-ctx.Done():
		}
	}
	m.endKeep()
	m.all.Wait()
}

// count returns how many instances share the queue: those in service in the
// group, or this one.
func (m *membership) count(ctx context.Context) (int, error) {
	m.mu.Lock()
	group, known, why := m.group, m.known, m.why
	m.mu.Unlock()
	switch {
	case group != nil:
		n, _, err := group.Size(ctx)
		return n, err
	case known:
		return 1, nil
	}
	return 0, why
}

// problem says why this instance is no full member; "" where it is, or where
// that is not known yet.
func (m *membership) problem() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		return ""
	}
	return m.why.Error()
}
