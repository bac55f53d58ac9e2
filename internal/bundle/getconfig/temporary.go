package getconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const tempPrefix = "tendril-" + folderName + "-"

// makeTemp returns a nil claim if the file system does not support locks.
func makeTemp() (path string, claim *os.File, err error) {
	for {
		if path, err = os.MkdirTemp("", tempPrefix+"*"); err != nil {
			return "", nil, err
		}

		claim, err = claimFolder(path)
		if err == nil || errors.Is(err, errNoLocks) {
			return path, claim, nil
		}

		removeErr := os.RemoveAll(path)
		// Another starting process may have removed the new folder as a leftover.
		taken := errors.Is(err, errNotOurs) || errors.Is(err, fs.ErrNotExist)
		if removeErr != nil || !taken {
			return "", nil, errors.Join(err, removeErr)
		}
	}
}

func removeLeftovers() {
	dir := os.TempDir()
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if claim, err := claimFolder(path); err == nil {
			os.RemoveAll(path)
			claim.Close()
		}
	}
}

var (
	errNotOurs = errors.New("the folder belongs to another process or user")
	errNoLocks = errors.New("the folder cannot be locked")
)

func claimFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}

	switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		err = checkOwn(f, path)
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errNotOurs
	default:
		err = errNoLocks
	}

	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

func checkOwn(f *os.File, path string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if stat := opened.Sys().(*syscall.Stat_t); int(stat.Uid) != os.Geteuid() || !os.SameFile(opened, there) {
		return errNotOurs
	}
	return nil
}
