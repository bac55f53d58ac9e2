package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tendril/broker"
	"tendril/internal/instances"
)

type operation struct {
	Kind operationKind `json:"kind"`
	At   time.Duration `json:"at"`
	// On is the daemon that rejects the settings or does not start the version.
	Daemon int `json:"daemon"`
	On     int `json:"on,omitempty"`
	// Batch is the number of daemons that change at once; 0 means all.
	Batch int `json:"batch,omitempty"`
}

type operationKind string

const (
	pauseQueue        operationKind = "pause"
	resumeQueue       operationKind = "resume"
	setSettings       operationKind = "settings"
	setRejected       operationKind = "settings that one daemon rejects"
	setUnhealthy      operationKind = "unhealthy settings"
	deployGood        operationKind = "deploy"
	deployBroken      operationKind = "deploy broken"
	deployBrokenOnOne operationKind = "deploy partly broken"
	deployUnhealthy   operationKind = "deploy unhealthy"
	rollBack          operationKind = "roll back"
	abortDeployment   operationKind = "abort"
)

// Kinds that need a finished or running deployment occur several times, because they would otherwise be rare.
var operationKinds = []operationKind{pauseQueue, resumeQueue, setSettings, setRejected, setRejected, setUnhealthy, deployGood,
	deployGood, deployGood, deployGood, deployBroken, deployBrokenOnOne, deployUnhealthy, rollBack, rollBack, rollBack, abortDeployment,
	abortDeployment}

const (
	// Source: docs/fleet.md.
	followWithin   = 30 * time.Second
	rolloutTimeout = 2 * time.Minute
	settleWithin   = 20 * time.Minute
	joinWithin     = 25 * time.Second
)

func drawOperations(r *rand.Rand, p *plan, n int) (all []operation) {
	for len(all) < n {
		at := time.Duration(r.Int64N(int64(p.Length) * 9 / 10)).Truncate(time.Millisecond)
		near := seconds([]int{3, 40}[r.IntN(2)])
		for range 1 + r.IntN(3) {
			op := operation{Kind: operationKinds[r.IntN(len(operationKinds))], At: at, Daemon: r.IntN(p.Daemons), On: r.IntN(p.Daemons),
				Batch: r.IntN(p.Daemons)}
			if (op.Kind == setRejected || op.Kind == setUnhealthy) && p.Daemons == 1 {
				op.Kind = setSettings // the operator's own daemon checks the settings first
			}
			if op.Kind == setUnhealthy {
				op.Batch = max(op.Batch, 1) // otherwise, the health would not be examined
			}
			all = append(all, op)
			at += time.Duration(r.Int64N(int64(near))).Truncate(time.Millisecond)
		}
	}
	slices.SortStableFunc(all, func(a, b operation) int { return int(a.At - b.At) })
	return all
}

func (w *world) operate() {
	for i := range w.plan.Operations {
		op := &w.plan.Operations[i]
		sleep(context.Background(), op.At-w.now())
		l := w.daemons[op.Daemon].running()
		if l == nil || !w.change(l.fleet, op, i) {
			continue
		}
		isLast := i == len(w.plan.Operations)-1 || w.plan.Operations[i+1].At-w.now() > time.Minute
		if len(w.plan.Faults) == 0 && isLast {
			w.awaitFollowers()
			w.awaitSettled()
		}
	}
}

func (w *world) change(by *follower, op *operation, i int) bool {
	ctx, cancel := context.WithTimeout(by.killed, 5*time.Second)
	defer cancel()
	select {
	case <-by.adopted:
	case <-ctx.Done():
		return false
	}
	others, err := by.others.ReadOnce(ctx, 2*time.Second)
	if err != nil {
		return false
	}
	copied := *op
	now, err := by.state.Change(ctx, by.way, func(d *instances.Desired) error {
		return w.alter(d, &copied, i, d.Settings.AppliedBy(append(others, instances.Instance{Record: by.record()})))
	})
	w.note("daemon %d changes the desired state, %s %d: revision %d, %v", by.index, op.Kind, i, now.Revision, err)
	if err != nil || by.killed.Err() != nil {
		return false
	}
	w.oracle.confirmed(now.Revision, op.Kind)
	by.apply()
	return true
}

