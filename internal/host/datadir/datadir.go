package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tendril/internal/host/trust"
)

// ErrUnsafe means that another user decides, or can decide, what is in the data directory.
var ErrUnsafe = errors.New("unsafe data directory")

// environments is the folder of the state folder with the data directories of the environments.
const environments = "environments"

// Of is the data directory of an environment in a state folder; for "" the folder with those of all.
func Of(stateFolder, environment string) string {
	return filepath.Join(stateFolder, environments, environment)
}

// Make makes the data directory where it is missing, with mode 0700, and checks who may write one that was
// there. A symbolic link to a directory stands for that. The error says what to type; it wraps [ErrUnsafe]
// where another user owns or may write the directory.
func Make(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	info, missing := os.Stat(dir)
	if err := cmp.Or(err, missing); err != nil {
		return fmt.Errorf("making the data directory: %w; name another with --data-dir", err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return check(dir, info.Mode(), stat.Uid, stat.Gid, uint32(os.Geteuid()))
}

// check refuses a directory that others than the user self, or root, decide about.
func check(dir string, mode fs.FileMode, uid, gid, self uint32) error {
	switch trust.Decide(mode, uid, gid, self) {
	case trust.Owner:
		return fmt.Errorf("%w: %s belongs to the user %d, and this is the user %d; run tendril as its owner, or name "+
			"another with --data-dir", ErrUnsafe, dir, uid, self)
	case trust.Everybody, trust.Group:
		return fmt.Errorf("%w: other users may write to %s (mode %04o); type 'chmod go-w %s', or name another with "+
			"--data-dir", ErrUnsafe, dir, mode.Perm(), dir)
	}
	return nil
}

// OpenFile opens a file of the data directory for reading and writing, and makes it with mode 0600 where it is
// missing. A symbolic link is refused, and so is what is not a regular file.
func OpenFile(path string) (*os.File, error) {
	// NONBLOCK, so that a FIFO does not wait for its other end.
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

// Replace gives a file new content and a mode, whole or not at all: a reader sees the old
// content or the new. mode is 0600 for a file of the data directory.
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

// CheckFile refuses what OpenFile refuses, for files that others open. A file that is missing is in order.
func CheckFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = irregular(path, "a symbolic link")
	case err == nil && !info.Mode().IsRegular():
		err = irregular(path, "not a regular file")
	}
	return err
}

func irregular(path, what string) error {
	return fmt.Errorf("%s is %s; remove it, or name another data directory with --data-dir", path, what)
}

// IsPassage reports whether others than the owner may at most pass a folder of that mode: so it was
// made here, and the mode is not a choice of somebody else.
func IsPassage(mode fs.FileMode) bool { return mode.Perm()&^0o711 == 0 }

// LetGroupPass gives a folder to a group, whose members may pass it without a look at what is in it.
func LetGroupPass(folder string, gid int) error {
	if err := os.Lchown(folder, -1, gid); err != nil {
		return err
	}
	return os.Chmod(folder, 0o710)
}

// LetThrough lets a group pass the data directory. Where somebody chose a mode for it,
// its group stays, and others may pass at most: what is in there is the owner's alone.
func LetThrough(dir string, gid int) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if IsPassage(info.Mode()) {
		return LetGroupPass(dir, gid)
	}
	return os.Chmod(dir, info.Mode().Perm()|0o001)
}

// Identity is which directory and files some paths led to when they were opened. It tells later whether the open files
// are still the ones at their paths.
type Identity []identified

type identified struct {
	path string
	info fs.FileInfo
}

// Identify returns the identity of the paths; those that are missing are left out.
func Identify(paths ...string) (all Identity) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all = append(all, identified{path, info})
		}
	}
	return all
}

// Changed says which path no longer leads where it did; nil while all do.
func (all Identity) Changed() error {
	for _, one := range all {
		info, err := os.Stat(one.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s was removed or moved", one.path)
		case err != nil:
			return fmt.Errorf("%s cannot be reached: %w", one.path, err)
		case !os.SameFile(info, one.info):
			return fmt.Errorf("%s was replaced", one.path)
		}
	}
	return nil
}
