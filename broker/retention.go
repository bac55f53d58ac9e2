package broker

import (
	"cmp"
	"context"
	"time"
)

const (
	sweepRows = 500
	sweepWalk = 5_000 // messages examined by findInOrder
)

type retention struct {
	sweptTo  int64 // for the writer: all remaining messages up to this key were moved here or are scheduled
	sweeping bool
	alarm    alarm // set to the next sweep, as a stamp
}

// watchRetention schedules a sweep for a message sent at the given stamp. The caller must hold the lock.
func (q *liveQueue) watchRetention(sent int64) {
	if q.retention.sweeping || q.deleted {
		return
	}
	at := sent + q.settings().retention.Milliseconds()
	q.retention.alarm.set(at, time.Duration(at-stamp())*time.Millisecond)
}

// The caller must hold the lock.
func (q *liveQueue) sweepNow() {
	if q.retention.sweeping || q.deleted || q.broker.background.closing.Load() {
		return
	}
	q.retention.alarm.stop() // the sweep sets it again
	q.retention.sweeping = q.broker.writer.submit(&sweep{q: q}, needsNothing, nil) == nil
}

// sweep removes expired messages anywhere in the queue. It marks those received before as leaving; receives skip
// fresh ones sent before the cutoff.
type sweep struct {
	q          *liveQueue
	cutoff     int64
	rows       []sweptRow
	more       bool
	oldestKept int64 // stamp, or 0
}

type sweptRow struct {
	key, due int64
	m        *message
	origin   int64 // 0 unless from another queue
}

func (s *sweep) apply(t *tx) {
	q := s.q
	s.restart()
	if t.gone(q) {
		return
	}

	t.flushRows() // the sweep must find messages sent in this transaction
	low := makeKey(q.index.number, q.disk.floor)
	s.findInOrder(t, max(low, q.retention.sweptTo))
	for _, kind := range unordered {
		s.findUnordered(t, kind, low)
	}

	s.reserveRows()
	for _, r := range s.rows {
		t.remove(r.key, r.m != nil || r.origin != 0)
	}

	t.counters(q).Expired += int64(len(s.rows))
}

func (s *sweep) restart() {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	s.release()
	q.index.cutoff = max(q.index.cutoff, stamp()-q.settings().retention.Milliseconds()+1)
	s.cutoff = q.index.cutoff
	s.more = false
	s.oldestKept = 0
}

// findInOrder finds expired messages sent to this queue unscheduled, whose keys are in order of sent time.
func (s *sweep) findInOrder(t *tx, from int64) {
	skipped := from
	ended := false
	seen := 0
	t.query(func(row row) {
		seen++
		key := row.int(0)
		sent := row.int(1)
		due := row.int(2)
		isMoved := row.int(3) != 0
		switch {
		case ended:
		case isMoved || scheduled(sent, due): // left to findUnordered
			if len(s.rows) == 0 {
				skipped = key
			}
		case sent >= s.cutoff:
			ended = true
			s.oldestKept = sent
		case len(s.rows) == sweepRows:
			ended = true
			s.more = true
		default:
			s.rows = append(s.rows, sweptRow{key: key, due: due})
		}
	}, `SELECT id, sent, due, origin FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
		from, s.q.index.high(), int64(sweepWalk))

	s.q.retention.sweptTo = skipped
	if !ended && seen == sweepWalk {
		s.more = true
	}
}

// unorderedMessages are queries for messages whose keys are not in order of sent time: the expired ones, and the
// earliest sent time of the others.
type unorderedMessages struct{ expired, next string }

// For scheduled messages, the next sweep may be too early, because next considers all delayed messages.
var unordered = [...]unorderedMessages{
	{
		expired: `SELECT id, due, origin FROM messages WHERE id >> 40 = ?1 AND id > ?2 AND origin IS NOT NULL AND sent < ?3
			ORDER BY sent LIMIT ?4`,
		next: `SELECT sent FROM messages WHERE id >> 40 = ?1 AND id > ?2 AND origin IS NOT NULL AND sent >= ?3
			ORDER BY sent LIMIT 1`,
	},
	{
		expired: `SELECT id, due, origin FROM messages WHERE id >> 40 = ?1 AND id > ?2 AND due IS NOT NULL AND due < ?3
			AND due = sent ORDER BY due LIMIT ?4`,
		next: `SELECT due FROM messages WHERE id >> 40 = ?1 AND id > ?2 AND due IS NOT NULL AND due >= ?3
			ORDER BY due LIMIT 1`,
	},
}

func (s *sweep) findUnordered(t *tx, kind unorderedMessages, low int64) {
	found := 0
	t.query(func(row row) {
		s.rows = append(s.rows, sweptRow{key: row.int(0), due: row.int(1), origin: row.int(2)})
		found++
	}, kind.expired, s.q.index.number, low, s.cutoff, int64(sweepRows))
	if found == sweepRows {
		s.more = true
	}

	next := t.integer(kind.next, s.q.index.number, low, s.cutoff)
	if next != 0 && (s.oldestKept == 0 || next < s.oldestKept) {
		s.oldestKept = next
	}
}

func (s *sweep) reserveRows() {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	reserved := s.rows[:0]
	for _, r := range s.rows {
		r.m = s.q.index.held[r.key]
		if r.m != nil {
			if r.m.leaving {
				continue
			}
			r.m.leaving = true
		}
		reserved = append(reserved, r)
	}
	s.rows = reserved
}

// The caller must hold the lock.
func (s *sweep) release() {
	for _, r := range s.rows {
		if r.m != nil {
			s.q.index.unreserve(r.m)
		}
	}
	s.rows = nil
}

func (s *sweep) onCommit(err error) error {
	s.publish(err)
	q := s.q
	if f := q.broker.events.Expired; f != nil && len(s.rows) > 0 {
		f(q.name, len(s.rows))
	}

	var removed []Removal
	for _, r := range s.rows {
		receives := 0
		if r.m != nil {
			receives = int(r.m.received())
		}
		id := q.broker.messageID(cmp.Or(r.origin, r.key))
		removed = append(removed, Removal{Queue: q.name, ID: id, Cause: CauseExpired, Receives: receives})
	}
	q.broker.report(context.Background(), removed)
	return err
}

func (s *sweep) publish(err error) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		s.release()
	}

	q.index.counters.Expired += int64(len(s.rows))
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
	case s.oldestKept != 0:
		q.watchRetention(s.oldestKept)
	}
	q.wakeAfterRemoval(1)
}