func (w *world) alter(d *instances.Desired, op *operation, i int, settled bool) (err error) {
	how := instances.Rollout{BatchSize: op.Batch, Timeout: rolloutTimeout}
	if w.bug == bugNoBatches || w.bug == bugSettingsAtOnce {
		how.BatchSize = 0
	}
	begin := func(v instances.AppVersion) error {
		if v, err = d.BeginRollout(v, how); err == nil {
			w.oracle.began(versionName(v.Number), op.Batch)
		}
		return err
	}
	set := func(text string) {
		if op.Batch == 0 {
			d.SetSettings(text, "operator", settled)
			return
		}
		d.RollOutSettings(text, "operator", settled, how)
		w.oracle.began(settingsName(d.Revision), op.Batch)
	}
	switch op.Kind {
	case pauseQueue:
		d.Pauses = map[string]instances.Pause{workQueue: {Reason: "incident", At: time.Now()}}
	case resumeQueue:
		d.Pauses = nil
	case setSettings:
		set(fmt.Sprintf("settings %d", i))
	case setRejected:
		set(fmt.Sprintf("settings %d, not on %d", i, op.On))
	case setUnhealthy:
		set(fmt.Sprintf("%s %d", setUnhealthy, i))
	case rollBack:
		if d.App == nil || len(d.App.Restorable()) == 0 {
			return instances.ErrNoRollout
		}
		v := d.App.Restorable()[0]
		v.Of, v.Withdrawn = v.Number, false
		op.Batch, how.BatchSize = 0, 0
		return begin(v)
	case abortDeployment:
		return d.AbortRollout("aborted")
	default:
		if d.App == nil {
			return instances.ErrNoRollout
		}
		name := fmt.Sprintf("%s %d on %d", op.Kind, i, op.On)
		return begin(instances.AppVersion{Name: name, Digest: name})
	}
	return nil
}

func versionName(number int) string      { return fmt.Sprintf("version %d", number) }
func settingsName(revision int64) string { return fmt.Sprintf("the settings of revision %d", revision) }

func fetchNothing(context.Context, *broker.Broker) error { return nil }

func (w *world) settleFleet() {
	w.awaitSettled()
	for i, op := range []operation{{Kind: resumeQueue}, {Kind: setSettings}} {
		changed := func() bool {
			return slices.ContainsFunc(w.daemons, func(d *daemon) bool {
				return w.change(d.running().fleet, &op, len(w.plan.Operations)+i)
			})
		}
		for began := time.Now(); !changed(); sleep(context.Background(), time.Second) {
			if time.Since(began) > 2*time.Minute {
				w.oracle.violated("the desired state cannot be changed after the healing")
				return
			}
		}
	}
	w.awaitFollowers()
	w.awaitSettled()
}

func (w *world) awaitFollowers() {
	want := w.oracle.revision()
	took := w.await(followWithin, func(f *follower) string {
		if now, _ := f.state.Current(); now.Revision < want {
			return fmt.Sprintf("has not applied revision %d", want)
		}
		return ""
	})
	w.oracle.converged(took)
}

func (w *world) awaitSettled() {
	w.await(settleWithin, func(f *follower) string {
		now, _ := f.state.Current()
		switch running := int(f.version.Load()); {
		case now.App == nil:
			return "knows no version"
		case now.App.Next != nil:
			return fmt.Sprintf("still takes part in the rollout of version %d", now.App.Next.Number)
		case running != now.App.Current.Number && !f.breaks(&now.App.Current):
			return fmt.Sprintf("runs version %d, the current one is %d", running, now.App.Current.Number)
		case now.Settings.Rollout != nil:
			return fmt.Sprintf("still takes part in the rollout of the settings %q", now.Settings.Text)
		case f.inForce.Load() != now.Settings.Text && !f.keeps(&now.Settings):
			return fmt.Sprintf("has the settings %q in force, not %q", f.inForce.Load(), now.Settings.Text)
		}
		return ""
	})
	for _, f := range w.started() {
		now, _ := f.state.Current()
		w.oracle.isGood(now.App)
		if strings.HasPrefix(now.Settings.Text, string(setUnhealthy)) {
			w.oracle.violated("the settings %q are the current ones", now.Settings.Text)
		}
	}
}

