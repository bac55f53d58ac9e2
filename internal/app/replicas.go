package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

var errRolledBack = errors.New("the deployment was rolled back")

type launcher interface {
	// ctx limits only the start.
	launch(ctx context.Context, v version, r *replica) (processes, error)
	// helpers starts the processes without deliveries. It returns nil if there are none.
	helpers(ctx context.Context, v version) (processes, error)
}

type replicaOptions struct {
	readyTimeout func() time.Duration
	drainTimeout func() time.Duration
	stopTimeout  func() time.Duration
	hurry        context.Context // once done, stopping processes are killed
	log          *slog.Logger
	// These report the progress of a deployment. They are not called concurrently and must not change the set.
	starting, switching, switched func()
	restarted                     func() // instead of switched after a restart
	retired                       func(version)
}

type replicaSet struct {
	balancer *balancer
	launcher launcher
	opts     replicaOptions
	changes  *changeLock
	retiring sync.WaitGroup
	now      atomic.Pointer[serving]
}

// serving is an immutable snapshot, replaced only under the change lock.
type serving struct {
	version  version
	replicas []*replica // in start order
	helpers  processes
}

func newReplicaSet(b *balancer, l launcher, opts replicaOptions) *replicaSet {
	s := &replicaSet{balancer: b, launcher: l, opts: opts, changes: newChangeLock()}
	s.now.Store(&serving{})
	return s
}

// start does not wait until the replicas are ready. After an error, none is running.
func (s *replicaSet) start(ctx context.Context, v version, n int) error {
	ctx, end, err := s.changes.begin(ctx, toStart)
	if err != nil {
		return err
	}

	defer end()
	replicas, err := s.launchAll(ctx, v, n)
	var helpers processes
	if err == nil {
		helpers, err = s.launcher.helpers(ctx, v)
	}

	if err != nil {
		s.discard(replicas)
		return err
	}

	s.now.Store(&serving{v, replicas, helpers})
	s.balancer.replace(nil, replicas)
	return nil
}

func (s *replicaSet) current() version { return s.now.Load().version }

func (s *replicaSet) size() int { return len(s.now.Load().replicas) }

func (s *replicaSet) status() (replicas, helpers []supervisor.Status) {
	now := s.now.Load()
	for _, r := range now.replicas {
		replicas = append(replicas, r.processes.Status()...)
	}
	if now.helpers != nil {
		helpers = now.helpers.Status()
	}
	return replicas, helpers
}

func (s *replicaSet) launchAll(ctx context.Context, v version, n int) (replicas []*replica, err error) {
	for len(replicas) < n && ctx.Err() == nil {
		// Stop the earlier replicas concurrently, because a canceled launch may take its full grace period.
		discarded := make(chan struct{})
		before := replicas
		stop := context.AfterFunc(ctx, func() { s.discard(before); close(discarded) })
		r, err := s.launchOne(ctx, v)
		if !stop() {
			<-discarded
			replicas = nil
		}
		if err != nil {
			return replicas, err
		}
		replicas = append(replicas, r)
	}
	return replicas, ctx.Err()
}

func (s *replicaSet) launchOne(ctx context.Context, v version) (*replica, error) {
	r, err := s.balancer.add(v)
	if err != nil {
		return nil, err
	}
	if r.processes, err = s.launcher.launch(ctx, v, r); err != nil {
		s.balancer.remove(r)
		return nil, err
	}
	return r, nil
}

