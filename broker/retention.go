package broker

import (
	"cmp"
	"context"
	"time"
)

const (
	sweepRows = 500
	sweepWalk = 5_000
)

type retention struct {
	sweptTo  int64 // used by the writer: messages with keys up to this one were moved here or are scheduled
	sweeping bool
	alarm    alarm // set to the next sweep, as a stamp
}

// watchRetention schedules a sweep for a message with the stamp sent. The caller must hold the lock.
func (q *liveQueue) watchRetention(sent int64) {
	if q.retention.sweeping || q.deleted {
		return
	}
	at := sent + q.settings().retention.Milliseconds()
	q.retention.alarm.set(at, time.Duration(at-stamp())*time.Millisecond)
}

func (q *liveQueue) onRetention() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepNow()
}

func (q *liveQueue) sweepNow() {
	if q.retention.sweeping || q.deleted || q.broker.background.closing.Load() {
		return
	}
	q.retention.alarm.at = 0
	q.retention.sweeping = q.broker.writer.submit(&sweep{q: q}, needs{}, nil) == nil
}

// sweep removes messages past their retention period, anywhere in the queue. Receives skip fresh messages sent before
// the cutoff, and the sweep marks the others as leaving.
type sweep struct {
	q       *liveQueue
	cutoff  int64
	rows    []sweptRow
	more    bool
	nextOne int64 // stamp of the oldest remaining message, or 0
}

type sweptRow struct {
	key, due int64
	m        *message
	origin   int64 // 0 unless the message came from another queue
}

func (s *sweep) apply(t *tx) error {
	q := s.q
	q.mu.Lock()
	s.release()
	q.index.cutoff = max(q.index.cutoff, stamp()-q.settings().retention.Milliseconds()+1)
	s.more = false
	s.nextOne = 0
	s.cutoff = q.index.cutoff
	q.mu.Unlock()
	if t.gone(q) {
		return nil
	}

	low := makeKey(q.index.number, q.disk.floor)
	if err := s.findOwn(t.c, max(low, q.retention.sweptTo)); err != nil {
		return err
	}
	if err := s.findMoved(t.c, low); err != nil {
		return err
	}
	if err := s.findScheduled(t.c, low); err != nil {
		return err
	}

	s.hold()
	for _, r := range s.rows {
		t.remove(r.key, r.m != nil || r.origin != 0)
	}

	t.counters(q).expired += int64(len(s.rows))
	return nil
}

// findOwn relies on keys being in order of sent time, except for moved and scheduled messages.
func (s *sweep) findOwn(c *conn, from int64) error {
	walked := from
	ended := false
	seen := 0
	err := c.query(func(row row) {
		seen++
		switch {
		case ended:
		case row.int(3) != 0 || scheduled(row.int(1), row.int(2)): // left to findMoved or findScheduled
			if len(s.rows) == 0 {
				walked = row.int(0)
			}
		case row.int(1) >= s.cutoff:
			ended = true
			s.nextOne = row.int(1)
		case len(s.rows) < sweepRows:
			s.rows = append(s.rows, sweptRow{key: row.int(0), due: row.int(2)})
		default:
			ended, s.more = true, true
		}
	}, `SELECT id, sent, due, origin FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
		from, s.q.index.high(), int64(sweepWalk))

	s.q.retention.sweptTo = walked
	s.more = s.more || !ended && seen == sweepWalk
	return err
}

func (s *sweep) findMoved(c *conn, low int64) error {
	found := 0
	err := c.query(func(row row) {
		if row.int(1) < s.cutoff {
			s.rows = append(s.rows, sweptRow{key: row.int(0), due: row.int(2), origin: row.int(3)})
			found++
		} else if s.nextOne == 0 || row.int(1) < s.nextOne {
			s.nextOne = row.int(1)
		}
	}, `SELECT id, sent, due, origin FROM messages WHERE id >> 40 = ? AND origin IS NOT NULL AND id > ? ORDER BY sent LIMIT ?`,
		s.q.index.number, low, int64(sweepRows))
	s.more = s.more || found == sweepRows
	return err
}

// findScheduled may schedule the next sweep too early, because it considers all delayed messages.
func (s *sweep) findScheduled(c *conn, low int64) error {
	found := 0
	err := c.query(func(row row) {
		s.rows = append(s.rows, sweptRow{key: row.int(0), due: row.int(1)})
		found++
	}, `SELECT id, due FROM messages WHERE id >> 40 = ? AND due IS NOT NULL AND due < ? AND due = sent AND id > ?
		ORDER BY due LIMIT ?`, s.q.index.number, s.cutoff, low, int64(sweepRows))
	s.more = s.more || found == sweepRows
	if err != nil {
		return err
	}
	next, err := c.integer(`SELECT due FROM messages WHERE id >> 40 = ? AND due IS NOT NULL AND due >= ? AND id > ?
		ORDER BY due LIMIT 1`, s.q.index.number, s.cutoff, low)
	if next != 0 && (s.nextOne == 0 || next < s.nextOne) {
		s.nextOne = next
	}
	return err
}

func (s *sweep) hold() {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	kept := s.rows[:0]
	for _, r := range s.rows {
		if m := s.q.index.held[r.key]; m != nil {
			if m.leaving {
				continue
			}
			m.leaving = true
			r.m = m
		}
		kept = append(kept, r)
	}
	s.rows = kept
}

func (s *sweep) release() {
	for _, r := range s.rows {
		if r.m != nil {
			s.q.index.unreserve(r.m)
		}
	}
	s.rows = nil
}

func (s *sweep) onCommit(err error) error {
	q := s.q
	q.mu.Lock()
	if err != nil {
		s.release()
	}

	q.index.counters.expired += int64(len(s.rows))
	for _, r := range s.rows {
		if r.m != nil {
			q.index.remove(r.m)
		}
		q.index.delays.sub(r.due)
	}

	q.retention.sweeping = false
	switch {
	case s.more:
		q.sweepNow()
	case s.nextOne != 0:
		q.watchRetention(s.nextOne)
	}

	q.wakeAfterRemoval(1)
	q.mu.Unlock()
	if f := q.broker.events.Expired; f != nil && len(s.rows) > 0 {
		f(q.name, len(s.rows))
	}
	var removed []Removal
	for _, r := range s.rows {
		receives := 0
		if r.m != nil {
			receives = int(r.m.received())
		}
		removed = append(removed, Removal{Queue: q.name, ID: q.broker.seal.messageID(new(block), cmp.Or(r.origin, r.key)),
			Cause: CauseExpired, Receives: receives})
	}
	q.broker.report(context.Background(), removed)
	return err
}
