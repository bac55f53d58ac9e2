package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tendril/internal/host/datadir"
)

const (
	// versionsFolder contains TIME/NAME. NAME is the archive's or source folder's, and names the environment.
	versionsFolder = "versions"
	versionTime    = "20060102T150405.000Z" // sorts chronologically
	keptVersions   = 5                      // per data directory
)

// UnpackVersion unpacks an archive, or copies a folder, to a new folder in the data directory, and returns its absolute
// path. Only the owner can enter the folder; see [ShareVersion].
func UnpackVersion(dataDir, source string, now time.Time) (string, error) {
	isArchive, err := IsArchive(source)
	if err != nil {
		return "", err
	}
	dataDir, err = filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}
	fresh, err := newVersionFolder(dataDir, now)
	if err != nil {
		return "", err
	}

	dir := filepath.Join(fresh, ArchiveName(source))
	if isArchive {
		err = Unpack(source, dir)
	} else {
		err = copyFolder(source, dir, dataDir)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(fresh))
	}
	return dir, nil
}

func newVersionFolder(dataDir string, now time.Time) (string, error) {
	versions := filepath.Join(dataDir, versionsFolder)
	if err := datadir.Make(dataDir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(versions, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for versions of the app: %w", err)
	}

	for ; ; now = now.Add(time.Millisecond) {
		fresh := filepath.Join(versions, now.UTC().Format(versionTime))
		err := os.Mkdir(fresh, 0o700)
		if err == nil {
			return fresh, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("creating the folder for a version of the app: %w", err)
		}
	}
}

// ArchiveName returns the name for a copy of path: its last element without .zip, with "-" for special characters, at
// most 100 characters.
func ArchiveName(path string) string {
	name := filepath.Base(path)
	if ending := filepath.Ext(name); strings.EqualFold(ending, ".zip") {
		name = strings.TrimSuffix(name, ending)
	}
	if name = strings.Trim(dashed(name, "."), ".-"); name == "" {
		return "app"
	}
	return name[:min(len(name), 100)]
}

// RemoveVersion deletes a version created by [UnpackVersion].
func RemoveVersion(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }

// PruneVersions deletes old versions, and leftovers of interrupted unpacking, from the data directory of dir, a version
// from [UnpackVersion] that may have been deleted. It keeps the newest five, dir, and versions that contain a path in
// inUse.
func PruneVersions(dir string, inUse ...string) error {
	versions := filepath.Dir(filepath.Dir(dir))
	entries, err := os.ReadDir(versions) // oldest first
	if err != nil {
		return fmt.Errorf("deleting old versions of the app: %w", err)
	}

	newest := 0
	var errs []error
	for _, e := range slices.Backward(entries) {
		if _, err := time.Parse(versionTime, e.Name()); err != nil || !e.IsDir() {
			continue
		}

		folder := filepath.Join(versions, e.Name())
		switch {
		case newest < keptVersions:
			if isUnpacked(folder) { // may still be unpacking
				newest++
			}
		case within(folder, dir) || slices.ContainsFunc(inUse, func(path string) bool { return within(folder, path) }):
			// dir is not the newest if the clock was set back.
		default:
			if err := os.RemoveAll(folder); err != nil {
				errs = append(errs, fmt.Errorf("deleting an old version of the app: %w", err))
			}
		}
	}

	return errors.Join(errs...)
}

func isUnpacked(folder string) bool {
	inside, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") })
}

func within(folder, path string) bool {
	return strings.HasPrefix(path+string(filepath.Separator), folder+string(filepath.Separator))
}

const ownerOnly = fs.FileMode(0o700)

// RestrictVersions limits access to the versions in the data directory to their owner. No app may be running in one.
func RestrictVersions(dataDir string) error {
	versions := filepath.Join(dataDir, versionsFolder)
	info, err := os.Lstat(versions)
	if err != nil || !info.IsDir() {
		return nil
	}

	entries, err := os.ReadDir(versions)
	errs := []error{err, restrictFolder(versions)}
	for _, e := range entries {
		if _, err := time.Parse(versionTime, e.Name()); err == nil && e.IsDir() {
			errs = append(errs, restrictFolder(filepath.Join(versions, e.Name())))
		}
	}

	if info, err := os.Stat(dataDir); err == nil && os.Geteuid() == 0 && datadir.AllowsOnlyTraversal(info.Mode()) {
		errs = append(errs, os.Chmod(dataDir, ownerOnly))
	}

	return errors.Join(errs...)
}

func restrictFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&^ownerOnly == 0 {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&ownerOnly)
}

// ShareVersion lets a group pass through the folders above dir, which is in a version from [UnpackVersion]. If fresh is
// true, the group may also read and run the version's files as their owner may; nothing in the version may have run
// yet. Other folders are ignored.
func ShareVersion(dataDir, dir string, gid int, fresh bool) error {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}

	versions := filepath.Join(dataDir, versionsFolder)
	below, in := strings.CutPrefix(dir, versions+string(filepath.Separator))
	if !in {
		return nil
	}

	name, _, _ := strings.Cut(below, string(filepath.Separator))
	version := filepath.Join(versions, name)
	if fresh {
		err = shareTree(version, gid)
	}

	err = errors.Join(err, datadir.AllowGroupTraversal(version, gid), datadir.AllowGroupTraversal(versions, gid),
		datadir.AllowTraversal(dataDir, gid))
	if err != nil {
		return fmt.Errorf("giving group %d of the app's user access to %s: %w", gid, version, err)
	}

	return nil
}

// AllowTraversalByAll lets all users pass through the folders above dir, a version from [UnpackVersion], because it may
// start processes of other users. It does nothing unless tendril runs as root and all users can pass through dir.
func AllowTraversalByAll(dataDir, dir string) error {
	const pass = 0o001
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}

	version := filepath.Dir(dir)
	versions := filepath.Dir(version)
	isCopy := versions == filepath.Join(dataDir, versionsFolder)
	if os.Geteuid() != 0 || !isCopy || info.Mode()&pass == 0 {
		return nil
	}
	for _, folder := range []string{version, versions, dataDir} {
		info, err := os.Stat(folder)
		if err == nil {
			err = os.Chmod(folder, info.Mode().Perm()|pass)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shareTree gives the group the owner's permissions, except for writing. It skips files of other owners and files with
// hard links, which may come from the app.
func shareTree(folder string, gid int) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." || !d.IsDir() && !d.Type().IsRegular() {
			return err // symbolic links have no permissions of their own; ignore sockets and other special files
		}

		info, err := d.Info()
		if err != nil {
			return err
		}

		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(stat.Uid) != os.Geteuid() || !d.IsDir() && stat.Nlink > 1 {
			return nil
		}
		if err := root.Lchown(path, -1, gid); err != nil {
			return err
		}

		owner := info.Mode().Perm() & 0o700
		return root.Chmod(path, owner|owner>>3&0o050)
	})
}
