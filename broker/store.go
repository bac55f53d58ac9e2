package broker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/host/datadir"
)

// The database schema:
//
//	queues     one row per queue
//	counters   one row per queue: the ledger, the next free position, and the
//	           floor, up to which everything is purged. Row 0 is the sum of
//	           the deleted queues.
//	messages   id is the queue's number << 40 | position. due is set on
//	           messages sent with a delay (Unix milliseconds); origin,
//	           received, first, dead and source on messages from another
//	           queue. size is attributes and body in bytes, sum a checksum.
//	receipts   the state of received messages: receive count, first receive,
//	           visibility deadline, and unread, the number of receives that
//	           do not count
//	attempts   the failed attempts of each message: history has one line of
//	           JSON per attempt, oldest first. Dead letters always have a
//	           row. at is the time of dead-lettering or, in other queues, of
//	           the last failure (Unix milliseconds); similar failures have
//	           the same reason.
//	reasons    the number of attempts rows per queue, reason and hour of at
//	dedup      deduplication IDs of the last five minutes
//	departed   names of queues deleted in the last minute
//	moves      the last move tasks of each source queue. high is the last id to
//	           move, filter selects messages (JSON), deletes means they are
//	           deleted instead.
//	garbage    ranges of purged messages to be removed
//	meta       the secret of IDs and receipt handles, the epoch, the number of
//	           the last queue
//	leases     the leader of each lease
//	fires      the scheduled runs of the last 30 days and their messages. at is
//	           the scheduled time, path the URL path in the app.
//	tasks      the scheduled time of each periodic task's last run, and the
//	           schedule it was based on (NULL: unknown)
//	task_starts the time from which a task exists with its schedule. Tasks
//	           added by a version without this table have no row.
//	paused     the paused periodic tasks
const schema = `
CREATE TABLE meta (
	name TEXT PRIMARY KEY, value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE queues (
	number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
	attributes TEXT NOT NULL, tags TEXT NOT NULL,
	created INTEGER NOT NULL, modified INTEGER NOT NULL, purged_at INTEGER NOT NULL
);
CREATE TABLE counters (
	queue INTEGER PRIMARY KEY, next INTEGER NOT NULL, floor INTEGER NOT NULL,
	sent INTEGER NOT NULL, done INTEGER NOT NULL, dead_lettered INTEGER NOT NULL,
	moved_in INTEGER NOT NULL, moved_out INTEGER NOT NULL,
	expired INTEGER NOT NULL, purged INTEGER NOT NULL
);
CREATE TABLE messages (
	id INTEGER PRIMARY KEY, sent INTEGER NOT NULL, sum INTEGER NOT NULL, size INTEGER NOT NULL,
	due INTEGER, origin INTEGER, received INTEGER, first INTEGER, dead INTEGER, source TEXT,
	group_id TEXT, dedup_id TEXT, trace TEXT, attributes BLOB, body TEXT NOT NULL
);
CREATE INDEX delayed ON messages (id >> 40, due) WHERE due IS NOT NULL;
CREATE INDEX moved ON messages (origin) WHERE origin IS NOT NULL;
CREATE INDEX moved_sent ON messages (id >> 40, sent) WHERE origin IS NOT NULL;
CREATE TABLE receipts (
	id INTEGER PRIMARY KEY, count INTEGER NOT NULL, first INTEGER NOT NULL,
	received_at INTEGER NOT NULL, until INTEGER NOT NULL, epoch INTEGER NOT NULL, unread INTEGER
);
` + attemptsSchema + `
CREATE TABLE dedup (
	queue INTEGER NOT NULL, dedup_id TEXT NOT NULL, group_id TEXT NOT NULL,
	message INTEGER NOT NULL, expires INTEGER NOT NULL,
	PRIMARY KEY (queue, dedup_id, group_id)
) WITHOUT ROWID;
CREATE INDEX dedup_expires ON dedup (expires);
CREATE TABLE departed (
	name TEXT PRIMARY KEY, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE moves (
	number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source INTEGER NOT NULL, destination TEXT NOT NULL,
	deletes INTEGER NOT NULL, filter TEXT NOT NULL, rate INTEGER NOT NULL, high INTEGER NOT NULL, started INTEGER NOT NULL,
	status TEXT NOT NULL, reason TEXT NOT NULL, moved INTEGER NOT NULL, to_move INTEGER NOT NULL
);
CREATE TABLE garbage (
	low INTEGER PRIMARY KEY, high INTEGER NOT NULL
);
CREATE TABLE leases (
	name TEXT PRIMARY KEY, version TEXT NOT NULL, term INTEGER NOT NULL, owner TEXT NOT NULL,
	duration INTEGER NOT NULL, released INTEGER NOT NULL, data TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE fires (
	id TEXT PRIMARY KEY, task TEXT NOT NULL, queue TEXT NOT NULL, at INTEGER NOT NULL, term INTEGER NOT NULL,
	recorded INTEGER NOT NULL, message TEXT NOT NULL, sequence TEXT NOT NULL, path TEXT
) WITHOUT ROWID;
CREATE INDEX fires_recorded ON fires (recorded);
CREATE TABLE tasks (
	task TEXT PRIMARY KEY, last INTEGER NOT NULL, schedule TEXT
) WITHOUT ROWID;
CREATE TABLE paused (
	task TEXT PRIMARY KEY, reason TEXT NOT NULL
) WITHOUT ROWID;
` + taskStartsSchema + `
`

