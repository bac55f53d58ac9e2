package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/instances"
)

const fleetKey = instances.FleetKey("a fleet key")

const (
	byOperator = iota
	byRollout
	pauseSources
)

type follower struct {
	*life
	way      *link
	id       string
	state    *instances.DesiredState
	rollouts *instances.Rollouts
	settings instances.SettingsFollower
	member   *instances.Member
	others   *instances.Watcher

	adopted  chan struct{}
	version  atomic.Int64
	digest   atomic.Value
	inForce  atomic.Value
	pausedAt atomic.Pointer[time.Time]
	applying sync.Mutex

	pausing sync.Mutex
	reasons [pauseSources]string

	fleetMu   sync.Mutex
	withdrawn map[int]time.Time  // when the daemon learned of the withdrawal, by version
	abort     context.CancelFunc // nil if the deployment cannot be aborted
	joined    time.Time
}

func (l *life) startFollower(way *link) *follower {
	w := l.w
	f := &follower{life: l, way: &link{w: w, daemon: l.index, life: l}, adopted: make(chan struct{})}
	f.digest.Store("")
	f.inForce.Store("")
	l.mu.Lock()
	kept := l.kept
	l.mu.Unlock()
	if w.bug == bugForgetState {
		kept = ""
	}
	var err error
	f.state, err = instances.NewDesired(way.w.queueName(workQueue), fleetKey, kept, f.keep)
	if err != nil {
		w.t.Fatal(err)
	}
	f.id = fmt.Sprintf("%08x", int(w.plan.roll("id", l.index, l.number)*(1<<32)))
	opts := instances.Options{Store: f.way, Environment: w.queueName(workQueue), Key: fleetKey, ID: f.id, Random: l.random,
		Log: slog.New(slog.DiscardHandler)}
	f.member = instances.NewMember(opts, f.record, func() instances.Load { return instances.Load{} })
	f.others = instances.NewWatcher(opts)
	f.rollouts = instances.NewRollouts(f.state, f)
	f.settings = instances.SettingsFollower{State: f.state, Name: l.name(), Apply: f.applySettings, Changed: f.apply,
		Failed: func(error) {}, Due: make(chan struct{}, 1)}
	return f
}

