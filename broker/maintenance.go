package broker

import (
	"fmt"
	"time"
)

// Cleanup runs in small steps: often while the writer is idle; rarely while it is busy, and then only for data
// that would otherwise grow without limit.
const (
	tidySoon     = time.Second            // after a commit
	tidyNext     = 5 * time.Millisecond   // between steps
	tidyBusy     = 100 * time.Millisecond // between steps while commits continue
	tidyRows     = 2_000
	tidyRowsBusy = 500 // 5,000 deduplication IDs per second
	// Free pages kept in the file: more while the writer is busy, because large bodies soon need them again.
	slackPages      = 512
	slackPagesBusy  = 4_096
	vacuumPages     = 512 // per step
	vacuumPagesBusy = 128
)

// maintenance cleans up the database and checkpoints its log, in the writer's goroutine.
type maintenance struct {
	b *Broker

	timer      *time.Timer
	armed      bool
	lastCommit time.Time
	vacuumed   bool // since the last checkpoint

	commits        int
	logPages       int64 // usual log length that triggers a checkpoint, in pages
	nextCheckpoint int64 // log length that triggers the next checkpoint, in pages
	lastPages      int64
}

func newMaintenance(b *Broker) *maintenance {
	pages := b.disk.logPages()
	return &maintenance{b: b, timer: time.NewTimer(tidySoon), armed: true, logPages: pages, nextCheckpoint: pages}
}

func (m *maintenance) runIn(wait time.Duration) {
	m.armed = true
	m.timer.Reset(wait)
}

// run must follow each firing of the timer.
func (m *maintenance) run() {
	m.armed = false
	next, err := m.cleanUp()
	if isFull(err) {
		next, err = tidySoon, nil
	}
	if err != nil {
		m.b.log.Warn("cleaning up the queue database failed, retrying", "err", adviseRestore(m.b.dir, err))
		next = time.Minute
	}
	if next > 0 {
		m.runIn(next)
	}
}

// cleanUp runs one step. next is the time until the next, or 0 to wait for a commit.
func (m *maintenance) cleanUp() (next time.Duration, err error) {
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
	if more, err := m.removeOldNames(s.write, rows); more || err != nil {
		return pause, err
	}
	if more, err := m.vacuum(s, busy && !m.b.disk.isSpaceLow()); more || err != nil {
		return pause, err
	}
	if busy {
		return tidySoon, nil
	}
	return m.untilDedupExpires(s.write)
}

func removeGarbage(c *conn) (more bool, err error) {
	var low, high int64
	err = c.query(func(row row) {
		low = row.int(0)
		high = row.int(1)
	}, `SELECT low, high FROM garbage LIMIT 1`)
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

	// Rows in dedup may stay: they have no effect below the floor and expire soon.
	if _, err := c.exec(`DELETE FROM receipts WHERE id > ? AND id <= ?`, low, high); err != nil {
		return true, err
	}
	_, err = c.exec(`DELETE FROM garbage WHERE low = ?`, low)
	return true, err
}

// vacuum removes free pages beyond a slack; while the writer is busy, only if most of the file is free. The
// checkpoint after the last step shrinks the file.
func (m *maintenance) vacuum(s *store, busy bool) (more bool, err error) {
	free, err := s.write.integer(`PRAGMA freelist_count`)
	if err != nil {
		return false, err
	}

	slack, pages := int64(slackPages), vacuumPages
	if busy {
		all, err := s.write.integer(`PRAGMA page_count`)
		if err != nil {
			return false, err
		}
		slack, pages = max(slackPagesBusy, all/2), vacuumPagesBusy
	}
	if free > slack {
		m.vacuumed = true
		return true, s.write.script(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pages))
	}

	if busy || !m.vacuumed {
		return false, nil
	}
	m.vacuumed = false
	if err := s.restartLog("TRUNCATE"); err != nil {
		return false, err
	}
	m.b.disk.shrinkReserve()
	return false, nil
}

// removeOldNames removes expired deduplication IDs and old names of deleted queues.
func (m *maintenance) removeOldNames(c *conn, rows int64) (more bool, err error) {
	now := m.b.clock.nowRoundedUp()
	n, err := c.exec(`DELETE FROM dedup WHERE (queue, dedup_id, group_id) IN
		(SELECT queue, dedup_id, group_id FROM dedup WHERE expires <= ? ORDER BY expires LIMIT ?)`, now, rows)
	if err != nil || n == rows {
		return true, err
	}
	_, err = c.exec(`DELETE FROM departed WHERE at < ?`, stamp()-deletedWait.Milliseconds())
	return false, err
}

func (m *maintenance) untilDedupExpires(c *conn) (time.Duration, error) {
	first, err := c.integer(`SELECT min(expires) FROM dedup`)
	if err != nil || first == 0 {
		return 0, err
	}
	now := m.b.clock.nowRoundedUp()
	return max(tidySoon, time.Duration(first-now)*time.Millisecond), nil
}

const checkpointEvery = 16 // commits

// afterCommit checkpoints a long log. At twice that length, it also blocks reads so that the log can restart.
func (m *maintenance) afterCommit() error {
	m.lastCommit = time.Now()
	if !m.armed {
		m.runIn(tidySoon)
	}

	m.commits++
	if m.commits%checkpointEvery != 0 {
		return nil
	}
	return m.checkpoint(m.b.store.Load())
}

func (m *maintenance) checkpoint(s *store) error {
	pages, err := s.logPages(`PRAGMA wal_checkpoint(NOOP)`)
	if err != nil {
		return err
	}
	if pages < m.lastPages {
		m.nextCheckpoint = m.logPages
		m.b.disk.shrinkReserve()
	}

	m.lastPages = pages
	m.b.disk.coverLog(pages * pageSize)
	if pages < m.nextCheckpoint {
		return nil
	}
	if pages >= 2*m.logPages {
		m.nextCheckpoint = pages + m.logPages
		return s.restartLog("RESTART")
	}

	// A reader may prevent the restart. Try again once the log has grown by logPages.
	_, err = s.logPages(`PRAGMA wal_checkpoint(PASSIVE)`)
	m.nextCheckpoint = min(pages+m.logPages, 2*m.logPages)
	return err
}
