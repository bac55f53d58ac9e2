package broker

import "time"

// Cleaning up happens in the writer's idle time, in small bites. A writer that
// never rests takes smaller ones in larger pauses, of what would grow without end.
const (
	tidySoon     = time.Second            // after a commit
	tidyNext     = 5 * time.Millisecond   // between bites
	tidyBusy     = 100 * time.Millisecond // between bites while commits go on
	tidyRows     = 2_000
	tidyRowsBusy = 500 // five thousand a second: no queue takes as many deduplication ids for long
	// slackPages is how many free pages the file may keep; what is more goes
	// back to the file system when nothing else is to be done.
	slackPages = 512
	// slackPagesBusy is how many it may keep while the writer is busy, when they are most of it: large bodies that come
	// and go take them again at once.
	slackPagesBusy = 4_096
)

// maintenance cleans up, and copies the log into the database. The writer's
// goroutine alone uses it.
type maintenance struct {
	b *Broker

	timer      *time.Timer // the next look at what there is to clean up
	armed      bool
	lastCommit time.Time
	vacuumed   bool // pages were freed since the last checkpoint

	commits        int   // since the broker was opened
	logPages       int64 // the length of the log at which it is copied, ordinarily
	nextCheckpoint int64 // the length of the log at which one is due
	lastPages      int64 // its length when it was last looked at
}

func newMaintenance(b *Broker) *maintenance {
	pages := b.disk.logPages()
	return &maintenance{b: b, timer: time.NewTimer(tidySoon), armed: true, logPages: pages, nextCheckpoint: pages}
}

func (m *maintenance) runIn(wait time.Duration) {
	m.armed = true
	m.timer.Reset(wait)
}

// run takes one bite of what there is to clean up.
func (m *maintenance) run() {
	next, err := m.bite()
	if isFull(err) {
		next, err = tidySoon, nil
	}
	if err != nil {
		m.b.log.Warn("Cleaning up the queues' file failed; it will be tried again", "err", err)
		next = time.Minute
	}
	if next > 0 {
		m.runIn(next)
	}
}

// bite does one piece of work and returns when the next is due; 0 for none
// before the next commit.
func (m *maintenance) bite() (next time.Duration, err error) {
	s := m.b.store.Load()
	if err := s.synchronous(false); err != nil {
		return 0, err
	}

	busy := time.Since(m.lastCommit) < tidySoon
	pause, rows := tidyNext, int64(tidyRows)
	if busy {
		pause, rows = tidyBusy, tidyRowsBusy
	}

	if more, err := removeGarbage(s.write); more || err != nil {
		return pause, err
	}
	more, next, err := m.forgetDedups(s.write, rows)
	if more || err != nil {
		return pause, err
	}
	if more, err := m.vacuum(s, busy && !m.b.disk.tight()); more || err != nil {
		return pause, err
	}
	if busy {
		return tidySoon, nil
	}
	return next, nil
}

// removeGarbage deletes some messages of a purged range.
func removeGarbage(c *conn) (more bool, err error) {
	var low, high int64
	err = c.query(func(row row) { low, high = row.int(0), row.int(1) }, `SELECT low, high FROM garbage LIMIT 1`)
	if err != nil || high == 0 {
		return false, err
	}

	for _, table := range []string{"messages", "attempts"} {
		n, err := c.exec(`DELETE FROM `+table+` WHERE id IN
			(SELECT id FROM `+table+` WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)`,
			low, high, int64(tidyRows))
		if err != nil || n == tidyRows {
			return true, err
		}
	}

	// Deduplication ids need no care: below the floor they do not count, and
	// they expire soon.
	c.run(&err, `DELETE FROM receipts WHERE id > ? AND id <= ?`, low, high)
	c.run(&err, `DELETE FROM garbage WHERE low = ?`, low)
	return true, err
}

// vacuum gives free pages back to the file system; while the writer is busy, only as long as most of the file is free:
// the next backlog takes the others. They leave the disk with a checkpoint, which comes at the end.
func (m *maintenance) vacuum(s *store, busy bool) (more bool, err error) {
	free, err := s.write.integer(`PRAGMA freelist_count`)
	if err != nil {
		return false, err
	}
	if busy {
		all, err := s.write.integer(`PRAGMA page_count`)
		if free <= slackPagesBusy || 2*free <= all || err != nil {
			return false, err
		}
		m.vacuumed = true
		return true, s.write.script(`PRAGMA incremental_vacuum(128)`)
	}
	if free > slackPages {
		m.vacuumed = true
		return true, s.write.script(`PRAGMA incremental_vacuum(512)`)
	}
	if m.vacuumed {
		m.vacuumed = false
		err := s.restartLog("TRUNCATE")
		if err == nil {
			m.b.disk.logShrunk()
		}
		return false, err
	}
	return false, nil
}

// forgetDedups deletes expired deduplication ids, as many as a bite takes, and the names of queues that were deleted
// long enough ago. next is when the next id expires; 0 where there is none.
func (m *maintenance) forgetDedups(c *conn, rows int64) (more bool, next time.Duration, err error) {
	now := m.b.clock.milli(m.b.clock.now())
	n, err := c.exec(`DELETE FROM dedup WHERE (queue, dedup_id, group_id) IN
		(SELECT queue, dedup_id, group_id FROM dedup WHERE expires <= ? ORDER BY expires LIMIT ?)`, now, rows)
	if err != nil || n == rows {
		return true, 0, err
	}
	c.run(&err, `DELETE FROM departed WHERE at < ?`, stamp()-deletedWait.Milliseconds())
	if err != nil {
		return false, 0, err
	}
	first, err := c.integer(`SELECT min(expires) FROM dedup`)
	if err != nil || first == 0 {
		return false, 0, err
	}
	return false, max(tidySoon, time.Duration(first-now)*time.Millisecond), nil
}

// checkpointEvery is how many commits may pass between looks at the log.
const checkpointEvery = 16

// afterCommit sees to it that a look comes after a commit, and copies the log into the
// database when it has grown long. Callers have their answers by then; only the next
// group waits. At twice that length reads are held up, so that the log starts over: it
// can do so only while nobody reads from it, and one that never does makes every read
// and every checkpoint slower.
func (m *maintenance) afterCommit() error {
	m.lastCommit = time.Now()
	if !m.armed {
		m.runIn(tidySoon)
	}

	if m.commits++; m.commits%checkpointEvery != 0 {
		return nil
	}

	s := m.b.store.Load()
	pages, err := s.logPages(`PRAGMA wal_checkpoint(NOOP)`)
	if pages < m.lastPages {
		m.nextCheckpoint = m.logPages // it has started over
		m.b.disk.logShrunk()
	}

	m.lastPages = pages
	m.b.disk.grown(pages * pageSize)
	if err != nil || pages < m.nextCheckpoint {
		return err
	}
	if pages >= 2*m.logPages {
		m.nextCheckpoint = pages + m.logPages // where another process keeps it from starting over
		return s.restartLog("RESTART")
	}

	// If a reader keeps the log from starting over, the next one is due when
	// there is as much to copy again.
	_, err = s.logPages(`PRAGMA wal_checkpoint(PASSIVE)`)
	m.nextCheckpoint = min(pages+m.logPages, 2*m.logPages)
	return err
}
