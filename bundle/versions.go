package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tendril/datadir"
)

const (
	// versionsFolder is the folder in the data directory in which archives are
	// unpacked: versions/TIME/NAME, so that the app's folder has the archive's
	// name, after which the environment is called.
	versionsFolder = "versions"
	// versionTime is the form of TIME, which sorts as the times do.
	versionTime = "20060102T150405.000Z"
	// keptVersions is how many unpacked versions are kept, whatever their names,
	// which often have the version's number in them.
	keptVersions = 3
)

// UnpackVersion unpacks an archive into a fresh folder in the data directory,
// which it makes where need be, and returns the folder's absolute path. Only the
// owner can enter it: see [ShareVersion].
func UnpackVersion(dataDir, archive string, now time.Time) (string, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}
	versions := filepath.Join(dataDir, versionsFolder)
	if err := datadir.Make(dataDir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(versions, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for versions of the app: %w", err)
	}
	for ; ; now = now.Add(time.Millisecond) {
		fresh := filepath.Join(versions, now.UTC().Format(versionTime))
		if err := os.Mkdir(fresh, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("making a folder for a version of the app: %w", err)
		}
		dir := filepath.Join(fresh, ArchiveName(archive))
		if err := Unpack(archive, dir, nil); err != nil {
			return "", errors.Join(err, os.Remove(fresh))
		}
		return dir, nil
	}
}

// ArchiveName is the name of an archive without its ending, fit to be that of a
// folder.
func ArchiveName(path string) string {
	name := filepath.Base(path)
	if ending := filepath.Ext(name); strings.EqualFold(ending, ".zip") {
		name = strings.TrimSuffix(name, ending)
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name, ".-"); name == "" {
		return "app"
	}
	return name[:min(len(name), 100)]
}

// RemoveVersion removes what [UnpackVersion] made.
func RemoveVersion(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }

// PruneVersions removes all versions in the data directory but the newest three,
// dir, and those that inUse names or that hold what it names. The data directory is
// that of dir, a path as [UnpackVersion] returned it; whether dir is still there does
// not matter. What an unpacking that was broken off left goes with the versions that
// are as old. What cannot be removed is left, and told.
func PruneVersions(dir string, inUse ...string) error {
	versions := filepath.Dir(filepath.Dir(dir))
	entries, err := os.ReadDir(versions) // the oldest first
	if err != nil {
		return fmt.Errorf("old versions of the app are kept: %w", err)
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
			if isUnpacked(folder) { // or somebody may be at it
				newest++
			}
		case within(folder, dir) || slices.ContainsFunc(inUse, func(path string) bool { return within(folder, path) }):
			// dir too: where the clock was set back the newest is not the last
		default:
			if err := os.RemoveAll(folder); err != nil {
				kept = append(kept, fmt.Errorf("an old version of the app is kept: %w", err))
			}
		}
	}
	return errors.Join(kept...)
}

// isUnpacked reports whether there is a version in the folder, rather than nothing or
// the hidden beginning of one.
func isUnpacked(folder string) bool {
	inside, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") })
}

// within reports whether a path is that of the folder or of something in it.
func within(folder, path string) bool {
	return strings.HasPrefix(path+string(filepath.Separator), folder+string(filepath.Separator))
}
