package broker

import (
	"database/sql/driver"
	"time"
)

// Cleaning up happens in the writer's idle time, in small bites.
const (
	tidySoon = time.Second          // after the last commit
	tidyNext = 5 * time.Millisecond // between bites
	tidyRows = 2_000
	// slackPages is how many free pages the file may keep; what is more goes
	// back to the file system after a while.
	slackPages  = 512
	vacuumPages = 512
)

// tidyLater sets the next look.
func (w *writer) tidyLater(wait time.Duration) { w.tidyAt.Reset(wait) }

// tidy takes one bite of what there is to clean up.
func (w *writer) tidy() {
	if w.b.failed() != nil {
		return
	}
	next, err := w.bite()
	if err != nil {
		w.b.log.Warn("Cleaning up the queues' file failed; it will be tried again", "err", err)
		next = time.Minute
	}
	if next > 0 {
		w.tidyLater(next)
	}
}

// bite does one piece of work and returns when the next is due; 0 for none.
func (w *writer) bite() (next time.Duration, err error) {
	c := w.b.store.Load().write
	if err := w.b.store.Load().synchronous(false); err != nil {
		return 0, err
	}
	if more, err := removeGarbage(c); more || err != nil {
		return tidyNext, err
	}
	if more, err := w.vacuum(c); more || err != nil {
		return tidyNext, err
	}
	return w.forgetDedups(c)
}

// removeGarbage deletes some messages of a purged range.
func removeGarbage(c *conn) (more bool, err error) {
	var low, high int64
	err = c.query(func(row []driver.Value) error {
		low, _ = row[0].(int64)
		high, _ = row[1].(int64)
		return nil
	}, `SELECT low, high FROM garbage LIMIT 1`)
	if err != nil || high == 0 {
		return false, err
	}
	n, err := c.exec(`DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)`,
		low, high, int64(tidyRows))
	if err != nil || n == tidyRows {
		return true, err
	}
	for _, text := range []string{`DELETE FROM receipts WHERE id > ? AND id <= ?`, `DELETE FROM dedup WHERE message > ? AND message <= ?`} {
		if _, err := c.exec(text, low, high); err != nil {
			return true, err
		}
	}
	_, err = c.exec(`DELETE FROM garbage WHERE low = ?`, low)
	return true, err
}

// vacuum gives free pages back to the file system. They leave the disk with a
// checkpoint, which comes at the end.
func (w *writer) vacuum(c *conn) (more bool, err error) {
	free, err := c.integer(`PRAGMA freelist_count`)
	if err != nil {
		return false, err
	}
	if free > slackPages {
		w.vacuumed = true
		return true, c.script(`PRAGMA incremental_vacuum(512)`)
	}
	if w.vacuumed {
		w.vacuumed = false
		return false, c.script(`PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return false, nil
}

// forgetDedups deletes expired deduplication ids and the names of queues that
// were deleted long enough ago.
func (w *writer) forgetDedups(c *conn) (next time.Duration, err error) {
	now := w.b.clock.milli(w.b.clock.now())
	n, err := c.exec(`DELETE FROM dedup WHERE (queue, dedup_id, group_id) IN
		(SELECT queue, dedup_id, group_id FROM dedup WHERE expires <= ? ORDER BY expires LIMIT ?)`, now, int64(tidyRows))
	if err != nil || n == tidyRows {
		return tidyNext, err
	}
	if _, err := c.exec(`DELETE FROM departed WHERE at < ?`, stamp()-deletedWait.Milliseconds()); err != nil {
		return 0, err
	}
	first, err := c.integer(`SELECT min(expires) FROM dedup`)
	if err != nil || first == 0 {
		return 0, err
	}
	return max(tidySoon, time.Duration(first-now)*time.Millisecond), nil
}
