package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	ownerOnly = fs.FileMode(0o700)
	// passGroup lets the group through a folder without a look at what is in it.
	passGroup = fs.FileMode(0o710)
)

// CloseVersions leaves the versions in the data directory to their owner alone, also
// those that an earlier release left readable by everybody. No app may run from one.
func CloseVersions(dataDir string) error {
	versions := filepath.Join(dataDir, versionsFolder)
	info, err := os.Lstat(versions)
	if err != nil || !info.IsDir() {
		return nil // no archive was ever unpacked here
	}
	entries, err := os.ReadDir(versions)
	errs := []error{err, closeFolder(versions)}
	for _, e := range entries {
		if _, err := time.Parse(versionTime, e.Name()); err == nil && e.IsDir() {
			errs = append(errs, closeFolder(filepath.Join(versions, e.Name())))
		}
	}
	if info, err := os.Stat(dataDir); err == nil && os.Geteuid() == 0 && isPassage(info.Mode()) {
		errs = append(errs, os.Chmod(dataDir, ownerOnly))
	}
	return errors.Join(errs...)
}

func closeFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&^ownerOnly == 0 {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&ownerOnly)
}

// isPassage reports whether others than the owner may at most pass a folder: so it was
// made here, and the mode is no choice of somebody else.
func isPassage(mode fs.FileMode) bool { return mode.Perm()&^ownerOnly&^0o011 == 0 }

// ShareVersion lets the members of a group run what is in dir, a version that
// [UnpackVersion] returned or a folder in one: they may pass the data directory, and,
// where the version is fresh, so that nothing of it ever ran, get to read it. Others
// than they and the owner, who must be root, get nothing. It does nothing for a folder
// that lies elsewhere.
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
	err = errors.Join(err, letGroupPass(version, gid), letGroupPass(versions, gid), letThrough(dataDir, gid))
	if err != nil {
		return fmt.Errorf("letting the group %d of the app's user into %s: %w", gid, version, err)
	}
	return nil
}

// shareTree gives what is below a folder to a group, which may do what the owner may
// but not write. What somebody else owns, or has another name elsewhere, is left alone:
// the app may have put it there.
func shareTree(folder string, gid int) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." || !d.IsDir() && !d.Type().IsRegular() {
			return err // a link is as open as what it names
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

func letGroupPass(folder string, gid int) error {
	if err := os.Lchown(folder, -1, gid); err != nil {
		return err
	}
	return os.Chmod(folder, passGroup)
}

// letThrough lets a group pass the data directory. Where somebody chose a mode for it,
// its group stays, and others may pass at most: what is in there is the owner's alone.
func letThrough(dataDir string, gid int) error {
	info, err := os.Stat(dataDir)
	if err != nil {
		return err
	}
	if isPassage(info.Mode()) {
		return letGroupPass(dataDir, gid)
	}
	return os.Chmod(dataDir, info.Mode().Perm()|0o001)
}
