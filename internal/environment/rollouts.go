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
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/archives"
	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
	"tendril/queue"
)

const (
	// Folders in the data directory: archives fetched by this instance, and archives served to others.
	archivesFolder = "archives"
	servedFolder   = "served-archives"
)

// DesiredVersion is returned by [Environment.Run] if all instances should run another version of the app. The caller
// must start the environment again with Archive.
type DesiredVersion struct {
	app.SharedVersion
	Archive string
}

func (d *DesiredVersion) Error() string {
	return fmt.Sprintf("the current version of the app is version %d (%s)", d.Number, d.Name)
}

// rollouts keeps this instance's app at the version set for all instances, and advances rollouts on the leader. Without
// a fleet key or a location for archives, deployments apply only to this instance.
type rollouts struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	programs *programs
	cron     *schedule
	changes  *changes
	desired  *desired

	control *instances.Rollouts // nil until adoptVersion, and if this instance does not take the desired version
	objects *aws.S3
}

func (r *rollouts) deploysToAll() bool {
	set := r.settings.now()
	return r.desired.state != nil && r.opts.Bundle != nil && len(r.opts.Command) == 0 && r.opts.HasApp() &&
		(set.Versions != "" || set.RegistryTable == "")
}

// follows reports whether rollouts can rely on this instance: it deploys their versions, or has no app.
func (r *rollouts) follows() bool {
	return r.desired.state != nil && (r.deploysToAll() || !r.opts.HasApp())
}

func (r *rollouts) store(ctx context.Context) (archives.Store, error) {
	set := r.settings.now()
	if bucket, prefix := set.VersionsBucket(); bucket != "" {
		return archives.Bucket{Objects: r.objects, Name: bucket, Prefix: prefix}, nil
	}
	if set.Versions != "" {
		return archives.Folder(set.Versions), nil
	}
	leases, err := r.leases(ctx)
	if err != nil {
		return nil, err
	}
	server, ok := leases.(archives.Chunks)
	if !ok {
		return nil, errors.New("the registry stores no archives: name a folder that all instances share, or " +
			"s3://BUCKET/PREFIX, with --versions")
	}
	return archives.Server{Chunks: server}, nil
}

func (r *rollouts) connectBucket(ctx context.Context) (err error) {
	set := r.settings.now()
	if bucket, _ := set.VersionsBucket(); bucket == "" {
		return nil
	}
	if r.objects, err = r.opts.openS3(ctx, set); err != nil {
		return fmt.Errorf("%w: --versions: %w", ErrSettings, err)
	}
	r.life.onStop("the connections to the archives", func(context.Context) error { r.objects.Close(); return nil })
	return nil
}

func (r *rollouts) leases(ctx context.Context) (instances.Store, error) {
	leases, err := r.cron.leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("the shared registry: %w", err)
	}
	return leases, nil
}

func (r *rollouts) archiveName(digest string) string {
	return archives.Name(r.cron.election.Name(), digest)
}

func (r *rollouts) path(v *instances.AppVersion) string {
	return filepath.Join(r.settings.now().DataDir, archivesFolder, v.Digest, bundle.ArchiveName(v.Name)+".zip")
}

func (r *rollouts) fetch(ctx context.Context, v *instances.AppVersion) (path string, err error) {
	path = r.path(v)
	if have, _, err := archives.Digest(path); err == nil && have == v.Digest {
		return path, nil
	}
	store, err := r.store(ctx)
	if err == nil {
		err = archives.Fetch(ctx, store, r.archiveName(v.Digest), v.Digest, v.Size, path)
	}
	if err != nil {
		return "", fmt.Errorf("fetching the archive of version %d: %w", v.Number, err)
	}
	return path, nil
}

func sharedVersion(v *instances.AppVersion) app.SharedVersion {
	return app.SharedVersion{Number: v.Number, Name: v.Name, By: v.By}
}

// adoptVersion returns a [*DesiredVersion] if this instance was not started with the current version. Its app becomes
// the first version if the registry has none.
func (r *rollouts) adoptVersion(ctx context.Context) error {
	if !r.deploysToAll() {
		return nil
	}
	if err := r.connectBucket(ctx); err != nil {
		return err
	}

	r.control = instances.NewRollouts(r.desired.state, r)
	now, _ := r.desired.state.Current()
	if now.App == nil {
		var err error
		if now, err = r.setFirstVersion(ctx); err != nil {
			r.log().Warn("current version of the app not known", "err", err)
			r.control.HoldUntilKnown()
			return nil
		}
	}
	wanted := now.App.Wanted("")
	if r.opts.Shared.Number == wanted.Number {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, api.MaxDeploy)
	defer cancel()
	path, err := r.fetch(ctx, &wanted)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	return &DesiredVersion{sharedVersion(&wanted), path}
}

