package broker

import "database/sql/driver"

const (
	pageSize = 4096
	// checkpointPages is the length of the log, in pages, at which it is
	// copied into the database; checkpointLeast is that on a tiny disk.
	checkpointPages = 4_000
	checkpointLeast = 64
	// checkpointEvery is how many commits may pass between looks at it.
	checkpointEvery = 16
)

// checkpoint copies the log into the database when it has grown long. Callers
// have their answers by then; only the next group waits. At twice that length
// reads are held up, so that the log starts over: it can do so only while nobody
// reads from it, and one that never does makes every read and every checkpoint
// slower.
func (w *writer) checkpoint() error {
	if w.commits++; w.commits%checkpointEvery != 0 {
		return nil
	}
	s := w.b.store.Load()
	pages, err := s.logPages(`PRAGMA wal_checkpoint(NOOP)`)
	if pages < w.lastPages {
		w.nextCheckpoint = w.logPages // it has started over
	}
	w.lastPages = pages
	w.b.room.grown(pages * pageSize)
	if err != nil || pages < w.nextCheckpoint {
		return err
	}
	if pages >= 2*w.logPages {
		return s.restartLog()
	}
	// If a reader keeps the log from starting over, the next one is due when
	// there is as much to copy again.
	_, err = s.logPages(`PRAGMA wal_checkpoint(PASSIVE)`)
	w.nextCheckpoint = min(pages+w.logPages, 2*w.logPages)
	return err
}

// restartLog copies all of the log, and lets it start over.
func (s *store) restartLog() error {
	return s.whileNobodyReads(func() error {
		_, err := s.logPages(`PRAGMA wal_checkpoint(RESTART)`)
		return err
	})
}

// logPages runs a checkpoint pragma and returns the length of the log.
func (s *store) logPages(pragma string) (pages int64, err error) {
	err = s.write.query(func(row []driver.Value) error {
		pages, _ = row[1].(int64)
		return nil
	}, pragma)
	return pages, err
}

// whileNobodyReads runs f after the reads under way and before later ones.
func (s *store) whileNobodyReads(f func() error) error {
	held := make([]*conn, 0, s.reading)
	for range s.reading {
		held = append(held, <-s.reads)
	}
	defer func() {
		for _, c := range held {
			s.reads <- c
		}
	}()
	return f()
}
