package simulation

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"tendril/internal/instances"
)

const (
	fleetKey = instances.FleetKey("a fleet key")
	// followWithin is how long an instance may take to apply a change while nothing is faulty, according to docs/fleet.md.
	followWithin = 30 * time.Second
)

// follower is a daemon's life as an instance of a fleet: it applies the desired state to its worker.
type follower struct {
	*life
	way      *link
	state    *instances.DesiredState
	pausedAt atomic.Pointer[time.Time] // nil while its queue is not paused
}

// startFollower returns a follower that has the state kept by the daemon's previous life.
func (l *life) startFollower(way *link) *follower {
	f := &follower{life: l, way: &link{w: l.w, daemon: l.index, life: l}}
	l.mu.Lock()
	kept := l.kept
	l.mu.Unlock()
	var err error
	f.state, err = instances.NewDesired(way.w.queueName(workQueue), fleetKey, kept, f.keep)
	if err != nil {
		l.w.t.Fatal(err)
	}
	return f
}

// keep stores a state on the daemon's disk, unless the process was killed.
func (f *follower) keep(text string) error {
	if f.killed.Err() != nil {
		return errKilled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = text
	return nil
}

// adopt applies the registry's state, or the kept one if the registry does not answer in time.
func (f *follower) adopt() {
	ctx, cancel := context.WithTimeout(f.killed, 5*time.Second)
	defer cancel()
	_, _ = f.state.Refresh(ctx, f.way)
	f.apply()
}

// follow applies changes until ctx ends.
func (f *follower) follow(ctx context.Context) {
	f.state.Follow(ctx, instances.Following{Store: f.way, Apply: f.apply, Failed: func(error) {},
		Leads:    func() bool { _, leads := f.elector.Term(); return leads },
		Revision: func() int64 { return f.elector.Status().LeaderRevision }})
}

// revision is what the leader's lease announces.
func (f *follower) revision() int64 {
	if f == nil || f.w.bug == bugSilentLeader {
		return 0
	}
	now, _ := f.state.Current()
	return now.Revision
}

func (f *follower) apply() {
	now, _ := f.state.Current()
	f.w.oracle.applied(f, now.Revision)
	if _, paused := now.Pauses[workQueue]; !paused {
		f.pausedAt.Store(nil)
		f.worker.Resume()
		return
	}
	if f.pausedAt.Load() == nil {
		at := time.Now()
		f.pausedAt.Store(&at)
		f.w.oracle.chargeHeld(f.life) // the worker releases what it has not posted
	}
	if f.w.bug != bugIgnorePause {
		f.worker.Pause("paused on all instances")
	}
}

// paused reports whether the queue was paused before now.
func (f *follower) paused() bool {
	if f == nil {
		return false
	}
	at := f.pausedAt.Load()
	return at != nil && time.Since(*at) > 0
}

// operate makes the plan's changes, alternately a pause and a resumption, each on a daemon drawn for it.
func (w *world) operate() {
	times := make([]time.Duration, w.plan.Changes)
	for i := range times {
		times[i] = time.Duration(w.plan.roll("change", i) * 0.9 * float64(w.plan.Length)).Truncate(time.Millisecond)
	}
	slices.Sort(times)
	for i, at := range times {
		sleep(context.Background(), at-w.now())
		d := w.daemons[int(w.plan.roll("operator", i)*float64(len(w.daemons)))]
		if l := d.running(); l != nil && w.change(l.fleet, i%2 == 0) && len(w.plan.Faults) == 0 {
			w.awaitFollowers()
		}
	}
}

// change pauses or resumes the queue on all daemons, and reports whether the change was confirmed.
func (w *world) change(by *follower, pause bool) bool {
	ctx, cancel := context.WithTimeout(by.killed, 5*time.Second)
	defer cancel()
	now, err := by.state.Change(ctx, by.way, func(d *instances.Desired) error {
		delete(d.Pauses, workQueue)
		if pause {
			d.Pauses = map[string]instances.Pause{workQueue: {Reason: "incident", At: time.Now()}}
		}
		return nil
	})
	w.note("daemon %d changes the desired state, pause %t: revision %d, %v", by.index, pause, now.Revision, err)
	if err != nil || by.killed.Err() != nil {
		return false
	}
	w.oracle.confirmed(now.Revision)
	by.apply()
	return true
}

// resumeAll ends the last pause after all faults have ended, and waits for all daemons.
func (w *world) resumeAll() {
	for began := time.Now(); time.Since(began) < time.Minute; sleep(context.Background(), time.Second) {
		if w.change(w.daemons[0].running().fleet, false) {
			w.awaitFollowers()
			return
		}
	}
	w.oracle.violated("the desired state cannot be changed after the healing")
}

// awaitFollowers waits until all daemons have applied the last confirmed change.
func (w *world) awaitFollowers() {
	want, began := w.oracle.revision(), time.Now()
	for ; ; sleep(context.Background(), 100*time.Millisecond) {
		behind := slices.DeleteFunc(slices.Clone(w.daemons), func(d *daemon) bool {
			l := d.running()
			if l == nil {
				return true
			}
			now, _ := l.fleet.state.Current()
			return now.Revision >= want
		})
		took := time.Since(began)
		switch {
		case len(behind) == 0:
			w.oracle.converged(took)
			return
		case took > followWithin:
			w.oracle.violated("daemon %d has not applied revision %d within %v", behind[0].index, want, followWithin)
			return
		}
	}
}

// confirmed records a change that its operator knows to be stored.
func (o *oracle) confirmed(revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.Changes++
	if revision <= o.desired {
		o.violate("revision %d is confirmed after revision %d", revision, o.desired)
	}
	o.desired = max(o.desired, revision)
}

// revision returns the last confirmed revision.
func (o *oracle) revision() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.desired
}

// applied checks that no daemon returns to an older state, not even in its next life.
func (o *oracle) applied(f *follower, revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.killed.Err() != nil {
		return
	}
	if before := o.followed[f.daemon]; revision < before {
		o.violate("daemon %d applies revision %d after revision %d", f.index, revision, before)
	}
	o.followed[f.daemon] = revision
}

func (o *oracle) converged(took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.Slowest = max(o.figures.Slowest, took)
}
