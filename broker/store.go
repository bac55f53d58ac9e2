package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tendril/datadir"
)

// store is the database file: one connection that writes and checkpoints,
// used by the writer alone, and a few that read.
type store struct {
	write   *conn
	reads   chan *conn
	reading int // connections that reads hands out
	all     []*conn
	full    bool // the writer's PRAGMA synchronous is FULL
}

const (
	databaseName = "queues.db"
	readers      = 3
)

// openStore opens or creates the database in dir.
func openStore(dir, vfs string) (*store, error) {
	path := filepath.Join(dir, databaseName)
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := datadir.CheckFile(path + suffix); err != nil {
			return nil, err
		}
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	s := &store{reads: make(chan *conn, readers)}
	w, err := s.connect(path, vfs, `
		PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;
		PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
		PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
		PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768;
		PRAGMA wal_autocheckpoint = 0`)
	if err == nil {
		s.write = w
		err = s.migrate()
	}
	for range readers {
		if err != nil {
			break
		}
		var r *conn
		if r, err = s.connect(path, vfs, `PRAGMA query_only = ON; PRAGMA cache_size = -2048`); err == nil {
			s.reads <- r
			s.reading++
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), s.close())
	}
	return s, nil
}

// createFile makes the database file before SQLite does, so that it and the
// files beside it, which take over its mode, are for their owner only.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *store) connect(path, vfs, pragmas string) (*conn, error) {
	c, err := openConn(path, vfs)
	if err != nil {
		return nil, err
	}
	s.all = append(s.all, c)
	return c, c.script(`PRAGMA busy_timeout = 10000; PRAGMA temp_store = MEMORY;
		PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; ` + pragmas)
}

// migrate creates the tables of a new file and those that an older one lacks,
// and refuses a file that a later version wrote.
func (s *store) migrate() error {
	version, err := s.write.integer(`PRAGMA user_version`)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return fmt.Errorf("the file has format %d, this program writes format %d: use the newer program that wrote it",
			version, schemaVersion)
	case version == schemaVersion:
		return nil
	}
	return s.write.script(fmt.Sprintf(`BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT`, schemaSince(version),
		schemaVersion))
}

// synchronous chooses whether the next commit waits for the disk. The pragma
// acts when it is prepared, so it is run as text each time.
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

// read runs f with a connection that reads. It must be short: a reader keeps
// the log from starting over.
func (s *store) read(f func(*conn) error) error {
	c, open := <-s.reads
	if !open {
		return errStoreClosed
	}
	defer func() { s.reads <- c }()
	return f(c)
}

var errStoreClosed = errors.New("the queues' file is closed")

// close waits for the readers and closes the connections; the writer's last,
// so that it copies the log into the database.
func (s *store) close() error {
	var errs []error
	for range s.reading {
		<-s.reads
	}
	close(s.reads)
	s.reading = 0
	for i := len(s.all) - 1; i >= 0; i-- {
		errs = append(errs, s.all[i].close())
	}
	s.all = nil
	return errors.Join(errs...)
}
