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
	// versionsFolder is the folder in the data directory in which archives are unpacked: versions/TIME/NAME, so that
	// the app's folder has the archive's name, after which the environment is called.
	versionsFolder = "versions"
	versionTime    = "20060102T150405.000Z" // sorts as the times do
	keptVersions   = 5                      // whatever their names, which often have the version's number in them
)

// UnpackVersion unpacks an archive, or copies a folder, into a fresh folder in the data directory, which it makes where
// need be, and returns the folder's absolute path. Only the owner can enter it: see [ShareVersion].
func UnpackVersion(dataDir, source string, now time.Time) (string, error) {
	isArchive, err := IsArchive(source)
	if err != nil {
		return "", err
	}

	dataDir, err = filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}

	versions := filepath.Join(dataDir, versionsFolder)
	if err := datadir.Make(dataDir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(versions, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for versions of the app: %w", err)
	}

	for ; ; now = now.Add(time.Millisecond) {
		fresh := filepath.Join(versions, now.UTC().Format(versionTime))
		if err := os.Mkdir(fresh, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("creating the folder for a version of the app: %w", err)
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
}

// ArchiveName is the name of an archive without its ending, fit to be that of a folder.
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

// RemoveVersion removes a version that [UnpackVersion] made.
func RemoveVersion(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }

// PruneVersions removes all versions in the data directory but the newest five, dir, and those that inUse names or
// that hold what it names. The data directory is that of dir, a path as [UnpackVersion] returned it; whether dir is
// still there does not matter. What an unpacking that was broken off left goes with the versions that are as old.
// What cannot be removed is left, and told.
func PruneVersions(dir string, inUse ...string) error {
	versions := filepath.Dir(filepath.Dir(dir))
	entries, err := os.ReadDir(versions) // the oldest first
	if err != nil {
		return fmt.Errorf("deleting old versions of the app: %w", err)
	}

	newest := 0
	var kept []error
	for _, e := range slices.Backward(entries) {
		if _, err := time.Parse(versionTime, e.Name()); err != nil || !e.IsDir() {
			continue
		}

		folder := filepath.Join(versions, e.Name())
		switch {
		case newest < keptVersions:
			if isUnpacked(folder) { // else it may still be in the making
				newest++
			}
		case within(folder, dir) || slices.ContainsFunc(inUse, func(path string) bool { return within(folder, path) }):
			// dir too: where the clock was set back the newest is not the last
		default:
			if err := os.RemoveAll(folder); err != nil {
				kept = append(kept, fmt.Errorf("deleting an old version of the app: %w", err))
			}
		}
	}

	return errors.Join(kept...)
}

// isUnpacked reports whether there is a version in the folder, rather than nothing or the hidden beginning of one.
func isUnpacked(folder string) bool {
	inside, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") })
}

func within(folder, path string) bool {
	return strings.HasPrefix(path+string(filepath.Separator), folder+string(filepath.Separator))
}

const ownerOnly = fs.FileMode(0o700)

// CloseVersions leaves the versions in the data directory to their owner alone, also
// those that an earlier release left readable by every user. No app may run from one.
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

	if info, err := os.Stat(dataDir); err == nil && os.Geteuid() == 0 && datadir.IsPassage(info.Mode()) {
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

// ShareVersion lets the members of a group run the programs in dir, a version that [UnpackVersion] returned or a folder
// in one: they may pass the data directory, and, where the version is fresh, so that nothing of it ever ran, get to
// read it. Others than they and the owner, who must be root, get nothing. It does nothing for a folder that lies
// elsewhere.
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

	err = errors.Join(err, datadir.LetGroupPass(version, gid), datadir.LetGroupPass(versions, gid),
		datadir.LetThrough(dataDir, gid))
	if err != nil {
		return fmt.Errorf("allowing the group %d of the app's user to enter %s: %w", gid, version, err)
	}

	return nil
}

// LetEverybodyPass lets every user pass the folders above dir, the copy of a folder that every user may enter: hooks and
// the app may start processes of other users. It does nothing unless root made the copy, who alone can start such
// processes, and for a folder that is not a version's.
func LetEverybodyPass(dataDir, dir string) error {
	const pass = 0o001
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}

	version := filepath.Dir(dir)
	versions := filepath.Dir(version)
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 || info.Mode()&pass == 0 || versions != filepath.Join(dataDir, versionsFolder) {
		return err
	}

	for _, folder := range []string{version, versions, dataDir} {
		if info, err = os.Stat(folder); err == nil {
			err = os.Chmod(folder, info.Mode().Perm()|pass)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// shareTree gives what is below a folder to a group, which may do what the owner may but not write. What somebody
// else owns, or has another name elsewhere, is left alone: the app may have put it there.
func shareTree(folder string, gid int) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." || !d.IsDir() && !d.Type().IsRegular() {
			return err // a link is as open as its target
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
