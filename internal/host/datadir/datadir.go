package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tendril/internal/host/trust"
)

// ErrUnsafe means that another user owns the data directory or can write to it.
var ErrUnsafe = errors.New("unsafe data directory")

const environments = "environments"

// Of returns an environment's data directory, or the parent of all data directories if environment is "".
func Of(stateFolder, environment string) string {
	return filepath.Join(stateFolder, environments, environment)
}

// Make creates the data directory with mode 0700, or checks an existing one. The error wraps [ErrUnsafe] if a user
// other than root or the current one owns it or can write to it. Make follows symbolic links.
func Make(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return fmt.Errorf("creating the data directory: %w; use another with --data-dir", err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return checkOwner(dir, info.Mode(), stat.Uid, stat.Gid, uint32(os.Geteuid()))
}

func checkOwner(dir string, mode fs.FileMode, uid, gid, self uint32) error {
	switch trust.Controllers(mode, uid, gid, self) {
	case trust.Owner:
		return fmt.Errorf("%w: %s belongs to user %d, but this is user %d; run tendril as its owner, or use another "+
			"with --data-dir", ErrUnsafe, dir, uid, self)
	case trust.AllUsers, trust.Group:
		return fmt.Errorf("%w: other users can write to %s (mode %04o); type 'chmod go-w %s', or use another with "+
			"--data-dir", ErrUnsafe, dir, mode.Perm(), dir)
	}
	return nil
}

// OpenFile opens or creates a file with mode 0600. It rejects symbolic links and other irregular files.
func OpenFile(path string) (*os.File, error) {
	// O_NONBLOCK keeps the open from blocking on a FIFO.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, irregular(path, "a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path, "not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Replace creates a file or atomically replaces its contents and mode.
func Replace(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReadJSON decodes a file into to, which stays unchanged if the file is missing. It rejects the same files as
// [CheckFile].
func ReadJSON(path string, to any) error {
	if err := CheckFile(path); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return json.Unmarshal(text, to)
}

// ReplaceJSON atomically replaces a file with an indented JSON value.
func ReplaceJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'), 0o600)
}

// CheckFile rejects symbolic links and other irregular files. A missing file is not an error.
func CheckFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return irregular(path, "a symbolic link")
	case !info.Mode().IsRegular():
		return irregular(path, "not a regular file")
	}
	return nil
}

// IsUnchanged reports whether a file has the same identity, size, modification time and mode as before. before may be
// nil.
func IsUnchanged(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() &&
		before.ModTime().Equal(now.ModTime()) && before.Mode() == now.Mode()
}

func irregular(path, what string) error {
	return fmt.Errorf("%s is %s; remove it, or use another data directory with --data-dir", path, what)
}

// AllowsOnlyTraversal reports whether the group and other users can at most traverse a folder. Otherwise, an
// administrator has probably chosen the mode.
func AllowsOnlyTraversal(mode fs.FileMode) bool { return mode.Perm()&^0o711 == 0 }

// AllowGroupTraversal changes a folder's group, which may then traverse but not list it. Other users have no access.
func AllowGroupTraversal(folder string, gid int) error {
	if err := os.Lchown(folder, -1, gid); err != nil {
		return err
	}
	return os.Chmod(folder, 0o710)
}

// AllowTraversal lets a group traverse the data directory. If an administrator has chosen its mode, the directory keeps
// its group, and all users may traverse it.
func AllowTraversal(dir string, gid int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if AllowsOnlyTraversal(info.Mode()) {
		return AllowGroupTraversal(dir, gid)
	}
	return os.Chmod(dir, info.Mode().Perm()|0o001)
}

// Identity identifies files, to detect replaced files later.
type Identity []identified

type identified struct {
	path string
	info fs.FileInfo
}

// Identify identifies the existing files among paths.
func Identify(paths ...string) (all Identity) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all = append(all, identified{path, info})
		}
	}
	return all
}

// Changed returns an error for the first file that was removed or replaced or is inaccessible, or nil.
func (all Identity) Changed() error {
	for _, one := range all {
		info, err := os.Stat(one.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s was removed or moved", one.path)
		case err != nil:
			return fmt.Errorf("accessing the data directory: %w", err)
		case !os.SameFile(info, one.info):
			return fmt.Errorf("%s was replaced", one.path)
		}
	}
	return nil
}
