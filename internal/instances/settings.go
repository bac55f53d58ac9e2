package instances

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Time between attempts to apply settings, and to roll back rejected ones.
const settingsRetry = 10 * time.Second

// ErrNotApplied is the error of [SettingsFollower].Apply if the settings were neither applied nor rejected.
var ErrNotApplied = errors.New("not applied")

// SettingsFollower applies the settings for all instances on this one, and rolls back those that it rejects. All
// fields are required.
type SettingsFollower struct {
	State *DesiredState
	Name  string
	// After an error of Apply, the previous settings are in force.
	Apply func(context.Context, *Settings) error
	// Changed is called after the settings were rolled back, Failed if that was impossible.
	Changed func()
	Failed  func(error)
	// Due has a value when the settings may have changed. Its capacity is 1.
	Due chan struct{}

	progress atomic.Pointer[SettingsProgress]
}

// Progress returns what this instance has done with the settings.
func (f *SettingsFollower) Progress() SettingsProgress {
	if p := f.progress.Load(); p != nil {
		return *p
	}
	return SettingsProgress{}
}

// Started records the revision that a start has applied.
func (f *SettingsFollower) Started(revision int64) {
	f.progress.Store(&SettingsProgress{Applied: revision})
}

// Notify makes [SettingsFollower.Run] look at the settings at once.
func (f *SettingsFollower) Notify() {
	select {
	case f.Due <- struct{}{}:
	default:
	}
}

// Run applies new settings until ctx ends.
func (f *SettingsFollower) Run(ctx context.Context, store Store) {
	retry := time.NewTicker(settingsRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		case <-f.Due:
		}
		now, _ := f.State.Current()
		switch f.Progress().Next(&now.Settings) {
		case ApplySettings:
			f.apply(ctx, &now.Settings)
		case RollBackSettings:
			f.rollBack(ctx, store, now.Settings.Revision)
		case NoStep:
		}
	}
}

func (f *SettingsFollower) apply(ctx context.Context, s *Settings) {
	progress := f.Progress()
	switch err := f.Apply(ctx, s); {
	case ctx.Err() != nil, errors.Is(err, ErrNotApplied):
		return
	case err != nil:
		progress.Rejected, progress.Reason = s.Revision, err.Error()
		f.Notify()
	default:
		progress = SettingsProgress{Applied: s.Revision}
	}
	f.progress.Store(&progress)
}

// Settings that have changed since are not rolled back.
func (f *SettingsFollower) rollBack(ctx context.Context, store Store, rejected int64) {
	why := fmt.Sprintf("%s rejected revision %d: %s", f.Name, rejected, f.Progress().Reason)
	_, err := f.State.Change(ctx, store, func(now *Desired) error {
		if now.Settings.Revision != rejected {
			return ErrNotApplied
		}
		now.RollBackSettings(why, f.Name)
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotApplied) && ctx.Err() == nil {
		f.Failed(err)
	}
	f.Changed()
}
