package broker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tendril/datadir"
)

// lockDir takes the directory for this process until the returned file is
// closed or the process ends, however it ends. The lock lies in a file of its
// own: opening and closing the database file would drop SQLite's locks on it.
func lockDir(dir string) (*os.File, error) {
	f, err := datadir.OpenFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		err = fmt.Errorf("%w: process %s holds %s; stop it, or choose another data directory",
			ErrInUse, strings.TrimSpace(string(holder)), dir)
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unlockDir gives the directory free. It unlocks before it closes: a child
// process that is just being started may hold a copy of the descriptor.
func unlockDir(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}
