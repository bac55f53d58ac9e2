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
	"tendril/internal/console/tokens"
	"tendril/internal/cron/tasks"
	"tendril/internal/observe/eventlog"
)

const (
	databaseFile = "queues.db"
	claimFile    = "instance.lock"
)

// companionFiles are recreated when a database that was closed cleanly is opened in another directory.
var companionFiles = []string{broker.CreatedFile, "reserve", "inflight", "lock"}

var dataFiles = append([]string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", databaseFile + "-journal",
	databaseFile + ".restored", broker.ReplacedFile, broker.ReplacedLogFile, claimFile, api.InstanceFile, api.TokenFile,
	tokens.Filename, tokens.UsedFilename, "app.version", app.VersionsFile, "versions", "get-config", tasks.TokenFile,
	tasks.HistoryFile, pausedFile, desiredFile, archivesFolder, servedFolder,
	eventlog.CurrentFile, eventlog.OlderFile, eventlog.FailuresFile, eventlog.OlderFailuresFile,
	eventlog.EndingsFile, eventlog.OlderEndingsFile}, companionFiles...)

// DataDirectory is the data directory of a stopped environment. No environment can start on it until it is closed.
type DataDirectory struct {
	// Path is "" if no environment has used the directory.
	Path   string
	Queues []StoredQueue

	release func() error
}

// StoredQueue is an embedded queue in a [DataDirectory].
type StoredQueue struct {
	Name     string
	Messages int64
}

// OpenDataDirectory locks the data directory and reads its queues. The error wraps [ErrConflict] if the directory is in
// use, and [ErrSettings] if it is unreadable.
func OpenDataDirectory(dir string) (*DataDirectory, error) {
	d := &DataDirectory{}
	entries, err := os.ReadDir(dir)
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !has(claimFile) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: data-dir: %w", ErrSettings, err)
	}
	d.release, err = api.Claim(dir)
	if errors.Is(err, api.ErrClaimed) {
		return nil, conflict{fmt.Errorf("%w; stop it first", err)}
	} else if err != nil {
		return nil, err
	}

	d.Path = dir
	if has(databaseFile) {
		if d.Queues, err = storedQueues(dir); err != nil {
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

// isDataFile also accepts ".NAME.123", which an interrupted write of NAME left.
func isDataFile(entry fs.DirEntry) bool {
	return slices.ContainsFunc(dataFiles, func(own string) bool {
		return entry.Name() == own || strings.HasPrefix(entry.Name(), "."+own+".")
	})
}

// Close unlocks the directory.
func (d *DataDirectory) Close() error {
	release := d.release
	d.release = nil
	if release == nil {
		return nil
	}
	return release()
}

// Delete deletes tendril's files and closes the directory. If other files exist, it returns their names and keeps the
// directory.
func (d *DataDirectory) Delete() (left []string, err error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, entry := range entries {
		if !isDataFile(entry) {
			left = append(left, entry.Name())
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.Path, entry.Name())))
	}
	err = errors.Join(err, d.Close())
	if len(left) == 0 {
		_ = os.Remove(d.Path) // an empty mount point or protected folder may remain
	}
	return left, err
}