func (w *world) started() (all []*follower) {
	for _, d := range w.daemons {
		if l := d.running(); l != nil && isClosed(l.fleet.adopted) {
			all = append(all, l.fleet)
		}
	}
	return all
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (w *world) await(limit time.Duration, lacks func(*follower) string) time.Duration {
	for began := time.Now(); ; sleep(context.Background(), 100*time.Millisecond) {
		missing := ""
		for _, f := range w.started() {
			if text := lacks(f); text != "" {
				missing = fmt.Sprintf("daemon %d %s", f.index, text)
			}
		}
		took := time.Since(began)
		if missing == "" {
			return took
		}
		if took > limit {
			w.oracle.violated("%s within %v", missing, limit)
			return took
		}
	}
}

func (w *world) finished(before, now *instances.App) {
	v := before.Next
	w.note("the rollout of version %d is finished, the current one is version %d", v.Number, now.Current.Number)
	w.oracle.ended(now, v)
	if now.Current.Number != v.Number || w.disturbed(time.Now().Add(-instances.FreshFor-time.Minute)) {
		return
	}
	for _, d := range w.daemons {
		l := d.running()
		if l == nil {
			continue
		}
		f := l.fleet
		f.fleetMu.Lock()
		joined := f.joined
		f.fleetMu.Unlock()
		if running := int(f.version.Load()); !joined.IsZero() && time.Since(joined) > joinWithin && running != v.Number {
			w.oracle.violated("the rollout of version %d is finished, and daemon %d runs version %d", v.Number, d.index, running)
		}
	}
}

func (w *world) disturbed(since time.Time) bool {
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		hides := slices.Contains(onNetwork, f.Kind) ||
			slices.Contains([]kind{pauseDaemon, powerFailure, failDisk, fillDisk}, f.Kind)
		if ends := w.began.Add(f.At + f.For); hides && f.At <= w.now() && ends.After(since) {
			return true
		}
	}
	return false
}

func (o *oracle) confirmed(revision int64, kind operationKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.operations[kind]++
	if revision <= o.desired {
		o.violate("revision %d is confirmed after revision %d", revision, o.desired)
	}
	o.desired = max(o.desired, revision)
}

func (o *oracle) revision() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.desired
}

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

type rollout struct {
	began     time.Time
	batch     int
	switching map[*follower]bool
}

// began records the rollout before the write, which may be repeated or lose its confirmation.
func (o *oracle) began(what string, batch int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rollouts[what] = &rollout{began: time.Now(), batch: batch, switching: map[*follower]bool{}}
}

// At most one batch may switch at once. Daemons that started during the rollout belong to no batch, and a leader does
// not wait for an unreachable daemon. isRollout is false for a return to the previous state.
func (o *oracle) switching(f *follower, what string, isRollout bool) {
	o.w.note("daemon %d switches to %s", f.index, what)
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.rollouts[what]
	if r == nil || !isRollout || f.startedAt.After(r.began.Add(-joinWithin)) {
		return
	}
	r.switching[f] = true
	if n := len(r.switching); r.batch > 0 && n > r.batch && !o.w.disturbed(r.began.Add(-instances.FreshFor)) {
		o.violate("%d daemons are switching to %s at once, %d are allowed", n, what, r.batch)
	}
}

func (o *oracle) switched(f *follower, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.rollouts[what]; r != nil {
		delete(r.switching, f)
	}
}

func (o *oracle) ended(now *instances.App, v *instances.AppVersion) {
	o.mu.Lock()
	if now.Current.Number == v.Number {
		o.figures.Finished++
	} else {
		o.figures.RolledBack++
	}
	o.mu.Unlock()
	o.isGood(now)
}

func (o *oracle) isGood(app *instances.App) {
	if app == nil {
		return
	}
	for _, bad := range []operationKind{deployBroken, deployUnhealthy} {
		if strings.HasPrefix(app.Current.Digest, string(bad)) {
			o.violated("version %d, %s, is the current one", app.Current.Number, app.Current.Digest)
		}
	}
}
