package console

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"tendril/datadir"
)

// claimFile is the name of the file in the data directory whose lock the one
// process holds that the other commands find there.
const claimFile = "instance.lock"

// ErrClaimed means that another process is the environment of the data
// directory.
var ErrClaimed = errors.New("another environment runs")

// Claim makes this process the one whose instance file and token lie in dataDir,
// which must exist, until release is called or the process ends, however it
// ends. Without it a second process would overwrite the files of the first, and
// remove them when it ends. The error wraps [ErrClaimed] when another living
// process has them.
func Claim(dataDir string) (release func() error, err error) {
	f, err := datadir.OpenFile(filepath.Join(dataDir, claimFile))
	if err != nil {
		return nil, fmt.Errorf("claiming the data directory: %w; name another with --data-dir", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = claimed(dataDir)
	case err != nil:
		err = fmt.Errorf("locking %s: %w; name another folder with --data-dir", f.Name(), err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Unlocked before it is closed: a process that is just being started may hold
	// a copy of the descriptor.
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}

// claimed says who has the directory, as far as that can be told: one that is
// starting has not written it down yet.
func claimed(dataDir string) error {
	if i, err := ReadInstance(dataDir); err == nil {
		return fmt.Errorf("%w on %s: %q, process %d", ErrClaimed, dataDir, i.Environment, i.PID)
	}
	return fmt.Errorf("%w on %s", ErrClaimed, dataDir)
}
