package tasks

import (
	"context"
	"errors"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
)

const versionPatience = time.Minute

// ErrNoRegistry means that instances do not share a registry.
var ErrNoRegistry = errors.New("no shared registry")

var errUndecided = errors.New("the queue server has not reported whether it has a registry, so other " +
	"instances with this version are unknown")

// AcquireVersion acquires the work that one instance does for an app version, or waits for that instance. version is
// the same on all instances. The work is nil if it is done. With [ErrNoRegistry], this instance must do it without a
// lease.
func AcquireVersion(ctx context.Context, m *Manager, version string) (*leader.Work, error) {
	reg, err := awaitRegistry(ctx, m)
	if err != nil {
		return nil, err
	}
	if reg == nil || reg.leases == nil || m.opts.Registry.Local {
		return nil, ErrNoRegistry
	}
	log := m.opts.Log.With("component", "app")
	return leader.AcquireWork(ctx, reg.leases, leader.Options{
		Name: periodic.VersionLease(m.opts.Registry.Queue, version), Lease: m.opts.Lease,
		Events: &leader.Events{Following: func(f leader.Following) {
			log.Info("waiting for the instance that runs the leader_only commands", "holder", f.Owner)
		}},
	}, m.opts.Registry.Broker != nil, versionPatience)
}

func awaitRegistry(ctx context.Context, m *Manager) (reg *sharedRegistry, err error) {
	for began := time.Now(); ; {
		err := m.withChangeLock(ctx, func(ctx context.Context) (err error) {
			reg, err = m.registry.open(ctx)
			return err
		})
		switch {
		case err != nil || reg != nil || !m.registry.undecided.Load():
			return reg, err
		case time.Since(began) > versionPatience:
			return nil, errUndecided
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(firstSeekPause):
		}
	}
}
