package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
)

const desiredFile = "desired.json"

// desired applies the state that operators set for all instances. Without a fleet key or a shared registry, changes
// apply only to this instance.
type desired struct {
	opts     *Options
	settings *settings
	queues   *queues
	work     *pipelines
	cron     *schedule
	members  *members
	changes  *changes
	rollouts *rollouts

	follower instances.SettingsFollower

	state    *instances.DesiredState
	applying sync.Mutex // an older state is never applied after a newer one
}

func (d *desired) applies(set *config.Settings) bool {
	return set.FleetKey != "" && set.AnyOnSQS() && set.Leader != config.LeaderLocal
}

func (d *desired) revision() int64 {
	if d.state == nil {
		return 0
	}
	now, _ := d.state.Current()
	return now.Revision
}

// adopt applies the state before anything is received: the one kept in the data directory, then the registry's, if it
// answers in time.
func (d *desired) adopt(ctx context.Context) error {
	set := d.settings.now()
	if !d.applies(set) {
		return nil
	}
	if err := d.openState(set); err != nil {
		return err
	}
	d.readRegistry(ctx)
	d.apply()
	if err := d.rollouts.adoptVersion(ctx); err != nil { // the version may have its own settings
		return err
	}
	return d.adoptSettings()
}

func (d *desired) openState(set *config.Settings) error {
	var kept string
	var keep func(text string) error
	if d.queues.ownsDataDir() {
		path := filepath.Join(set.DataDir, desiredFile)
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the saved desired state: %w", err)
		}
		kept = string(text)
		keep = func(text string) error { return datadir.Replace(path, []byte(text), 0o600) }
	}

	state, err := instances.NewDesired(d.cron.election.Name(), instances.FleetKey(set.FleetKey), kept, keep)
	if err != nil {
		d.log().Error("saved desired state not applied", "err", err, "file", desiredFile)
	}
	d.state = state
	d.follower.State = state
	return nil
}

func (d *desired) readRegistry(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, registryStart)
	defer cancel()
	if _, err := d.cron.election.Join(ctx); err != nil {
		d.log().Warn("shared registry not available", "err", err)
	}
	leases, err := d.cron.leases(ctx)
	if err != nil {
		return
	}
	if _, err := d.state.Refresh(ctx, leases); err != nil {
		d.logUnread(err)
	}
}

func (d *desired) log() *slog.Logger { return d.opts.log("instances") }

func (d *desired) follow(ctx context.Context, fleet *instances.Fleet) {
	if d.state == nil {
		return
	}
	var settings sync.WaitGroup
	defer settings.Wait()
	settings.Go(func() { d.follower.Run(ctx, fleet) })
	d.state.Follow(ctx, instances.Following{Store: fleet.Store, Leads: fleet.Leads, Revision: d.cron.election.Revision,
		Apply: d.apply, Failed: d.logUnread})
}

func (d *desired) logUnread(err error) {
	d.log().Error("desired state not read, the last known one still applies", "err", err, "revision", d.revision())
}

func (d *desired) apply() {
	d.follower.Notify()
	d.applying.Lock()
	defer d.applying.Unlock()
	now, _ := d.state.Current()
	for _, l := range d.work.all {
		pause, paused := now.Pauses[l.queue.name]
		if l.setPause(byFleet, pause) {
			text := "queue resumed"
			if paused {
				text = "queue paused"
			}
			event.Pause.Log(d.opts.log("worker"), slog.LevelInfo, text, "queue", l.queue.name,
				"by", pause.By, "reason", pause.Reason, "revision", now.Revision)
		}
	}
	d.rollouts.apply()
}

// pause pauses all queues if name is "". If why.This is set, or without a desired state, only this instance pauses.
func (d *desired) pause(ctx context.Context, name string, why api.Reason, by string) (api.Paused, error) {
	lines, err := d.work.ofQueue(name) // fails until startup has set the state
	if err != nil {
		return api.Paused{}, err
	}
	pause := newPause(why.Reason, by)
	if why.This || d.state == nil {
		return api.Paused{Paused: true}, d.work.pause(name, pause)
	}
	revision, err := d.setPauses(ctx, lines, pause)
	return api.Paused{Paused: true, Revision: revision}, err
}

func (d *desired) resume(ctx context.Context, name string, this bool) (api.Paused, error) {
	lines, err := d.work.ofQueue(name)
	if err != nil {
		return api.Paused{}, err
	}
	if this || d.state == nil {
		return api.Paused{}, d.work.resume(name)
	}
	revision, err := d.setPauses(ctx, lines, instances.Pause{})
	if err == nil {
		err = d.work.resume(name)
	}
	return api.Paused{Revision: revision}, err
}

func (d *desired) setPauses(ctx context.Context, lines []*pipeline, pause instances.Pause) (revision int64, err error) {
	follows := func(one *instances.Instance) bool { return one.Follows }
	return d.changeAll(ctx, follows, func(now *instances.Desired) error {
		for _, l := range lines {
			setOrDelete(&now.Pauses, l.queue.name, pause, pause != instances.Pause{})
		}
		return nil
	})
}

func (d *desired) changeAll(ctx context.Context, follows func(*instances.Instance) bool,
	alter func(*instances.Desired) error) (revision int64, err error) {
	leases, err := d.cron.leases(ctx)
	if err == nil {
		err = d.allFollow(ctx, follows)
	}
	if err != nil {
		return 0, unchanged(err)
	}
	now, err := d.state.Change(ctx, leases, alter)
	if err != nil {
		return 0, unchanged(err)
	}
	d.apply()
	return now.Revision, nil
}

func unchanged(err error) error {
	return registryError("nothing was changed: the shared registry: ", err, "change this instance only: add --this")
}

func registryError(message string, err error, hint string) error {
	if _, ok := errors.AsType[*api.Error](err); ok {
		return err
	}
	return api.NewError(http.StatusServiceUnavailable, message+err.Error(), hint)
}

func (d *desired) allFollow(ctx context.Context, follows func(*instances.Instance) bool) error {
	others, err := d.members.others(ctx)
	if err != nil {
		return err
	}
	var ignoring []string
	for i := range others {
		switch one := &others[i]; {
		case !one.Reachable():
		case one.Refused != nil: // it would reject the change, or its record may be forged
			ignoring = append(ignoring, one.Name+" (not authenticated)")
		case !follows(one):
			ignoring = append(ignoring, fmt.Sprintf("%s (version %s)", one.Name, cmp.Or(one.Version, "unknown")))
		}
	}
	if ignoring == nil {
		return nil
	}
	return api.NewError(http.StatusConflict,
		"nothing was changed: these instances would not follow: "+strings.Join(ignoring, ", "),
		"give them this version and the same --fleet-key-file, or change this instance only: add --this")
}