// taskStartsSchema also adds the table to databases of format 5 and early ones of format 6. Programs without it
// ignore the table, so the format number is unchanged.
const taskStartsSchema = `
CREATE TABLE IF NOT EXISTS task_starts (
	task TEXT PRIMARY KEY, at INTEGER NOT NULL
) WITHOUT ROWID;`

const attemptsSchema = `
CREATE TABLE attempts (
	id INTEGER PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, history TEXT NOT NULL
);
CREATE INDEX attempts_reason ON attempts (id >> 40, reason);
CREATE TABLE reasons (
	queue INTEGER NOT NULL, reason TEXT NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL,
	PRIMARY KEY (queue, reason, hour)
) WITHOUT ROWID;
`

// Existing dead letters count as failed without an attempt.
const fromFormat5 = attemptsSchema + taskStartsSchema + `
ALTER TABLE moves ADD COLUMN deletes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE moves ADD COLUMN filter TEXT NOT NULL DEFAULT '{}';
INSERT INTO attempts (id, at, reason, history)
	SELECT id, dead, '', '' FROM messages WHERE origin IS NOT NULL AND dead IS NOT NULL
	AND NOT EXISTS (SELECT 1 FROM garbage WHERE messages.id > low AND messages.id <= high);
INSERT INTO reasons (queue, reason, hour, count)
	SELECT id >> 40, '', at / 3600000, count(*) FROM attempts GROUP BY id >> 40, at / 3600000;
`

// The version is stored in PRAGMA user_version.
const (
	schemaVersion  = 6
	oldestReadable = 5
)

type store struct {
	write  *conn
	reads  chan *conn
	open   int
	full   bool // PRAGMA synchronous is FULL
	closed bool
}

const (
	databaseName = "queues.db"
	readers      = 3
)

// CreatedFile in the data directory records when the database was created.
const CreatedFile = "queues.created"

// If CreatedFile exists, an empty database would hide a loss of messages.
func refuseEmpty(dir, what string) error {
	created, err := os.ReadFile(filepath.Join(dir, CreatedFile))
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, databaseName)
	replace, obstacles := "", CreatedFile
	if holdsData(dir) {
		replace = "--replace "
	}
	if sizeOf(path) <= 0 && sizeOf(path+"-wal") > 0 { // see checkPresence
		obstacles += " and " + databaseName + "-wal"
	}
	return fmt.Errorf("%s in %s %s, but %s records that it was created on %s; type 'tendril restore BACKUP %s--data-dir "+
		"%s', or remove %s to start with empty queues", databaseName, dir, what, CreatedFile, bytes.TrimSpace(created),
		replace, dir, obstacles)
}

// holdsData reports whether the directory has a database or log with content.
func holdsData(dir string) bool {
	path := filepath.Join(dir, databaseName)
	return sizeOf(path) > 0 || sizeOf(path+"-wal") > 0
}

func checkPresence(dir string) error {
	path := filepath.Join(dir, databaseName)
	size := sizeOf(path)
	if size > 0 {
		return nil
	}
	what := "is missing"
	if size == 0 {
		what = "is empty"
	}

	if err := refuseEmpty(dir, what); err != nil {
		return err
	}
	if sizeOf(path+"-wal") > 0 {
		return fmt.Errorf("%s in %s %s, but its log %[1]s-wal exists; restore the file that the log belongs to, or "+
			"type 'tendril restore BACKUP --replace --data-dir %[2]s', or remove the log to start with empty "+
			"queues", databaseName, dir, what)
	}
	return nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

func recordCreation(dir string) error {
	path := filepath.Join(dir, CreatedFile)
	if sizeOf(path) >= 0 {
		return nil
	}
	return datadir.Replace(path, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600)
}

func openStore(dir, vfs string, cache int64) (*store, error) {
	path := filepath.Join(dir, databaseName)
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := datadir.CheckFile(path + suffix); err != nil {
			return nil, err
		}
	}

	if err := checkPresence(dir); err != nil {
		return nil, err
	}
	// SQLite gives its other files the same mode, so all are private to the owner.
	f, err := datadir.OpenFile(path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}

	s := &store{reads: make(chan *conn, readers)}
	if err := s.connect(dir, vfs, cache); err != nil {
		return nil, errors.Join(adviseRestore(dir, openFailure(path, err)), s.close())
	}
	return s, nil
}