func (r *rollouts) setFirstVersion(ctx context.Context) (none instances.Desired, err error) {
	leases, err := r.leases(ctx)
	if err != nil {
		return none, err
	}
	if now, err := r.desired.state.Refresh(ctx, leases); err != nil || now.App != nil {
		return now, err
	}

	b := r.opts.Bundle
	source, name := b.Dir, b.Name()
	if isArchive, _ := bundle.IsArchive(b.Archive); isArchive {
		source, name = b.Archive, filepath.Base(b.Archive)
	}
	v, err := r.upload(ctx, source, name)
	if err != nil {
		return none, err
	}
	v.By, v.At = "start", thisSecond()
	return r.desired.state.Change(ctx, leases, func(now *instances.Desired) (err error) {
		if now.App == nil {
			_, err = now.BeginRollout(v, instances.Rollout{})
		}
		return err
	})
}

// upload stores the app in source, a folder or an archive, for all instances. It keeps a copy of the archive.
func (r *rollouts) upload(ctx context.Context, source, name string) (v instances.AppVersion, err error) {
	v.Name = name
	dir := filepath.Join(r.settings.now().DataDir, archivesFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return v, err
	}
	file, err := os.CreateTemp(dir, ".uploading-*")
	if err != nil {
		return v, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	if err := r.pack(file, source); err != nil {
		return v, err
	}
	if v.Digest, v.Size, err = archives.Digest(file.Name()); err != nil {
		return v, err
	}
	store, err := r.store(ctx)
	if err == nil {
		err = store.Put(ctx, r.archiveName(v.Digest), file, v.Size)
	}
	if err != nil {
		return v, fmt.Errorf("storing the archive for the other instances: %w", err)
	}

	if err := os.MkdirAll(filepath.Dir(r.path(&v)), 0o700); err != nil {
		return v, err
	}
	return v, os.Rename(file.Name(), r.path(&v))
}

func (r *rollouts) pack(to *os.File, source string) error {
	isArchive, err := bundle.IsArchive(source)
	if err != nil {
		return err
	}
	if !isArchive {
		return bundle.Pack(to, source, r.settings.now().DataDir)
	}

	archive, err := os.Open(source)
	if err != nil {
		return err
	}
	defer archive.Close()
	_, err = to.ReadFrom(archive)
	return err
}

func (r *rollouts) log() *slog.Logger { return r.opts.log("rollout") }

func (r *rollouts) run(ctx context.Context, fleet *instances.Fleet) {
	if r.control == nil {
		return
	}
	r.control.Run(ctx, &instances.RolloutOptions{Fleet: fleet,
		Active: func() bool { return r.life.state() == api.StateRunning }, Begun: r.deleteStoredArchives,
		Changed: r.desired.apply, Finished: r.finished, Tried: r.deleteLocalArchives, Log: r.log()})
}

func (r *rollouts) finished(before, now *instances.App) {
	if version := before.Next.Number; now.Current.Number == version {
		event.Deploy.Log(r.log(), slog.LevelInfo, "deployed to all instances", "version", version)
	} else {
		event.Deploy.Log(r.log(), slog.LevelError, "deployment rolled back on all instances", "version", version,
			"current", now.Current.Number, "err", now.Earlier[0].Error)
	}
}

const deleteTimeout = 10 * time.Second

// deleteStoredArchives runs only during a rollout, when no other instance can start to deploy an archive that it has
// stored.
func (r *rollouts) deleteStoredArchives(ctx context.Context, now *instances.App) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	store, err := r.store(ctx)
	if err != nil {
		return
	}
	for _, digest := range now.Unneeded() {
		if err := store.Delete(ctx, r.archiveName(digest)); err != nil {
			r.log().Debug("archive of an old version not deleted", "digest", digest, "err", err)
		}
	}
}

func (r *rollouts) Hold(reason string) {
	for _, l := range r.work.all {
		if l.queue.settings().ToOwnApp() && l.setPause(byRollout, instances.Pause{Reason: reason}) {
			text := "receiving resumed"
			if reason != "" {
				text = "receiving stopped"
			}
			event.Deploy.Log(r.log(), slog.LevelInfo, text, "queue", l.queue.name, "reason", reason)
		}
	}
}

func (r *rollouts) Running() int { return r.programs.app.SharedNumber() }

func (r *rollouts) Abort(ctx context.Context) { r.programs.app.Abort(ctx) }

