package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tendril/internal/host/datadir"
)

// StoredQueue describes a queue in a database file.
type StoredQueue struct {
	Name string `json:"name"`
	// Messages includes Damaged, the number of messages with a wrong checksum, which only [Backup] and [Restore] set.
	Messages int64 `json:"messages"`
	Damaged  int64 `json:"damaged,omitempty"`
}

// ErrUsed means that a data directory already holds queues.
var ErrUsed = errors.New("the data directory already holds queues")

// [Restore] keeps the previous database in these files.
const (
	ReplacedFile    = databaseName + ".replaced"
	ReplacedLogFile = ReplacedFile + "-wal"
)

// Inspect returns the queues in a data directory, sorted by name, or nil without a database. The directory may be in
// use.
func Inspect(dir string) (queues []StoredQueue, err error) {
	path := filepath.Join(dir, databaseName)
	if sizeOf(path) <= 0 {
		return nil, nil
	}
	c, err := openDatabase(path)
	if err != nil {
		return nil, adviseRestore(dir, err)
	}
	queues, err = c.storedQueues(false)
	return queues, errors.Join(adviseRestore(dir, err), c.close())
}

// Backup writes a verified snapshot of the database in dir to file, which must not exist. dir may be in use.
func Backup(dir, file string) ([]StoredQueue, error) {
	if err := checkPresence(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, databaseName)
	if sizeOf(path) <= 0 {
		return nil, fmt.Errorf("no queues in %s: %w", dir, fs.ErrNotExist)
	}
	if err := datadir.Make(dir); err != nil { // checks that no other user can write to it
		return nil, err
	}
	if sizeOf(file) >= 0 {
		return nil, fmt.Errorf("%s: %w; use another file, or remove this one", file, fs.ErrExist)
	}
	queues, err := copyDatabase(path, file, ``)
	return queues, adviseRestore(dir, err)
}

// afterBackup prevents the reuse of message IDs and receipt handles issued since the backup. It skips a million openings,
// 1,000 queues, and 67,108,864 messages per queue.
const afterBackup = `UPDATE meta SET value = value + 1000000 WHERE name = 'epoch';
	UPDATE meta SET value = value + 1000 WHERE name = 'queues';
	UPDATE counters SET next = next + 67108864 WHERE queue <> 0;`

// Restore copies a database, such as a backup, into a data directory that is not in use. If the directory holds
// queues, Restore returns [ErrUsed] or, with replace, keeps their database as [ReplacedFile].
func Restore(file, dir string, replace bool) (queues []StoredQueue, err error) {
	if sizeOf(file) <= 0 {
		return nil, fmt.Errorf("%s is not a backup: it is missing or empty", file)
	}
	if err := datadir.Make(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlockDir(lock)) }()

	if !replace && holdsData(dir) {
		return nil, fmt.Errorf("%w: %s", ErrUsed, dir)
	}
	path := filepath.Join(dir, databaseName)
	fresh := path + ".restored"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if queues, err = copyDatabase(file, fresh, afterBackup); err != nil {
		return nil, err
	}

	if err := setAside(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return nil, err
	}
	return queues, recordCreation(dir)
}

func setAside(dir string) error {
	path := filepath.Join(dir, databaseName)
	for _, suffix := range []string{"", "-wal"} {
		err := os.Rename(path+suffix, filepath.Join(dir, ReplacedFile+suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, suffix := range []string{"-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyDatabase(from, to, script string) (queues []StoredQueue, err error) {
	source, err := openDatabase(from)
	if err != nil {
		return nil, err
	}
	// CreateTemp makes the file private.
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return nil, errors.Join(err, source.close())
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	queues, err = fillCopy(f, source, script)
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if isCorrupt(err) {
		err = fmt.Errorf("copying %s: %w: %w", from, errDamaged, err)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return queues, nil
}

func fillCopy(f *os.File, source *conn, script string) ([]StoredQueue, error) {
	_, err := source.exec(`VACUUM INTO ?`, f.Name())
	if err = errors.Join(err, source.close()); err != nil {
		return nil, err
	}
	queues, err := verifyCopy(f.Name(), script)
	if err != nil {
		return nil, err
	}
	return queues, f.Sync()
}

func verifyCopy(path, script string) (queues []StoredQueue, err error) {
	c, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	if err = c.script(script); err == nil {
		err = c.check("integrity_check")
	}
	if err == nil {
		queues, err = c.storedQueues(true)
	}
	return queues, errors.Join(err, c.close())
}

func openDatabase(path string) (*conn, error) {
	if err := datadir.CheckFile(path); err != nil {
		return nil, err
	}
	c, err := connect(path, "", "")
	if err != nil {
		return nil, openFailure(path, err)
	}

	version, err := c.integer(`PRAGMA user_version`)
	if err == nil && (version < oldestReadable || version > schemaVersion) {
		err = fmt.Errorf("%s has format %d, but this program reads formats %d and %d", path,
			version, oldestReadable, schemaVersion)
	}
	if err != nil {
		return nil, errors.Join(openFailure(path, err), c.close())
	}
	return c, nil
}

func (c *conn) storedQueues(countDamaged bool) (queues []StoredQueue, err error) {
	counted, err := readCounters(c)
	if err != nil {
		return nil, err
	}

	index := map[int64]int{} // in queues, by number
	err = c.query(func(row row) {
		k := counted[row.int(0)]
		index[row.int(0)] = len(queues)
		queues = append(queues, StoredQueue{Name: row.text(1), Messages: k.live()})
	}, `SELECT number, name FROM queues ORDER BY name`)
	if err != nil || !countDamaged {
		return queues, err
	}

	return queues, c.eachRecord(func(r *record) {
		number := r.key >> seqBits
		i, found := index[number]
		if found && keySeq(r.key) > counted[number].floor && r.isDamaged() {
			queues[i].Damaged++
		}
	}, allColumns, `true`)
}
