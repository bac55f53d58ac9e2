package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/app"
	"tendril/internal/config"
	"tendril/internal/console/tokens"
	"tendril/internal/cron/tasks"
	"tendril/internal/observe/eventlog"
)

const (
	databaseFile = "queues.db"
	claimFile    = "instance.lock" // of every environment
)

// dataFiles are the names of what an environment keeps in its data directory.
var dataFiles = []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", databaseFile + "-journal",
	databaseFile + ".restored", broker.ReplacedFile, broker.ReplacedLogFile, broker.CreatedFile, "reserve", "inflight", "lock", claimFile, api.InstanceFile, api.TokenFile, tokens.Filename, tokens.UsedFilename,
	"app.version", app.VersionsFile, "versions", "get-config", tasks.TokenFile, tasks.HistoryFile, pausedFile,
	eventlog.CurrentFile, eventlog.OlderFile, eventlog.FailuresFile, eventlog.OlderFailuresFile}

// DataDirectory is the data directory of an environment that does not run. No other environment can start on it
// until it is closed.
type DataDirectory struct {
	// Path is the directory; "" when no environment ever ran on it.
	Path string
	// Queues are the embedded queues in it, sorted, with the number of their messages.
	Queues []StoredQueue

	release func() error // nil when nothing is locked
}

// StoredQueue is an embedded queue of a [DataDirectory].
type StoredQueue struct {
	Name     string
	Messages int64
}

// OpenDataDirectory locks the data directory of the settings and reads which queues are in it. The error wraps
// [ErrConflict] when an environment, or 'tendril serve', runs there.
func OpenDataDirectory(s *config.Settings) (*DataDirectory, error) {
	d := &DataDirectory{}
	entries, err := os.ReadDir(s.DataDir)
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !has(claimFile) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: data-dir: %w", ErrSettings, err)
	}
	d.release, err = api.Claim(s.DataDir)
	if errors.Is(err, api.ErrClaimed) {
		return nil, conflict{fmt.Errorf("%w; stop it first", err)}
	} else if err != nil {
		return nil, err
	}

	d.Path = s.DataDir
	if has(databaseFile) {
		if d.Queues, err = storedQueues(s.DataDir); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

func storedQueues(dir string) (queues []StoredQueue, err error) {
	b, err := broker.Open(dir, nil)
	if errors.Is(err, broker.ErrInUse) {
		return nil, conflict{err}
	} else if err != nil {
		return nil, err
	}
	for _, name := range b.ListQueues("") {
		ledger, wrong := b.Ledger(name)
		err = errors.Join(err, wrong)
		queues = append(queues, StoredQueue{name, ledger.Live})
	}
	return queues, errors.Join(err, b.Close())
}

// isOwn reports whether tendril made a file of the data directory. ".NAME.123" is NAME, whose write was cut short.
func isOwn(entry fs.DirEntry) bool {
	return slices.ContainsFunc(dataFiles, func(own string) bool {
		return entry.Name() == own || strings.HasPrefix(entry.Name(), "."+own+".")
	})
}

// Close lets other environments start on the directory again.
func (d *DataDirectory) Close() error {
	release := d.release
	if d.release = nil; release == nil {
		return nil
	}
	return release()
}

// Delete deletes the directory with everything that tendril keeps there, and closes it. Files of others stay, and
// with them the directory; left are their names.
func (d *DataDirectory) Delete() (left []string, err error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, entry := range entries {
		if !isOwn(entry) {
			left = append(left, entry.Name())
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.Path, entry.Name())))
	}
	err = errors.Join(err, d.Close())
	if len(left) == 0 {
		_ = os.Remove(d.Path) // what is a mount point, or in a folder of root's, stays and is empty
	}
	return left, err
}
