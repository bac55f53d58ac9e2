package tasks

import (
	"context"
	"sync/atomic"

	"tendril/api"
	"tendril/internal/cron/leader"
)

// Election is the part of this instance in the election of the leader. There is one elector for
// everything that only the leader does.
type Election struct {
	registry *finder
	// localTerm is the term of a declared only instance. It differs after a restart, so that a run that an earlier
	// process announced and did not settle is another's: sending it again takes a second try.
	localTerm int64
	opts      leader.Options
	elector   atomic.Pointer[leader.Elector] // nil while there is nothing to agree in
	made      chan struct{}                  // closed when elector is there
	joined    atomic.Bool                    // also without tasks
}

// join makes the elector, unless this is the only instance. It is called by one goroutine at a time.
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

// run lets the elector run, as soon as there is one, until ctx is done.
func (e *Election) run(ctx context.Context) {
	select {
	case <-e.made:
		e.elector.Load().Run(ctx)
	case <-ctx.Done():
	}
}

// Join takes part in the election also without tasks, for others that only the leader may do.
// elected is false where there is nothing to agree in. It is called before the tasks start.
func (e *Election) Join(ctx context.Context) (elected bool, err error) {
	e.joined.Store(true)
	err = e.rejoin(ctx)
	return e.registry.opts.Local || e.elector.Load() != nil || e.registry.undecided.Load(), err
}

// rejoin looks for the registry, and takes part when that was asked for and there is one.
func (e *Election) rejoin(ctx context.Context) error {
	reg, err := e.registry.open(ctx)
	if err == nil && reg != nil && e.joined.Load() {
		err = e.join(reg)
	}
	return err
}

// IsLeader reports whether this instance may do what only one may do: it is elected, or there
// is nothing to agree in. While that is not known it may not.
func (e *Election) IsLeader() bool {
	if _, leads := e.Term(); leads || e.elector.Load() != nil {
		return leads
	}
	return !e.registry.undecided.Load() && e.registry.found.Load() == nil
}

// Status returns who leads.
func (e *Election) Status() api.Leader {
	l := e.elector.Load()
	if l == nil {
		return api.Leader{Leading: true, Local: true}
	}
	s := l.Status()
	out := api.Leader{Leading: s.Term > 0, Term: max(s.Term, s.LeaderTerm), Holder: s.Leader,
		AgeSeconds: s.Age.Seconds(), Console: s.LeaderData}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out
}
