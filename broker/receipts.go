package broker

import (
	"database/sql/driver"
	"time"
)

// storeAfter is how long a message may be in flight before its receive is
// written down: most are deleted sooner, and cost no write at all. Receives
// that were not written when the process is killed are forgotten: those
// messages are visible at once after the restart.
const storeAfter = 200 * time.Millisecond

// store has a receive, or a change of its visibility, written down if the
// message is still here a moment later. The lock is held.
func (q *liveQueue) store(m *message) {
	if m.dirty {
		return
	}
	m.dirty = true
	q.unstored = append(q.unstored, m)
	switch {
	case len(q.unstored) > 1:
	case q.storing == nil:
		q.storing = time.AfterFunc(storeAfter, q.storeReceipts)
	default:
		q.storing.Reset(storeAfter)
	}
}

// receiptRow is a row of receipts. Times are Unix milliseconds.
type receiptRow struct {
	key, count, first, receivedAt, until, epoch, unread int64
}

// storeReceipts hands the receives to the writer that are old enough.
func (q *liveQueue) storeReceipts() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted || q.b.closing.Load() {
		return
	}
	old := q.b.clock.now() - int64(storeAfter)
	rows, rest := q.receiptRows(old)
	q.unstored = rest
	if len(rest) > 0 {
		q.storing.Reset(storeAfter)
	}
	if len(rows) > 0 {
		// A failure is the store's; what it forgets is read back at recovery.
		_ = q.b.writer.submit(&receiptStore{q: q, rows: rows, done: func(error) {}})
	}
}

// receiptRows takes those off the list that were received no later than old.
// The lock is held.
func (q *liveQueue) receiptRows(old int64) (rows []receiptRow, rest []*message) {
	for _, m := range q.unstored {
		switch {
		case m.gone || m.leaving:
			m.dirty = false
		case m.receivedAt > old:
			rest = append(rest, m)
		default:
			m.dirty, m.stored = false, true
			rows = append(rows, q.receiptRow(m))
		}
	}
	return rows, rest
}

func (q *liveQueue) receiptRow(m *message) receiptRow {
	clock := q.b.clock
	row := receiptRow{m.key, int64(m.count), m.first, clock.milli(m.receivedAt), 0, int64(m.epoch), int64(m.unread)}
	if m.inFlight {
		row.until = clock.milli(m.until)
	}
	return row
}

// receiptStore is the request that writes receives down.
type receiptStore struct {
	q    *liveQueue
	rows []receiptRow
	done func(error)
}

func (s *receiptStore) durable() bool      { return false }
func (s *receiptStore) grows() bool        { return false }
func (s *receiptStore) onCommit(err error) { s.done(err) }

func (s *receiptStore) apply(t *tx) error {
	if t.gone(s.q) {
		return nil
	}
	for _, r := range s.rows {
		_, err := t.c.exec(`INSERT OR REPLACE INTO receipts (id, count, first, received_at, until, epoch, unread) VALUES (?,?,?,?,?,?,?)`,
			r.key, r.count, r.first, r.receivedAt, r.until, r.epoch, r.unread)
		if err != nil {
			return err
		}
	}
	return nil
}

// loadReceipts brings the received messages of the queue back to memory:
// those whose deadline has not passed are in flight until then.
func (q *liveQueue) loadReceipts(c *conn) error {
	now := q.b.clock.now()
	return c.query(func(row []driver.Value) error {
		n := func(i int) int64 { v, _ := row[i].(int64); return v }
		group, _ := row[8].(string)
		m := q.newMessage(&record{key: n(0), sent: n(1), origin: n(2), received: n(3), group: group}, false)
		m.count, m.first, m.epoch, m.stored = int32(n(4)), n(5), uint32(n(9)), true
		m.unread = int32(n(10))
		m.receivedAt = q.b.clock.reading(n(6))
		q.held[m.key] = m
		if m.until = q.b.clock.reading(n(7)); n(7) != 0 && m.until > now {
			q.resume(m)
		} else {
			q.order.requeue(m)
		}
		return nil
	}, `SELECT m.id, m.sent, m.origin, m.received, r.count, r.first, r.received_at, r.until, m.group_id, r.epoch, r.unread
		FROM receipts r JOIN messages m ON m.id = r.id WHERE r.id > ? AND r.id <= ? ORDER BY r.id`, q.low(), q.high())
}

// resume puts a message back in flight.
func (q *liveQueue) resume(m *message) {
	m.until = min(m.until, q.b.clock.now()+int64(maxFlight))
	m.inFlight = true
	q.inFlight.push(m)
	q.order.resume(m)
}

// maxFlight bounds what a wall clock that was set back could make of a
// deadline.
const maxFlight = 12 * time.Hour
