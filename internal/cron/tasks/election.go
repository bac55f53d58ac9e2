package tasks

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/cron/leader"
)

// Election is this instance's part in the leader election.
type Election struct {
	registry *registryFinder
	// localTerm is the term of an only instance. It differs after each restart, so that an unsettled run of the
	// previous process counts as another leader's.
	localTerm int64
	opts      leader.Options
	elector   atomic.Pointer[leader.Elector] // nil if not in an election
	made      chan struct{}                  // closed when elector is set
	joined    atomic.Bool
}

// join is not safe for concurrent use.
func (e *Election) join(reg *sharedRegistry) error {
	if e.registry.opts.Local || e.elector.Load() != nil {
		return nil
	}
	l, err := leader.New(reg.leases, e.opts)
	if err != nil {
		return err
	}
	e.elector.Store(l)
	close(e.made)
	return nil
}

// Term implements [periodic.Leadership].
func (e *Election) Term() (int64, bool) {
	if l := e.elector.Load(); l != nil {
		return l.Term()
	}
	return e.localTerm, e.registry.opts.Local
}

// Changed implements [periodic.Leadership].
func (e *Election) Changed() <-chan struct{} {
	if l := e.elector.Load(); l != nil {
		return l.Changed()
	}
	return nil
}

func (e *Election) run(ctx context.Context) {
	select {
	case <-e.made:
		e.elector.Load().Run(ctx)
	case <-ctx.Done():
	}
}

// Join takes part in the election even without tasks. It must be called before the tasks start. elected is false if
// there is certainly no registry.
func (e *Election) Join(ctx context.Context) (elected bool, err error) {
	e.joined.Store(true)
	err = e.rejoin(ctx)
	return e.registry.opts.Local || e.elector.Load() != nil || e.registry.undecided.Load(), err
}

func (e *Election) rejoin(ctx context.Context) error {
	reg, err := e.registry.open(ctx)
	if err == nil && reg != nil && e.joined.Load() {
		err = e.join(reg)
	}
	return err
}

// Name returns the name of the leader's lease.
func (e *Election) Name() string { return e.registry.leaseName() }

// Leases returns the leases in the shared registry, or nil. decided is false until the registry's server has responded.
// The error is the reason if it refused this instance. Leases waits for a table that is being checked or created.
func (e *Election) Leases(ctx context.Context) (leases leader.Store, decided bool, err error) {
	if e.registry.opts.Local {
		return nil, true, nil
	}
	reg, err := e.registry.open(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case reg == nil && e.registry.undecided.Load():
		return nil, false, e.registry.refused()
	case reg == nil:
		return nil, true, nil
	case reg.checked != nil:
		select {
		case <-reg.checked:
		case <-ctx.Done():
			return nil, false, fmt.Errorf("table %s is still being checked or created: %w", e.registry.opts.Table, ctx.Err())
		}
	}
	return reg.leases, true, nil
}

// IsLeader reports whether this instance is the leader, or certainly has no registry.
func (e *Election) IsLeader() bool {
	if _, leads := e.Term(); leads || e.elector.Load() != nil {
		return leads
	}
	return !e.registry.undecided.Load() && e.registry.found.Load() == nil
}

// Revision returns the leader's latest [Options.Revision]; 0 without a leader.
func (e *Election) Revision() int64 { return e.state().LeaderRevision }

// Announcement returns the leader's latest [Options.Announce]; "" without a leader.
func (e *Election) Announcement() string { return e.state().LeaderAnnounces }

// Failing returns how long calls to the registry have been failing.
func (e *Election) Failing() time.Duration { return e.state().Failing }

func (e *Election) state() (s leader.Status) {
	if l := e.elector.Load(); l != nil {
		s = l.Status()
	}
	return s
}

// Status returns the state of the election.
func (e *Election) Status() api.Leader {
	if e.elector.Load() == nil {
		return api.Leader{Leading: true, Local: true}
	}
	s := e.state()
	out := api.Leader{Leading: s.Term > 0, Term: max(s.Term, s.LeaderTerm), Holder: s.Leader,
		AgeSeconds: s.Age.Seconds(), Console: s.LeaderData}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out
}