// deploy starts as many replicas of v as are serving, at least one, and switches deliveries to them once all are ready.
// The previous replicas drain in the background. If the new version fails, the error wraps [errRolledBack]. Until the
// switch, ctx can cancel the deployment.
func (s *replicaSet) deploy(ctx context.Context, v version) error {
	ctx, end, err := s.changes.begin(ctx, toDeploy)
	if err != nil {
		return err
	}
	defer end()

	began := time.Now()
	before := s.now.Load()
	old := before.replicas
	n := max(len(old), 1)
	s.opts.starting()
	s.opts.log.Info("new version starting", "version", v.displayed(), "replicas", n)
	replicas, err := s.launchAll(ctx, v, n)
	if err == nil {
		err = awaitReady(ctx, replicas, s.opts.readyTimeout())
	}

	var helpers processes
	if err == nil {
		helpers, err = s.replaceHelpers(ctx, v, replicas)
	}
	if err != nil {
		return s.rollBack(ctx, replicas, err)
	}

	s.now.Store(&serving{v, replicas, helpers})
	limit := s.opts.drainTimeout() // before the new settings apply
	s.opts.switching()
	s.balancer.replace(old, replicas)
	s.opts.switched()
	event.Deploy.Log(s.opts.log, slog.LevelInfo, "new version is serving", "version", v.displayed(), "duration_ms", time.Since(began).Milliseconds())

	s.retiring.Go(func() {
		s.retireAll(old, limit)
		s.opts.log.Info("previous version stopped", "version", before.version.displayed(), "duration_ms", time.Since(began).Milliseconds())
	})
	return nil
}

func (s *replicaSet) adopt(ctx context.Context, v version) error {
	_, end, err := s.changes.begin(ctx, toDeploy)
	if err != nil {
		return err
	}
	defer end()
	old := s.now.Load()
	s.now.Store(&serving{v, old.replicas, old.helpers})
	return nil
}

// After an error, it starts the previous helpers again.
func (s *replicaSet) replaceHelpers(ctx context.Context, v version, replicas []*replica) (processes, error) {
	old := s.now.Load()
	s.stopOne(old.helpers)
	helpers, err := s.launcher.helpers(ctx, v)
	if err == nil {
		if err = checkStillReady(replicas); err == nil {
			return helpers, nil
		}
		s.stopOne(helpers)
	}

	again, againErr := s.launcher.helpers(context.WithoutCancel(ctx), old.version)
	s.now.Store(&serving{old.version, old.replicas, again})
	if againErr != nil {
		err = errors.Join(err, fmt.Errorf("restarting the other processes of the previous version: %w", againErr))
	}
	return nil, err
}

func (s *replicaSet) rollBack(ctx context.Context, replicas []*replica, cause error) error {
	stopped, aborted := isStopped(ctx), isAborted(ctx)
	s.discard(replicas)
	switch {
	case stopped:
		cause = ErrStopped
		event.Deploy.Log(s.opts.log, slog.LevelWarn, "deployment abandoned", "reason", cause)
	case aborted:
		cause = context.Cause(ctx)
	default:
		event.Deploy.Log(s.opts.log, slog.LevelError, "deployment rolled back, the previous version is still serving", "err", cause)
	}
	return fmt.Errorf("%w: %w", errRolledBack, cause)
}

