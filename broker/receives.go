package broker

import (
	"container/heap"
	"time"
)

// storeAfter delays storing a receive, because most messages are deleted earlier. Until then, its mark survives a
// kill.
const storeAfter = 200 * time.Millisecond

const storeAgainAfter = time.Second

type unstoredReceives struct {
	messages []*message
	alarm    alarm
}

// The caller must hold the lock.
func (q *liveQueue) storeReceive(m *message) {
	if m.dirty {
		return
	}
	m.dirty = true
	u := &q.receives
	u.messages = append(u.messages, m)
	if len(u.messages) == 1 {
		u.alarm.setUnlessSet(storeAfter)
	}
}

// The caller must hold the lock.
func (q *liveQueue) changeVisibility(m *message, now int64, visibility time.Duration) {
	m.until = now + int64(visibility)
	if visibility == 0 {
		q.index.endFlight(m)
		q.waiters.wake(1)
	} else {
		heap.Fix(&q.index.inFlight, m.index)
		q.setAlarm()
	}
	q.storeReceive(m)
}

// The caller must hold the lock.
func (q *liveQueue) storeReceives() {
	if q.deleted || q.broker.background.closing.Load() {
		return
	}
	u := &q.receives
	if err := q.submitReceives(q.now() - int64(storeAfter)); err != nil {
		u.alarm.setUnlessSet(storeAgainAfter)
	} else if len(u.messages) > 0 {
		u.alarm.setUnlessSet(storeAfter)
	}
}

// submitReceives stores the receives up to last, a clock reading. Rejected ones stay in the list. The caller must
// hold the lock.
func (q *liveQueue) submitReceives(last int64) error {
	s := q.takeReceives(func(m *message) bool { return !m.leaving && m.receivedAt <= last })
	if len(s.rows) == 0 {
		return nil
	}
	err := q.broker.writer.submit(s, needsNothing, nil)
	if err != nil {
		s.giveBack()
	}
	return err
}

// The caller must hold the lock.
func (q *liveQueue) takeReceives(ready func(*message) bool) *receiptStore {
	s := &receiptStore{q: q}
	var later []*message
	for _, m := range q.receives.messages {
		switch {
		case m.gone:
			m.dirty = false
		case !ready(m):
			later = append(later, m)
		default:
			m.dirty = false
			m.stored = true
			s.messages = append(s.messages, m)
			s.rows = append(s.rows, m.receiptRow(q.broker.clock))
		}
	}
	q.receives.messages = later
	return s
}

// lastReceives includes leaving messages: the writer is closed, so they stay.
func (b *Broker) lastReceives() (group []pendingRequest) {
	for _, q := range b.queues.all() {
		q.mu.Lock()
		group = append(group, pendingRequest{request: q.takeReceives(func(*message) bool { return true })})
		q.mu.Unlock()
	}
	return group
}

type receiptRow [7]int64

const receiptColumns = ` (id, count, first, received_at, until, epoch, unread) VALUES (?,?,?,?,?,?,?)`

// The caller must hold the lock.
func (m *message) receiptRow(c clock) receiptRow {
	until := int64(0)
	if m.inFlight {
		until = c.milli(m.until)
	}
	unread := int64(m.unread)
	if m.unposted && !m.uncounted {
		unread++
	}
	return receiptRow{m.key, int64(m.count), m.first, c.milli(m.receivedAt), until, int64(m.epoch), unread}
}

func (r *receiptRow) args() []any { return []any{r[0], r[1], r[2], r[3], r[4], r[5], r[6]} }

type receiptStore struct {
	q        *liveQueue
	messages []*message
	rows     []receiptRow
}

func (s *receiptStore) onCommit(err error) error {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if err != nil {
		s.giveBack()
		s.q.receives.alarm.setUnlessSet(storeAgainAfter)
		return err
	}
	for _, m := range s.messages {
		if !m.dirty {
			s.q.broker.marks.drop(m)
		}
	}
	return nil
}

// The caller must hold the lock.
func (s *receiptStore) giveBack() {
	for _, m := range s.messages {
		if !m.dirty && s.q.index.held[m.key] == m {
			m.dirty = true
			s.q.receives.messages = append(s.q.receives.messages, m)
		}
	}
}

func (s *receiptStore) apply(t *tx) {
	if t.gone(s.q) {
		return
	}
	for i := range s.rows {
		t.exec(`INSERT OR REPLACE INTO receipts`+receiptColumns, s.rows[i].args()...)
	}
}

func (q *liveQueue) loadReceives(c *conn) error {
	now := q.now()
	return c.query(func(row row) {
		m := q.index.newMessage(&record{key: row.int(0), sent: row.int(1), origin: row.int(2), received: row.int(3),
			group: row.text(8), size: row.int(11)})
		m.count = int32(row.int(4))
		m.first = row.int(5)
		m.epoch = uint32(row.int(9))
		m.stored = true
		m.unread = int32(row.int(10))
		m.receivedAt = q.broker.clock.reading(row.int(6))
		q.index.held[m.key] = m
		m.until = q.broker.clock.reading(row.int(7))
		if row.int(7) != 0 && m.until > now {
			q.index.resume(m)
		} else {
			q.index.order.requeue(m)
		}
	}, `SELECT m.id, m.sent, m.origin, m.received, r.count, r.first, r.received_at, r.until, m.group_id, r.epoch,
			r.unread, m.size
		FROM receipts r JOIN messages m ON m.id = r.id WHERE r.id > ? AND r.id <= ? ORDER BY r.id`,
		q.index.low(), q.index.high())
}