func (r *rollouts) Deploy(ctx context.Context, v *instances.AppVersion) error {
	ctx, cancel := context.WithTimeout(ctx, api.MaxDeploy)
	defer cancel()
	path, err := r.fetch(ctx, v)
	if err != nil {
		if errors.Is(err, archives.ErrOtherContent) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, queue.ErrDenied) {
			return err
		}
		return fmt.Errorf("%w: %w", instances.ErrDeployLater, err)
	}
	_, err = r.changes.deploy(ctx, func() (api.DeployResult, error) {
		return r.programs.app.DeployShared(ctx, path, sharedVersion(v))
	})
	failure, failed := errors.AsType[*api.DeployError](err)
	switch {
	case errors.Is(err, app.ErrStopped), failed && (failure.Aborted || failure.Stopped):
		return fmt.Errorf("%w: %w", instances.ErrDeployAborted, err)
	case errors.Is(err, app.ErrBusy):
		return fmt.Errorf("%w: %w", instances.ErrDeployLater, err)
	}
	return err
}

func (r *rollouts) apply() {
	if r.control != nil {
		r.control.Apply()
	}
}

func (r *rollouts) deleteLocalArchives() {
	now, _ := r.desired.state.Current()
	if now.App == nil {
		return
	}
	needed := append(now.App.Restorable(), now.App.Current)
	if now.App.Next != nil {
		needed = append(needed, *now.App.Next)
	}

	dir := filepath.Join(r.settings.now().DataDir, archivesFolder)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		isOf := func(v instances.AppVersion) bool { return v.Digest == e.Name() }
		if e.IsDir() && !slices.ContainsFunc(needed, isOf) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log().Debug("archives of old versions not deleted", "err", err)
	}
}

func (r *rollouts) report() instances.AppReport {
	if r.control == nil || r.life.state() != api.StateRunning {
		return instances.AppReport{}
	}
	return r.control.Report()
}

// deploy deploys the current version again if path is "".
func (r *rollouts) deploy(ctx context.Context, path string) (api.DeployResult, error) {
	choose := func(current *instances.AppVersion) (v instances.AppVersion, how instances.Rollout, err error) {
		how = rolloutPolicy(r.settings.now())
		if path == "" {
			v = *current
			v.Of = 0
			return v, how, nil
		}
		if err = r.programs.app.Examine(path); err == nil {
			v, err = r.upload(ctx, path, filepath.Base(path))
		}
		return v, how, err
	}
	return r.beginRollout(ctx, choose)
}

// rollBack deploys an earlier version to all instances at once. No further delivery starts on the current version.
func (r *rollouts) rollBack(ctx context.Context, number int) (api.DeployResult, error) {
	return r.beginRollout(ctx, func(*instances.AppVersion) (v instances.AppVersion, how instances.Rollout, err error) {
		to, err := api.ChooseVersion(r.versions(), number)
		if err != nil {
			return v, how, err
		}
		now, _ := r.desired.state.Current()
		for _, v := range now.App.Restorable() {
			if v.Number == to.Number {
				v.Of = cmp.Or(v.Of, v.Number)
				return v, instances.Rollout{Timeout: r.settings.now().RolloutTimeout}, nil
			}
		}
		return v, how, api.NewError(http.StatusNotFound, fmt.Sprintf("version %d is no longer kept", to.Number), "")
	})
}

func rolloutPolicy(s *config.Settings) instances.Rollout {
	how := instances.Rollout{Timeout: s.RolloutTimeout, IgnoreHealth: s.RolloutIgnoreHealth}
	switch { // unsupported policies deploy in batches
	case s.RolloutPolicy == config.RolloutAllAtOnce:
	case s.RolloutBatchSizeType == config.RolloutPercentage:
		how.BatchPercent = min(s.RolloutBatchSize, 100)
	default:
		how.BatchSize = s.RolloutBatchSize
	}
	return how
}

// beginRollout reads the registry first, because the known state may be some seconds old.
func (r *rollouts) beginRollout(ctx context.Context, choose chooseVersion) (done api.DeployResult, err error) {
	if err := r.changes.awaitStart(ctx); err != nil {
		return done, err
	}
	leases, err := r.leases(ctx)
	if err != nil {
		return done, notDeployed(err)
	}
	replaced, err := r.replaceable(ctx, leases)
	if err != nil {
		return done, notDeployed(err)
	}
	current := &replaced.Current
	v, how, err := choose(current)
	if err != nil {
		return done, notDeployed(err)
	}

	v.By, v.At = api.CallerName(ctx), thisSecond()
	v.Withdrawn, v.Error = false, ""
	_, err = r.desired.state.Change(ctx, leases, func(d *instances.Desired) (err error) {
		if d.App != nil && d.App.NextNumber() != replaced.NextNumber() {
			return errDeployedMeanwhile
		}
		v, err = d.BeginRollout(v, how)
		return err
	})
	if errors.Is(err, instances.ErrRolloutInProgress) {
		return done, inProgress(&v)
	}
	if err != nil {
		return done, notDeployed(err)
	}

	event.Deploy.Log(r.log(), slog.LevelInfo, "deployment to all instances started", "version", v.Number,
		"previous", current.Number, "by", v.By)
	r.desired.apply()
	return api.DeployResult{From: current.String(), To: v.String(), Of: v.Of, Rollout: v.Number}, nil
}