func (s *store) connect(dir, vfs string, cache int64) (err error) {
	path := filepath.Join(dir, databaseName)
	// With automatic checkpoints, opening would wait until a killed process's log is copied into the database.
	s.write, err = connect(path, vfs, `
		PRAGMA wal_autocheckpoint = 0; PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;
		PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
		PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
		PRAGMA journal_size_limit = `+strconv.Itoa(logLimit)+cachePragma(cache))
	if err != nil {
		return err
	}
	if err := s.createTables(dir); err != nil {
		return err
	}

	for s.open < readers {
		r, err := connect(path, vfs, `PRAGMA query_only = ON`+cachePragma(cache/4))
		if err != nil {
			return err
		}
		s.reads <- r
		s.open++
	}
	return nil
}

func cachePragma(size int64) string { return fmt.Sprintf("; PRAGMA cache_size = -%d", size>>10) }

var errDamaged = errors.New("the file is damaged")

func openFailure(path string, err error) error {
	if isCorrupt(err) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return fmt.Errorf("opening %s: %w", path, err)
}

func adviseRestore(dir string, err error) error {
	if isDamage(err) {
		return fmt.Errorf("%w; %s", err, restoreAdvice(dir))
	}
	return err
}

// loggedError returns a storage error's cause, because the error's own message refers to the log.
func loggedError(dir string, err error) error {
	return adviseRestore(dir, cmp.Or(errors.Unwrap(err), err))
}

func restoreAdvice(dir string) string {
	return fmt.Sprintf("type 'tendril restore BACKUP --replace --data-dir %s' (docs/backup.md)", dir)
}

func isDamage(err error) bool { return isCorrupt(err) || errors.Is(err, errDamaged) }

const busyTimeout = `PRAGMA busy_timeout = 10000`

func connect(path, vfs, pragmas string) (*conn, error) {
	c, err := openConn(path, vfs)
	if err != nil {
		return nil, err
	}
	err = c.script(busyTimeout + `; PRAGMA temp_store = MEMORY;
		PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; ` + pragmas)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// createTables also upgrades a database of format 5.
func (s *store) createTables(dir string) error {
	version, err := s.write.integer(`PRAGMA user_version`)
	tables := schema
	switch {
	case err != nil:
		return err
	case version == schemaVersion:
		return s.write.script(taskStartsSchema)
	case version == oldestReadable:
		tables = fromFormat5
	case version != 0:
		return fmt.Errorf("the file has format %d, but this program reads formats %d and %d: use the program that "+
			"wrote it, or choose another data directory", version, oldestReadable, schemaVersion)
	default:
		if err := refuseEmpty(dir, "has no tables"); err != nil {
			return err
		}
	}

	return s.write.script(fmt.Sprintf(`BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT`, tables, schemaVersion))
}

// synchronous does not cache its statement, because the pragma takes effect when it is prepared.
func (s *store) synchronous(full bool) error {
	if s.full == full {
		return nil
	}
	mode := "NORMAL"
	if full {
		mode = "FULL"
	}
	if err := s.write.script("PRAGMA synchronous = " + mode); err != nil {
		return err
	}
	s.full = full
	return nil
}

// f must return quickly, because a reader keeps the log from restarting.
func (s *store) read(f func(*conn) error) error {
	c, open := <-s.reads
	if !open {
		return errStoreClosed
	}
	defer func() { s.reads <- c }()
	return f(c)
}

// restartLog checkpoints the whole log while no reads run, so that it can restart, unless another process reads it.
// mode is RESTART or TRUNCATE, which also frees the log's disk space.
func (s *store) restartLog(mode string) error {
	held := make([]*conn, 0, s.open)
	for range s.open {
		held = append(held, <-s.reads)
	}
	defer func() {
		for _, c := range held {
			s.reads <- c
		}
	}()
	err := s.write.script(`PRAGMA busy_timeout = 0`)
	if err == nil {
		_, err = s.logPages(`PRAGMA wal_checkpoint(` + mode + `)`)
	}
	return errors.Join(err, s.write.script(busyTimeout))
}

func (s *store) logPages(pragma string) (pages int64, err error) {
	err = s.write.query(func(row row) { pages = row.int(1) }, pragma)
	return pages, err
}

var errStoreClosed = errors.New("the queue database is closed")

// close closes the write connection last, so that it checkpoints the log.
func (s *store) close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for ; s.open > 0; s.open-- {
		errs = append(errs, (<-s.reads).close())
	}
	close(s.reads)
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	return errors.Join(errs...)
}

// ErrInUse means that another process is using the data directory.
var ErrInUse = errors.New("data directory is in use by another process")

// ErrUnsafe means that another user can write to the data directory.
var ErrUnsafe = datadir.ErrUnsafe

// lockDir locks until the file is closed or the process ends. Closing the database file would release SQLite's locks
// on it, so the lock is a separate file.
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

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	return err
}

// A child process may hold a copy of the descriptor, so closing is not enough.
func unlockDir(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
