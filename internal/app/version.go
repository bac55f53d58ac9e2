package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
)

// version is what one deployment runs.
type version struct {
	number int
	// bundle is nil for a command without a folder; command is empty when the
	// bundle's Procfile says what to run.
	bundle  *bundle.Bundle
	command []string
	origin  origin
	// files has the files of the folder as they were when the steps had run; read has those
	// that are read when a version is opened, as they were before the steps.
	files, read map[string]string
	// copied has the files of the folder that the version is a copy of, as they were then; nil for others.
	copied map[string]string
	// facts is the number under which its answers of get-config are published: that of the version for which its
	// processes were started.
	facts int
	// configOnly is true when only settings differ from the previous version.
	configOnly bool
	// unpacked is true when its folder was made for this deployment, from an archive or a folder.
	unpacked bool
	// restart is true when it is the previous version once more, which was asked for.
	restart bool
	// change is how its settings differ from those in force before it.
	change config.Change
}

// String names a version for people.
func (v version) String() string {
	if v.bundle == nil {
		return fmt.Sprintf("version %d", v.number)
	}
	return fmt.Sprintf("version %d (%s)", v.number, v.bundle.Dir)
}

// isNumber reports whether a number is the version's.
func (v version) isNumber(number int) bool { return v.number == number }

// dir is its folder; "" for none.
func (v version) dir() string {
	if v.bundle == nil {
		return ""
	}
	return v.bundle.Dir
}

// recordFiles remembers the folder as it is once the steps have run, which write there, so
// that a later change is found. A file that is read before the steps counts as it was then.
func (v *version) recordFiles() {
	if v.bundle == nil {
		return
	}
	v.files = fileStamps(v.bundle.Dir)
	maps.DeleteFunc(v.files, func(name, _ string) bool { return isRead(name) })
	maps.Copy(v.files, v.read)
}

// changedFiles returns the files that are new, gone or different since
// [version.recordFiles], or in the folder that was copied, sorted; cron.yaml and tendril.yaml are left out: they are read without a new version.
func (v version) changedFiles() (changed []string) {
	dir, before := v.dir(), v.files
	if v.copied != nil {
		dir, before = v.origin.source, v.copied
	}
	if dir == "" || !isFolder(dir) {
		return nil
	}
	now := fileStamps(dir)
	all := maps.Clone(now)
	maps.Copy(all, before)
	for name := range all {
		if before[name] != now[name] && name != "cron.yaml" && name != "tendril.yaml" {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// areSettings reports whether all files hold settings and nothing of the app.
func areSettings(files []string) bool {
	return !slices.ContainsFunc(files, func(name string) bool {
		return name != "env.yaml" && !strings.HasPrefix(name, ".ebextensions/") &&
			!strings.HasPrefix(name, ".platform/confighooks/")
	})
}

// readFiles are the files of a folder that are read when a version is opened.
func readFiles(dir string) map[string]string {
	files := fileStamps(dir)
	maps.DeleteFunc(files, func(name, _ string) bool { return !isRead(name) })
	return files
}

func isRead(name string) bool {
	return name == "Procfile" || name == "Buildfile" || name == "env.yaml" || strings.HasPrefix(name, ".ebextensions/")
}

// maxFolderFiles is the most files of a folder that one walk looks at.
const maxFolderFiles = 50_000

// writtenFolders are the names of folders that apps write to while they run, and builds write.
func writtenFolders() []string {
	return []string{".git", "node_modules", "__pycache__", "tmp", "log", "logs", "bin"}
}

// fileStamps returns the size and modification time of each file in a bundle's folder, by its path with slashes. It
// leaves out the folders that apps and builds write to, and files that cannot be read, and stops at maxFolderFiles files.
func fileStamps(dir string) map[string]string {
	written := writtenFolders()
	files := map[string]string{}
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // removed meanwhile, or not readable
		case d.IsDir() && slices.Contains(written, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil {
				files[name] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
			}
		}
		if len(files) >= maxFolderFiles {
			return fs.SkipAll
		}
		return nil
	})
	return files
}

// versionFile is the file in the data directory with the last number of a version.
const versionFile = "app.version"

// versionNumbers numbers the versions, so that one number names one version for ever: the
// last one is kept in a file. Without a file the numbers begin anew with each start.
type versionNumbers struct {
	path string // "" means no file
	log  *slog.Logger
	last int
}

// next returns the number of a new version.
func (v *versionNumbers) next() int {
	if v.path == "" {
		v.last++
		return v.last
	}
	stored, err := readNumber(v.path)
	v.last = max(v.last, stored) + 1
	if err = errors.Join(err, datadir.Replace(v.path, fmt.Appendln(nil, v.last), 0o600)); err != nil {
		v.log.Warn("version number not stored", "err", err, "hint", "the number may be used again after a restart")
	}
	return v.last
}

// readNumber returns the number in a file; 0 where there is no file.
func readNumber(path string) (int, error) {
	if err := datadir.CheckFile(path); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid number in %s: remove the file", path)
	}
	return int(n), nil
}