type chooseVersion func(current *instances.AppVersion) (instances.AppVersion, instances.Rollout, error)

// errDeployedMeanwhile is final: the other deployment may have deleted this one's archive.
var errDeployedMeanwhile = api.NewError(http.StatusConflict,
	"nothing was deployed: another version was deployed meanwhile",
	"'tendril versions' lists the deployed versions; repeat the command to replace the current one")

func (r *rollouts) replaceable(ctx context.Context, leases instances.Store) (*instances.App, error) {
	now, err := r.desired.state.Refresh(ctx, leases)
	if err != nil {
		return nil, err
	}
	if now.App != nil && now.App.Next != nil {
		return nil, inProgress(now.App.Next)
	}

	err = r.desired.allFollow(ctx, func(one *instances.Instance) bool {
		return one.Follows && slices.Contains(one.Applies, instances.PartApp)
	})
	if own, ok := errors.AsType[*api.Error](err); ok {
		own.Hint = "give them this version, the same --fleet-key-file and the same options"
	}
	if err == nil && now.App == nil {
		now, err = r.setFirstVersion(ctx)
	}
	if err != nil {
		return nil, err
	}
	return now.App, nil
}

func inProgress(v *instances.AppVersion) error {
	return api.NewError(http.StatusConflict, "version "+fmt.Sprint(v.Number)+" is being deployed to all instances",
		"wait until it is complete, or type 'tendril deploy --abort'")
}

const registryHint = "'tendril instances' shows whether the registry can be read"

func notDeployed(err error) error { return registryError("nothing was deployed: ", err, registryHint) }

func (r *rollouts) abort(ctx context.Context) (api.Deployment, error) {
	leases, err := r.leases(ctx)
	if err != nil {
		return api.Deployment{}, notDeployed(err)
	}
	reason := "aborted by " + cmp.Or(api.CallerName(ctx), "an operator")
	now, err := r.desired.state.Change(ctx, leases, func(d *instances.Desired) error { return d.AbortRollout(reason) })
	if errors.Is(err, instances.ErrNoRollout) {
		return api.Deployment{}, api.NewError(http.StatusConflict, err.Error(),
			"'tendril versions' lists the deployed versions")
	}
	if err != nil {
		return api.Deployment{}, notDeployed(err)
	}
	r.desired.apply()
	aborted := &now.App.Earlier[0]
	event.Deploy.Log(r.log(), slog.LevelWarn, "deployment to all instances aborted", "version", aborted.Number,
		"reason", reason)
	return api.Deployment{State: api.DeployRolledBack, From: now.App.Current.String(), To: aborted.String(),
		Since: aborted.At, Ended: time.Now(), Error: reason, Aborted: true}, nil
}

func (r *rollouts) versions() (all []api.AppVersion) {
	now, _ := r.desired.state.Current()
	if now.App == nil {
		return r.programs.app.Versions()
	}

	list := append([]instances.AppVersion{now.App.Current}, now.App.Earlier...)
	if now.App.Next != nil {
		list = slices.Insert(list, 0, *now.App.Next)
	}
	for _, v := range list {
		one := api.AppVersion{Number: v.Number, Of: v.Of, Source: v.Name, Digest: v.Digest, DeployedAt: v.At, By: v.By,
			Size: v.Size, Error: v.Error, State: versionState(now.App, &v)}
		switch one.State {
		case "":
			continue
		case api.VersionFailed:
			one.Digest = ""
		}
		all = append(all, one)
	}
	return all
}

// versionState returns "" for a version that cannot be restored.
func versionState(a *instances.App, v *instances.AppVersion) string {
	isSame := func(other instances.AppVersion) bool { return other.Number == v.Number }
	switch {
	case v.Error != "":
		return api.VersionFailed
	case isSame(a.Current):
		return api.VersionLive
	case a.Next != nil && isSame(*a.Next):
		return api.VersionDeploying
	case slices.ContainsFunc(a.Restorable(), isSame):
		return api.VersionKept
	}
	return ""
}
