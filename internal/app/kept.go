package app

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/host/datadir"
)

// VersionsFile is the file in the data directory that lists the deployed versions.
const VersionsFile = "app-versions.json"

const maxVersions = 20

// keptVersions lists failed versions, and for each folder or command the last version deployed from it.
type keptVersions struct {
	path string
	log  *slog.Logger

	mu  sync.Mutex
	all []api.AppVersion
}

type storedVersions struct {
	Versions []api.AppVersion `json:"versions"`
}

// open ignores an unreadable file, which the next deployment replaces.
func (k *keptVersions) open() {
	if k.path == "" {
		return
	}
	var stored storedVersions
	if err := datadir.ReadJSON(k.path, &stored); err != nil {
		k.log.Warn("list of versions not read", "file", k.path, "err", err, "hint", "to go back to an earlier version, deploy its archive again")
	}

	for i := range stored.Versions {
		v := &stored.Versions[i]
		v.Folder = k.folderPath(v.Folder)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = stored.Versions
}

// Folders in the data directory are stored as relative paths, so that the directory can be moved. Earlier releases
// stored absolute paths.
func (k *keptVersions) folderPath(folder string) string {
	dir := k.dir()
	if folder != "" && !filepath.IsAbs(folder) {
		return filepath.Join(dir, folder)
	}
	const copies = "/versions/"
	if at := strings.LastIndex(folder, copies); at >= 0 && !isFolder(folder) {
		if moved := filepath.Join(dir, folder[at:]); isFolder(moved) {
			return moved
		}
	}
	return folder
}

func (k *keptVersions) stored() storedVersions {
	all := slices.Clone(k.all)
	for i := range all {
		if relative, err := filepath.Rel(k.dir(), all[i].Folder); err == nil && filepath.IsLocal(relative) {
			all[i].Folder = relative
		}
	}
	return storedVersions{all}
}

func (k *keptVersions) dir() string {
	dir, err := filepath.Abs(filepath.Dir(k.path))
	if err != nil {
		return filepath.Dir(k.path)
	}
	return dir
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (k *keptVersions) add(v api.AppVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = withVersion(k.all, v)
	if k.path == "" {
		return
	}
	if err := datadir.ReplaceJSON(k.path, k.stored()); err != nil {
		k.log.Warn("list of versions not written, its newest entry is lost at a restart", "file", k.path, "err", err)
	}
}

func withVersion(all []api.AppVersion, v api.AppVersion) []api.AppVersion {
	var kept []api.AppVersion
	for _, old := range all {
		switch {
		case old.Number == v.Number:
		case !isSameVersion(old, v):
			kept = append(kept, old)
		case v.Folder != "":
			v.Replaced = append(slices.Clone(old.Replaced), old.Number)
			v.Replaced = v.Replaced[max(len(v.Replaced)-maxVersions, 0):]
		}
	}
	kept = append(kept, v)
	return kept[max(len(kept)-maxVersions, 0):]
}

func isSameVersion(v, other api.AppVersion) bool {
	if v.State == api.VersionFailed || other.State == api.VersionFailed {
		return false
	}
	return v.Folder == other.Folder && (v.Folder != "" || v.Source == other.Source)
}

func (k *keptVersions) list(live int) []api.AppVersion {
	k.mu.Lock()
	all := slices.Clone(k.all)
	k.mu.Unlock()
	all = slices.DeleteFunc(all, func(v api.AppVersion) bool { return v.Folder != "" && !isFolder(v.Folder) })
	for i := range all {
		switch {
		case all[i].Number == live:
			all[i].State = api.VersionLive
		case all[i].InPlace:
			all[i].State = api.VersionInPlace
		}
	}
	slices.Reverse(all)
	return all
}

func folderSize(dir string) (size int64) {
	walkRegular(dir, nil, func(_ string, info fs.FileInfo) { size += info.Size() })
	return size
}

type origin struct {
	// source is the given archive or folder, or a shared version's name; may be "". isCopy means that tendril created
	// the version's folder.
	source string
	isCopy bool
	// of is the version that a rollback restored, or 0.
	of int
	by string
}

func (v version) listEntry() api.AppVersion {
	d := api.AppVersion{Number: v.number, State: api.VersionKept, Source: v.origin.source, Folder: v.dir(),
		InPlace: v.dir() != "" && !v.origin.isCopy, Of: v.origin.of, By: v.origin.by}
	if v.bundle == nil {
		d.Source = strings.Join(v.command, " ")
	}
	return d
}

func firstOrigin(o *Options) origin {
	from := origin{by: "start"}
	if o.Bundle != nil {
		from.source, from.isCopy = o.Bundle.Dir, o.Bundle.Archive != ""
		if from.isCopy {
			from.source = cmp.Or(o.Shared.Name, o.Bundle.Archive)
		}
	}
	return from
}

// RollBack replaces the serving version with an earlier one; number 0 selects the previous version.
func (a *App) RollBack(ctx context.Context, number int) (api.DeployResult, error) {
	if a.opts.stopping() {
		return api.DeployResult{}, ErrStopped
	}
	kept, err := api.ChooseVersion(a.Versions(), number)
	if err != nil {
		return api.DeployResult{}, err
	}
	v, err := a.open(kept.Folder, "")
	if err != nil {
		return api.DeployResult{}, err
	}
	v.origin = origin{source: kept.Source, isCopy: !kept.InPlace, of: cmp.Or(kept.Of, kept.Number), by: deployedBy(ctx)}
	return a.deploy(ctx, v)
}

// Versions returns up to 20 versions, newest first, including failed deployments but not versions whose folder is gone.
func (a *App) Versions() []api.AppVersion {
	return a.versions.list(a.replicas.current().number)
}

func deployedBy(ctx context.Context) string { return cmp.Or(api.CallerName(ctx), "signal") }

func (a *App) recordServing(v version) {
	listEntry := v.listEntry()
	listEntry.DeployedAt = time.Now()
	if v.bundle != nil {
		listEntry.Size = folderSize(v.bundle.Dir)
	}
	a.versions.add(listEntry)
}

func (a *App) recordFailed(v version, cause error) {
	listEntry := v.listEntry()
	listEntry.State, listEntry.Folder = api.VersionFailed, ""
	listEntry.DeployedAt, listEntry.Error = time.Now(), reasonOf(cause)
	a.versions.add(listEntry)
}