func (f *follower) keep(text string) error {
	if f.killed.Err() != nil {
		return errKilled
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = text
	return nil
}

// adopt applies the desired state, or the stored one if the registry does not respond in time. The first daemon stores
// its app as the first version. While the settings contradict its own, a daemon does not start.
func (f *follower) adopt(ctx context.Context) {
	defer close(f.adopted)
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = f.state.Refresh(limited, f.way)
	now, _ := f.state.Current()
	for f.rejects(now.Settings.For("").Text) && sleep(ctx, 5*time.Second) {
		_, _ = f.state.Refresh(ctx, f.way)
		now, _ = f.state.Current()
	}
	if now.App == nil {
		now, _ = f.state.Change(limited, f.way, func(d *instances.Desired) (err error) {
			if d.App == nil {
				_, err = d.BeginRollout(instances.AppVersion{Name: "first", Digest: "first"}, instances.Rollout{})
			}
			return err
		})
	}
	if now.App != nil {
		wanted := now.App.Wanted("")
		f.run(&wanted)
	} else {
		f.rollouts.HoldUntilKnown()
	}
	settings := now.Settings.For("")
	f.inForce.Store(settings.Text)
	f.settings.Started(settings.Revision)
	f.apply()
}

func (f *follower) isAdopted(ctx context.Context) bool {
	if f == nil {
		return true
	}
	select {
	case <-f.adopted:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (f *follower) follow(ctx context.Context) {
	leads := func() bool { _, leads := f.elector.Term(); return leads }
	healthy := func(r *instances.Record) bool { return r.Health == "Ok" || f.w.bug == bugBlindLeader }
	var parts sync.WaitGroup
	parts.Go(func() { f.member.Run(ctx) })
	parts.Go(func() { f.others.Run(ctx, leads) })
	fleet := &instances.Fleet{Store: f.way, ID: f.id, Self: f.record, Others: f.others, Leads: leads, Healthy: healthy}
	parts.Go(func() { f.settings.Run(ctx, fleet) })
	parts.Go(func() {
		f.rollouts.Run(ctx, &instances.RolloutOptions{Fleet: fleet, Active: func() bool { return ctx.Err() == nil }, Changed: f.apply,
			Begun: func(context.Context, *instances.App) {}, Finished: f.w.finished, Tried: func() {}, Log: slog.New(slog.DiscardHandler)})
	})
	f.state.Follow(ctx, instances.Following{Store: f.way, Apply: f.apply, Failed: func(error) {}, Leads: leads,
		Revision: func() int64 { return f.elector.Status().LeaderRevision }})
	parts.Wait()
	leaving, cancel := context.WithTimeout(f.killed, 3*time.Second)
	defer cancel()
	_ = f.member.Leave(leaving)
}

func (f *follower) revision() int64 {
	if f == nil || f.w.bug == bugSilentLeader {
		return 0
	}
	now, _ := f.state.Current()
	return now.Revision
}

func (f *follower) record() instances.Record {
	now, _ := f.state.Current()
	progress := f.settings.Progress()
	r := instances.Record{Name: f.name(), State: "running", Health: "Ok", Follows: true, Revision: now.Revision,
		Applies:          []string{instances.PartSettings, instances.PartApp},
		SettingsRevision: max(progress.Applied, progress.Rejected), Rejected: progress.Reason, App: f.rollouts.Report()}
	if strings.HasPrefix(f.digest.Load().(string), string(deployUnhealthy)) ||
		strings.HasPrefix(f.inForce.Load().(string), string(setUnhealthy)) {
		r.Health = "Severe"
	}
	if f.w.bug == bugReportEarly && now.App != nil {
		r.App = instances.AppReport{Takes: true, Number: now.App.Wanted(f.id).Number}
	}
	f.fleetMu.Lock()
	defer f.fleetMu.Unlock()
	if f.joined.IsZero() {
		f.joined = time.Now()
	}
	return r
}

func (f *follower) apply() {
	f.applying.Lock()
	defer f.applying.Unlock()
	now, _ := f.state.Current()
	f.w.oracle.applied(f, now.Revision)
	f.learn(now.App)
	pause, paused := now.Pauses[workQueue]
	if paused {
		pause.Reason = cmp.Or(pause.Reason, "paused on all instances")
	}
	f.setPause(byOperator, pause.Reason)
	f.settings.Notify()
	f.rollouts.Apply()
}

func (f *follower) learn(app *instances.App) {
	f.fleetMu.Lock()
	defer f.fleetMu.Unlock()
	before := f.withdrawn
	f.withdrawn = map[int]time.Time{}
	if app == nil {
		return
	}
	for _, v := range append([]instances.AppVersion{app.Current}, app.Earlier...) {
		if at, known := before[v.Number]; known && v.Withdrawn {
			f.withdrawn[v.Number] = at
		} else if v.Withdrawn {
			f.withdrawn[v.Number] = time.Now()
		}
	}
}

func (f *follower) runsWithdrawn() (version int, withdrawn bool) {
	if f == nil {
		return 0, false
	}
	version = int(f.version.Load())
	f.fleetMu.Lock()
	defer f.fleetMu.Unlock()
	at, known := f.withdrawn[version]
	return version, known && time.Since(at) > 0
}

func (f *follower) setPause(source int, reason string) {
	f.pausing.Lock()
	defer f.pausing.Unlock()
	f.reasons[source] = reason
	effective := cmp.Or(f.reasons[:]...)
	switch {
	case effective == "":
		f.pausedAt.Store(nil)
		f.worker.Resume()
		return
	case f.w.bug == bugServeWithdrawn && source == byRollout:
		return
	case f.pausedAt.Load() == nil:
		at := time.Now()
		f.pausedAt.Store(&at)
		f.w.oracle.chargeHeld(f.life)
	}
	if f.w.bug != bugIgnorePause {
		f.worker.Pause(effective)
	}
}

func (f *follower) paused() bool {
	if f == nil {
		return false
	}
	at := f.pausedAt.Load()
	return at != nil && time.Since(*at) > 0
}

func (f *follower) rejects(settings string) bool {
	return strings.HasSuffix(settings, fmt.Sprintf("not on %d", f.index))
}

// keeps reports whether the daemon rejects a rollback's settings. It may have been away when they were last in force
// (decision 0154).
func (f *follower) keeps(s *instances.Settings) bool { return s.RolledBack != "" && f.rejects(s.Text) }

// In a batch, the app's restart takes up to ten seconds.
func (f *follower) applySettings(ctx context.Context, s *instances.Settings) error {
	if s.Rollout != nil {
		f.w.oracle.switching(f, settingsName(s.Revision), true)
		defer f.w.oracle.switched(f, settingsName(s.Revision))
		sleep(ctx, time.Duration(f.w.plan.roll("restart", f.index, s.Revision)*10e9))
	}
	if !sleep(ctx, time.Duration(f.w.plan.roll("apply", f.index, s.Revision)*3e9)) || f.frozen() != nil {
		return instances.ErrNotApplied
	}
	if f.rejects(s.Text) {
		return errors.New("it contradicts the daemon's own settings")
	}
	if f.w.bug != bugKeepSettings || f.index == 0 {
		f.inForce.Store(s.Text)
	}
	f.w.note("daemon %d has applied the settings %q of revision %d", f.index, s.Text, s.Revision)
	return nil
}

func (f *follower) run(v *instances.AppVersion) {
	f.version.Store(int64(v.Number))
	f.digest.Store(v.Digest)
	f.w.note("daemon %d runs version %d, %s", f.index, v.Number, v.Digest)
}

func (f *follower) breaks(v *instances.AppVersion) bool {
	return strings.HasPrefix(v.Digest, string(deployBroken)) ||
		strings.HasPrefix(v.Digest, string(deployBrokenOnOne)) && strings.HasSuffix(v.Digest, fmt.Sprintf(" on %d", f.index))
}

func (f *follower) Running() int { return int(f.version.Load()) }

func (f *follower) Hold(reason string) { f.setPause(byRollout, reason) }

func (f *follower) Abort(context.Context) {
	f.fleetMu.Lock()
	defer f.fleetMu.Unlock()
	if f.abort != nil {
		f.abort()
	}
}

// In the last fifth of its time, after the switch, Deploy can no longer be aborted.
func (f *follower) Deploy(ctx context.Context, v *instances.AppVersion) error {
	if _, _, err := f.way.call(ctx, "fetch", true, fetchNothing); err != nil {
		return fmt.Errorf("%w: %w", instances.ErrDeployLater, err)
	}
	now, _ := f.state.Current()
	f.w.oracle.switching(f, versionName(v.Number), now.App.Next != nil && now.App.Next.Number == v.Number)
	defer f.w.oracle.switched(f, versionName(v.Number))

	abortable, abort := context.WithCancel(ctx)
	defer abort()
	f.setAbort(abort)
	takes := 2*time.Second + time.Duration(f.w.plan.roll("deploy", f.index, v.Number, f.w.now())*15e9)
	inTime := sleep(abortable, takes*4/5)
	f.setAbort(nil)
	switch {
	case !inTime || f.frozen() != nil:
		return instances.ErrDeployAborted
	case f.breaks(v):
		return errors.New("web exited")
	}
	f.run(v)
	sleep(ctx, takes/5)
	return nil
}

func (f *follower) setAbort(abort context.CancelFunc) {
	f.fleetMu.Lock()
	defer f.fleetMu.Unlock()
	f.abort = abort
}
