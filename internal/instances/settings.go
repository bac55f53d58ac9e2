package instances

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const settingsRetry = 10 * time.Second

// ErrNotApplied means that settings were neither applied nor rejected.
var ErrNotApplied = errors.New("not applied")

// SettingsFollower applies settings, and rolls back settings that it rejects. On the leader, it advances their rollout.
// All fields are required.
type SettingsFollower struct {
	State *DesiredState
	Name  string
	Apply func(context.Context, *Settings) error
	// Changed is called after each attempt to change the desired state. Unless the error is [ErrNotApplied], Failed is
	// called first if the attempt failed.
	Changed func()
	Failed  func(error)
	// Due receives a value when the settings may have changed. Its capacity is 1.
	Due chan struct{}

	progress atomic.Pointer[SettingsProgress]
}

// Progress returns which settings this instance has applied or rejected.
func (f *SettingsFollower) Progress() SettingsProgress {
	if p := f.progress.Load(); p != nil {
		return *p
	}
	return SettingsProgress{}
}

// Started records the revision of the settings applied at startup.
func (f *SettingsFollower) Started(revision int64) {
	f.progress.Store(&SettingsProgress{Applied: revision})
}

// Notify makes [SettingsFollower.Run] check the settings at once.
func (f *SettingsFollower) Notify() {
	select {
	case f.Due <- struct{}{}:
	default:
	}
}

// Run applies new settings and, on the leader, advances their rollout, until ctx ends.
func (f *SettingsFollower) Run(ctx context.Context, fleet *Fleet) {
	var leading sync.WaitGroup
	defer leading.Wait()
	leading.Go(func() { f.advanceRollouts(ctx, fleet) })

	retry := time.Tick(settingsRetry)
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-f.Due:
		}
		now, _ := f.State.Current()
		settings := now.Settings.For(fleet.ID)
		switch f.Progress().Next(&settings) {
		case ApplySettings:
			f.applyAndRecord(ctx, &settings)
		case RollBackSettings:
			f.rollBack(ctx, fleet.Store, settings.Revision)
		case NoStep:
		}
	}
}

func (f *SettingsFollower) applyAndRecord(ctx context.Context, s *Settings) {
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

func (f *SettingsFollower) rollBack(ctx context.Context, store Store, rejected int64) {
	why := fmt.Sprintf("%s rejected revision %d: %s", f.Name, rejected, f.Progress().Reason)
	f.change(ctx, store, func(now *Desired) error {
		if now.Settings.Revision != rejected {
			return ErrNotApplied
		}
		now.RollBackSettings(why, f.Name)
		return nil
	})
}

func (f *SettingsFollower) change(ctx context.Context, store Store, alter func(*Desired) error) {
	_, err := f.State.Change(ctx, store, alter)
	if err != nil && !errors.Is(err, ErrNotApplied) && ctx.Err() == nil {
		f.Failed(err)
	}
	f.Changed()
}

func (f *SettingsFollower) advanceRollouts(ctx context.Context, fleet *Fleet) {
	var conductor Conductor
	tick := time.Tick(rolloutTick)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if fleet.Leads() {
				f.advanceRollout(ctx, fleet, &conductor)
			}
		}
	}
}

func (f *SettingsFollower) advanceRollout(ctx context.Context, fleet *Fleet, conductor *Conductor) {
	now, _ := f.State.Current()
	s := now.Settings
	if s.Rollout == nil {
		return
	}
	all, err := fleet.records(ctx)
	if err != nil {
		return // logged by the watcher
	}
	next, failed, changed := conductor.NextSettings(s, all, time.Now(), fleet.Healthy)
	if !changed {
		return
	}

	f.change(ctx, fleet.Store, func(now *Desired) error {
		latest := &now.Settings
		switch {
		case latest.Revision != s.Revision || latest.Rollout == nil || latest.Rollout.Until != s.Rollout.Until:
			return ErrNotApplied // perhaps changed by another leader
		case failed != "":
			now.RollBackSettings(fmt.Sprintf("revision %d: %s", s.Revision, failed), f.Name)
		default:
			now.Settings = next
		}
		return nil
	})
}
