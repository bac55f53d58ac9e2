package broker

import (
	"database/sql/driver"
	"time"
)

// dedupWindow is how long a deduplication id is remembered, counted from the
// first send with it; deleting the message does not end it, purging does.
const dedupWindow = 5 * time.Minute

// duplicate returns the key under which a message with the same deduplication
// id was sent within the window; 0 when there was none.
func (t *tx) duplicate(q *liveQueue, r *record, set *settings, now int64) (first int64, err error) {
	err = t.c.query(func(row []driver.Value) error {
		key, _ := row[0].(int64)
		expires, _ := row[1].(int64)
		if expires > now && keySeq(key) > q.disk.floor {
			first = key
		}
		return nil
	}, `SELECT message, expires FROM dedup WHERE queue = ? AND dedup_id = ? AND group_id = ?`,
		q.number, r.dedup, dedupScope(r, set))
	return first, err
}

// remember notes the deduplication id of a message in the transaction of its
// send.
func (t *tx) remember(q *liveQueue, r *record, set *settings, now int64) error {
	_, err := t.c.exec(`INSERT OR REPLACE INTO dedup (queue, dedup_id, group_id, message, expires) VALUES (?,?,?,?,?)`,
		q.number, r.dedup, dedupScope(r, set), r.key, now+dedupWindow.Milliseconds())
	return err
}

// dedupScope is the group within which a deduplication id counts; "" is the
// whole queue.
func dedupScope(r *record, set *settings) string {
	if set.dedupPerGroup {
		return r.group
	}
	return ""
}
