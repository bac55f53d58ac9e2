package environment

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// fingerprintMost bounds how many files are looked at.
const fingerprintMost = 50_000

// look notes what is in the bundle's folder once its steps have run, which write there,
// so that a later change shows. Of files that were read before them, a change since then
// is a later one.
func (v *version) look() {
	if v.bundle == nil {
		return
	}
	v.files = fingerprint(v.bundle.Dir)
	maps.DeleteFunc(v.files, func(name, _ string) bool { return isRead(name) })
	maps.Copy(v.files, v.read)
}

// readFiles are those of a folder that are read when it is opened.
func readFiles(dir string) map[string]string {
	files := fingerprint(dir)
	maps.DeleteFunc(files, func(name, _ string) bool { return !isRead(name) })
	return files
}

func isRead(name string) bool {
	return name == "Procfile" || name == "Buildfile" || name == "env.yaml" || strings.HasPrefix(name, ".ebextensions/")
}

// fingerprint tells what is in a bundle's folder: size and time of each file, by
// its path with slashes. What an app writes while it runs is mostly below the
// folders that are left out.
func fingerprint(dir string) map[string]string {
	files := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile, or not ours to read
		}
		if d.IsDir() {
			if path != dir && slices.Contains([]string{".git", "node_modules", "__pycache__", "tmp", "log", "logs", "bin"},
				d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		if files[filepath.ToSlash(name)] = fmt.Sprint(info.Size(), info.ModTime().UnixNano()); len(files) >= fingerprintMost {
			return fs.SkipAll
		}
		return nil
	})
	return files
}

// changedFiles returns the files that are new, gone or different, sorted.
func changedFiles(before, now map[string]string) (changed []string) {
	for name, stamp := range now {
		if before[name] != stamp {
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, still := now[name]; !still {
			changed = append(changed, name)
		}
	}
	slices.SortFunc(changed, strings.Compare)
	return changed
}