func awaitReady(ctx context.Context, replicas []*replica, timeout time.Duration) error {
	for limit := time.After(timeout); ; {
		late, reason, err := firstUnready(replicas)
		if err != nil || late == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return late.withOutput(fmt.Errorf("%s was not ready within %s: %s", late.name(), timeout, reason))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func checkStillReady(replicas []*replica) error {
	late, reason, err := firstUnready(replicas)
	if err != nil || late == nil {
		return err
	}
	return late.withOutput(fmt.Errorf("%s is no longer ready: %s", late.name(), reason))
}

// firstUnready returns nil if all replicas are ready, and an error if any has failed.
func firstUnready(replicas []*replica) (first *replica, reason string, err error) {
	for _, r := range replicas {
		if err := r.err(); err != nil {
			return nil, "", r.withOutput(err)
		}
		if ready, known := r.isReady(); !ready && first == nil {
			first = r
			reason = r.notReadyReason(known)
		}
	}
	return first, reason, nil
}

// scale changes the number of replicas to n, at least 1, and returns once new ones are ready. It returns [ErrBusy]
// during another change, or if a deployment cancels this one.
func (s *replicaSet) scale(ctx context.Context, n int) error {
	ctx, end, err := s.changes.begin(ctx, toScale)
	if err != nil {
		return err
	}
	defer end()

	n = max(n, 1)
	from := s.size()
	switch {
	case n > from:
		err = s.scaleOut(ctx, n-from)
	case n < from:
		s.scaleIn(n)
	default:
		return nil
	}

	if err != nil && errors.Is(context.Cause(ctx), ErrBusy) {
		return ErrBusy
	}
	if err != nil {
		return fmt.Errorf("scaling from %d to %d replicas of the app: %w", from, n, err)
	}
	s.opts.log.Info("number of replicas changed", "from", from, "to", n)
	return nil
}

func (s *replicaSet) scaleOut(ctx context.Context, added int) error {
	old := s.now.Load()
	more, err := s.launchReady(ctx, old.version, added)
	if err != nil {
		return err
	}
	s.now.Store(&serving{old.version, slices.Concat(old.replicas, more), old.helpers})
	s.balancer.replace(nil, more)
	return nil
}

func (s *replicaSet) scaleIn(n int) {
	old := s.now.Load()
	retired := old.replicas[n:]
	s.now.Store(&serving{old.version, old.replicas[:n:n], old.helpers})
	s.balancer.replace(retired, nil)
	s.retiring.Go(func() { s.retireAll(retired, s.opts.drainTimeout()) })
}

// After an error, none of the new replicas is running.
func (s *replicaSet) launchReady(ctx context.Context, v version, n int) ([]*replica, error) {
	replicas, err := s.launchAll(ctx, v, n)
	if err == nil {
		err = awaitReady(ctx, replicas, s.opts.readyTimeout())
	}
	if err != nil {
		s.discard(replicas)
		return nil, err
	}
	return replicas, nil
}

// stop cancels a change in progress, and stops all replicas and helpers. Deliveries must have ended.
func (s *replicaSet) stop() error {
	endChange := s.changes.stop()
	defer endChange()

	old := s.now.Load()
	s.now.Store(&serving{version: old.version})
	var all sync.WaitGroup
	errs := make([]error, len(old.replicas)+1)
	for i, r := range old.replicas {
		all.Go(func() { errs[i] = r.Stop(s.opts.hurry) })
	}
	if old.helpers != nil {
		all.Go(func() { errs[len(old.replicas)] = old.helpers.Stop(s.opts.hurry) })
	}
	all.Wait()
	s.retiring.Wait()
	return errors.Join(errs...)
}

func (s *replicaSet) retireAll(replicas []*replica, limit time.Duration) {
	ctx, cancel := context.WithTimeout(s.changes.stopping, limit)
	defer cancel()
	var all sync.WaitGroup
	for _, r := range replicas {
		all.Go(func() { s.drainAndStop(ctx, r, limit) })
	}
	all.Wait()

	for _, r := range replicas {
		s.opts.retired(r.version)
	}
}

func (s *replicaSet) drainAndStop(ctx context.Context, r *replica, limit time.Duration) {
	if inWork := r.drain(ctx); inWork > 0 {
		reason := "the deliveries took longer than " + limit.String()
		if s.changes.stopping.Err() != nil {
			reason = "the environment is stopping"
		}
		s.opts.log.Warn("replica stopped with deliveries in flight", "address", r.address(),
			"in_work", inWork, "reason", reason)
	}
	s.stopOne(r)
}

func (s *replicaSet) draining() []*replica {
	return s.balancer.replicasWhere(func(r *replica) bool { return r.retired })
}

// discard stops the replicas concurrently, because each may take its full grace period.
func (s *replicaSet) discard(replicas []*replica) {
	var all sync.WaitGroup
	for _, r := range replicas {
		all.Go(func() { s.stopOne(r) })
	}
	all.Wait()
}

func (s *replicaSet) stopOne(p interface{ Stop(context.Context) error }) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.opts.hurry, s.opts.stopTimeout())
	defer cancel()
	_ = p.Stop(ctx)
}
