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

	control *instances.Rollouts // nil until adopt, and if this instance does not take the desired version
	objects *aws.S3
}

func (r *rollouts) deploysToAll() bool {
	set := r.settings.now()
	return r.desired.state != nil && r.opts.Bundle != nil && len(r.opts.Command) == 0 && r.opts.HasApp() &&
		(set.Versions != "" || set.RegistryTable == "")
}

func (r *rollouts) supports() bool {
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
		return nil, errors.New("the registry stores no archives: name a folder that all instances share, or s3://BUCKET/PREFIX, with " +
			"--versions")
	}
	return archives.Server{Chunks: server}, nil
}

func (r *rollouts) openStore(ctx context.Context) (err error) {
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

func (r *rollouts) archiveName(v *instances.AppVersion) string {
	return archives.Name(r.cron.election.Name(), v.Digest)
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
		err = archives.Fetch(ctx, store, r.archiveName(v), v.Digest, v.Size, path)
	}
	if err != nil {
		return "", fmt.Errorf("fetching the archive of version %d: %w", v.Number, err)
	}
	return path, nil
}

func shared(v *instances.AppVersion) app.SharedVersion {
	return app.SharedVersion{Number: v.Number, Name: v.Name, By: v.By}
}

// adopt returns a [*DesiredVersion] if this instance was not started with the current version. Its app becomes the
// first version if the registry has none.
func (r *rollouts) adopt(ctx context.Context) error {
	if !r.deploysToAll() {
		return nil
	}
	if err := r.openStore(ctx); err != nil {
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
	return &DesiredVersion{shared(&wanted), path}
}

func (r *rollouts) setFirstVersion(ctx context.Context) (instances.Desired, error) {
	leases, err := r.leases(ctx)
	if err != nil {
		return instances.Desired{}, err
	}
	if now, err := r.desired.state.Refresh(ctx, leases); err != nil || now.App != nil {
		return now, err
	}
	source := r.opts.Bundle.Dir
	if isArchive, _ := bundle.IsArchive(r.opts.Bundle.Archive); isArchive {
		source = r.opts.Bundle.Archive
	}
	v, err := r.upload(ctx, source, r.opts.Bundle.Name())
	if err != nil {
		return instances.Desired{}, err
	}
	v.By = "start"
	return r.desired.state.Change(ctx, leases, func(now *instances.Desired) (err error) {
		if now.App == nil {
			_, err = now.BeginRollout(v, instances.Rollout{})
		}
		return err
	})
}

// upload keeps a copy of the archive. name is the version's name if source is a folder.
func (r *rollouts) upload(ctx context.Context, source, name string) (v instances.AppVersion, err error) {
	isArchive, err := bundle.IsArchive(source)
	if err != nil {
		return v, err
	}
	v = instances.AppVersion{Name: name, At: time.Now().UTC().Truncate(time.Second)}
	if isArchive {
		v.Name = filepath.Base(source)
	}
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

	if isArchive {
		err = copyFile(file, source)
	} else {
		err = bundle.Pack(file, source, r.settings.now().DataDir)
	}
	if err == nil {
		v.Digest, v.Size, err = archives.Digest(file.Name())
	}
	if err != nil {
		return v, err
	}
	if err := r.put(ctx, &v, file); err != nil {
		return v, fmt.Errorf("storing the archive for the other instances: %w", err)
	}

	if err := os.MkdirAll(filepath.Dir(r.path(&v)), 0o700); err != nil {
		return v, err
	}
	return v, os.Rename(file.Name(), r.path(&v))
}

func (r *rollouts) put(ctx context.Context, v *instances.AppVersion, file *os.File) error {
	store, err := r.store(ctx)
	if err != nil {
		return err
	}
	return store.Put(ctx, r.archiveName(v), file, v.Size)
}

func copyFile(to *os.File, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = to.ReadFrom(from)
	return err
}

func (r *rollouts) log() *slog.Logger { return r.opts.log("rollout") }

func (r *rollouts) run(ctx context.Context, fleet *instances.Fleet) {
	if r.control == nil {
		return
	}
	r.control.Run(ctx, &instances.RolloutOptions{Fleet: fleet,
		Active:  func() bool { return !r.life.stopping() && r.life.running() },
		Changed: r.desired.apply, Finished: r.finished, Tried: func(*instances.AppVersion, error) { r.prune() }, Log: r.log()})
}

func (r *rollouts) finished(ctx context.Context, now *instances.App, v *instances.AppVersion) {
	if now.Current.Number == v.Number {
		event.Deploy.Log(r.log(), slog.LevelInfo, "deployed to all instances", "version", v.Number)
	} else {
		event.Deploy.Log(r.log(), slog.LevelError, "deployment rolled back on all instances", "version", v.Number,
			"current", now.Current.Number, "err", now.Earlier[0].Error)
	}
	store, err := r.store(ctx)
	if err != nil {
		return
	}
	needed := neededDigests(now)
	for i := range now.Earlier {
		if old := &now.Earlier[i]; !slices.Contains(needed, old.Digest) {
			if err := store.Delete(ctx, r.archiveName(old)); err != nil {
				r.log().Debug("archive of an old version not deleted", "version", old.Number, "err", err)
			}
		}
	}
}

func neededDigests(now *instances.App) (digests []string) {
	for _, v := range append(now.Restorable(), now.Current, *cmp.Or(now.Next, &now.Current)) {
		digests = append(digests, v.Digest)
	}
	return digests
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
		return r.programs.app.DeployShared(ctx, path, shared(v))
	})
	failure := (*api.DeployError)(nil)
	switch {
	case errors.Is(err, app.ErrStopped), errors.As(err, &failure) && (failure.Aborted || failure.Stopped):
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

func (r *rollouts) prune() {
	now, _ := r.desired.state.Current()
	if now.App == nil {
		return
	}
	needed := neededDigests(now.App)
	dir := filepath.Join(r.settings.now().DataDir, archivesFolder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(needed, e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		r.log().Debug("archives of old versions not deleted", "err", err)
	}
}

func (r *rollouts) report() instances.AppReport {
	if r.control == nil || !r.life.running() || r.life.stopping() {
		return instances.AppReport{}
	}
	return r.control.Report()
}

func (r *rollouts) deploy(ctx context.Context, path string) (api.DeployResult, error) {
	if err := r.changes.awaitStart(ctx); err != nil {
		return api.DeployResult{}, err
	}
	return r.begin(ctx, func(current *instances.AppVersion) (plannedRollout, error) {
		planned := plannedRollout{how: rolloutPolicy(r.settings.now())}
		if path == "" {
			planned.version = *current
			planned.version.Of = 0
			return planned, nil
		}
		err := r.programs.app.Examine(path)
		if err == nil {
			planned.version, err = r.upload(ctx, path, filepath.Base(path))
		}
		return planned, err
	})
}

// rollBack deploys to all instances at once, and starts no delivery on the current version.
func (r *rollouts) rollBack(ctx context.Context, number int) (api.DeployResult, error) {
	if err := r.changes.awaitStart(ctx); err != nil {
		return api.DeployResult{}, err
	}
	return r.begin(ctx, func(*instances.AppVersion) (planned plannedRollout, err error) {
		to, err := api.ChooseVersion(r.versions(), number)
		if err != nil {
			return planned, err
		}
		now, _ := r.desired.state.Current()
		for _, v := range now.App.Restorable() {
			if v.Number == to.Number {
				v.Of = cmp.Or(v.Of, v.Number)
				return plannedRollout{v, instances.Rollout{Timeout: r.settings.now().RolloutTimeout}}, nil
			}
		}
		return planned, &api.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("version %d is no longer kept", to.Number)}
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

// begin reads the registry first, because the known state may be some seconds old.
func (r *rollouts) begin(ctx context.Context, choose func(current *instances.AppVersion) (plannedRollout, error),
) (done api.DeployResult, err error) {
	leases, err := r.leases(ctx)
	if err != nil {
		return done, notDeployed(err)
	}
	current, err := r.currentVersion(ctx, leases)
	if err != nil {
		return done, notDeployed(err)
	}
	planned, err := choose(current)
	if err != nil {
		return done, notDeployed(err)
	}

	v := planned.version
	v.By, v.At = api.CallerName(ctx), time.Now().UTC().Truncate(time.Second)
	v.Withdrawn, v.Error = false, ""
	_, err = r.desired.state.Change(ctx, leases, func(d *instances.Desired) (err error) {
		v, err = d.BeginRollout(v, planned.how)
		return err
	})
	if errors.Is(err, instances.ErrRolloutInProgress) {
		return done, inProgress(&v)
	}
	if err != nil {
		return done, notDeployed(err)
	}

	event.Deploy.Log(r.log(), slog.LevelInfo, "deployment to all instances started", "version", v.Number, "previous", current.Number,
		"by", v.By)
	r.desired.apply()
	return api.DeployResult{From: current.String(), To: v.String(), Of: v.Of, Rollout: v.Number}, nil
}

type plannedRollout struct {
	version instances.AppVersion
	how     instances.Rollout
}

func (r *rollouts) currentVersion(ctx context.Context, leases instances.Store) (*instances.AppVersion, error) {
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
	if own := (*api.Error)(nil); errors.As(err, &own) {
		own.Hint = "give them this version, the same --fleet-key-file and the same options"
	}
	if err == nil && now.App == nil {
		now, err = r.setFirstVersion(ctx)
	}
	if err != nil {
		return nil, err
	}
	current := now.App.Current
	return &current, nil
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
		return api.Deployment{}, api.NewError(http.StatusConflict, err.Error(), "'tendril versions' lists the deployed versions")
	}
	if err != nil {
		return api.Deployment{}, notDeployed(err)
	}
	r.desired.apply()
	aborted := &now.App.Earlier[0]
	event.Deploy.Log(r.log(), slog.LevelWarn, "deployment to all instances aborted", "version", aborted.Number, "reason", reason)
	return api.Deployment{State: api.DeployRolledBack, From: now.App.Current.String(), To: aborted.String(), Since: aborted.At,
		Ended: time.Now(), Error: reason, Aborted: true}, nil
}

func (r *rollouts) versions() (all []api.AppVersion) {
	now, _ := r.desired.state.Current()
	if now.App == nil {
		return r.programs.app.Versions()
	}
	kept := now.App.Restorable()
	list := append([]instances.AppVersion{now.App.Current}, now.App.Earlier...)
	if now.App.Next != nil {
		list = append([]instances.AppVersion{*now.App.Next}, list...)
	}
	for _, v := range list {
		one := api.AppVersion{Number: v.Number, Of: v.Of, Source: v.Name, Digest: v.Digest, DeployedAt: v.At, By: v.By, Size: v.Size,
			Error: v.Error}
		switch {
		case v.Error != "":
			one.State, one.Digest = api.VersionFailed, ""
		case v.Number == now.App.Current.Number:
			one.State = api.VersionLive
		case now.App.Next != nil && v.Number == now.App.Next.Number:
			one.State = api.VersionDeploying
		case slices.ContainsFunc(kept, func(k instances.AppVersion) bool { return k.Number == v.Number }):
			one.State = api.VersionKept
		default:
			continue // its archive was deleted
		}
		all = append(all, one)
	}
	return all
}
