package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
)

type version struct {
	number  int
	bundle  *bundle.Bundle
	command []string
	origin  origin
	// read is the state of the bundle's configuration files when they were read. files is the folder's state after the
	// steps, with these files as in read.
	files, read map[string]string
	// copied is the source folder's state when it was copied, or nil.
	copied map[string]string
	// facts is the number of the version whose get-config values the processes use.
	facts      int
	configOnly bool
	unpacked   bool
	restart    bool
	change     config.Change
	shared     SharedVersion
}

func (v version) String() string {
	switch {
	case v.shared.Number != 0:
		return fmt.Sprintf("version %d (%s)", v.displayed(), v.shared.Name)
	case v.bundle == nil:
		return fmt.Sprintf("version %d", v.displayed())
	}
	return fmt.Sprintf("version %d (%s)", v.displayed(), filepath.Base(v.bundle.Dir))
}

// displayed returns the number for logs and events: the shared number if the version was deployed to all instances.
func (v version) displayed() int { return cmp.Or(v.shared.Number, v.number) }

func (v version) isNumber(number int) bool { return v.number == number }

func (v version) isFromBundle() bool { return v.bundle != nil && len(v.command) == 0 }

func (v version) dir() string {
	if v.bundle == nil {
		return ""
	}
	return v.bundle.Dir
}

func (v *version) recordFiles() {
	if v.bundle == nil {
		return
	}
	v.files = fileStamps(v.bundle.Dir)
	maps.DeleteFunc(v.files, func(name, _ string) bool { return isRead(name) })
	maps.Copy(v.files, v.read)
}

// changedFiles returns the files changed since the deployment. It ignores cron.yaml and tendril.yaml, which are
// reloaded without a new version.
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

func areSettings(files []string) bool {
	return !slices.ContainsFunc(files, func(name string) bool {
		return name != "env.yaml" && !strings.HasPrefix(name, ".ebextensions/") &&
			!strings.HasPrefix(name, ".platform/confighooks/")
	})
}

func readFiles(dir string) map[string]string {
	files := fileStamps(dir)
	maps.DeleteFunc(files, func(name, _ string) bool { return !isRead(name) })
	return files
}

func isRead(name string) bool {
	return name == "Procfile" || name == "Buildfile" || name == "env.yaml" || strings.HasPrefix(name, ".ebextensions/")
}

const maxFolderFiles = 50_000

func writtenFolders() []string {
	return []string{".git", "node_modules", "__pycache__", "tmp", "log", "logs", "bin"}
}

// fileStamps returns the size and time of each regular file by slash-separated path, for at most 50,000 files. It skips
// folders that apps and builds write to.
func fileStamps(dir string) map[string]string {
	files := map[string]string{}
	walkRegular(dir, writtenFolders(), func(name string, info fs.FileInfo) {
		files[name] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	})
	return files
}

func walkRegular(dir string, skipped []string, visit func(name string, info fs.FileInfo)) {
	_ = walkFiles(os.DirFS(dir), skipped, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				visit(name, info)
			}
		}
		return nil
	})
}

func walkFiles(dir fs.FS, skipped []string, visit fs.WalkDirFunc) error {
	files := 0
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if slices.Contains(skipped, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > maxFolderFiles {
			return fs.SkipAll
		}
		return visit(name, d, err)
	})
}

const versionFile = "app.version"

// versionNumbers are unique across restarts if path is set.
type versionNumbers struct {
	path string
	log  *slog.Logger
	last int
}

func (v *versionNumbers) next() int {
	if v.path == "" {
		v.last++
		return v.last
	}
	stored, err := readNumber(v.path)
	v.last = max(v.last, stored) + 1
	if err = errors.Join(err, datadir.Replace(v.path, fmt.Appendln(nil, v.last), 0o600)); err != nil {
		v.log.Warn("version number not stored", "err", err, "hint", "the number may be reused after a restart")
	}
	return v.last
}

func readNumber(path string) (int, error) {
	if err := datadir.CheckFile(path); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid number in %s: remove the file", path)
	}
	return int(n), nil
}
