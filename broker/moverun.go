package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

const (
	moveRows  = 200
	movePause = 100 * time.Millisecond
	moveRetry = time.Second
)

// mover goes through the source queue once, oldest message first. After a restart it starts again at the oldest
// remaining message.
type mover struct {
	b      *Broker
	task   *moveTask
	meant  condition
	cursor int64
	behind map[string]bool // FIFO groups with a message that stays; their later messages stay too
	// unknown means that messages stayed because they have no source queue.
	unknown bool
}

func (b *Broker) runMove(t *moveTask) {
	m := &mover{b: b, task: t, meant: b.condition(&t.Filter), cursor: makeKey(t.source.index.number, 0),
		behind: map[string]bool{}}
	for b.moves.snapshot(t).Status == MoveRunning {
		start := time.Now()
		n, err := m.step()
		wait := moveRetry
		if err == nil {
			wait = 0
			if t.Rate > 0 {
				wait = time.Duration(n)*time.Second/time.Duration(t.Rate) - time.Since(start)
			}
		}

		if !m.pause(wait) {
			return
		}
	}
}

func (m *mover) pause(wait time.Duration) bool {
	timer := time.NewTimer(max(0, wait))
	defer timer.Stop()
	select {
	case <-m.b.background.stopped:
		return false
	case <-m.task.ended:
		return false
	case <-timer.C:
		return !m.b.background.closing.Load()
	}
}

func (m *mover) limit() int {
	if m.task.Rate == 0 {
		return moveRows
	}
	return max(1, m.task.Rate*int(movePause)/int(time.Second))
}

// step moves a batch and returns its size. It ends the task at the end of the queue, or if a target queue is missing.
func (m *mover) step() (n int, err error) {
	t := m.task
	t.source.mu.Lock()
	m.cursor = max(m.cursor, t.source.index.low()) // purged rows may still be stored
	t.source.mu.Unlock()
	var rows []*record
	var last int64
	err = m.b.read(func(c *conn) (err error) {
		rows, last, err = c.scanMatching(m.meant.columns(), m.cursor, t.high, m.meant, m.limit())
		return err
	})
	if err != nil {
		return 0, err
	}

	if last == 0 && len(rows) > 0 {
		last = t.high
	}

	if last == 0 {
		status, reason := MoveCompleted, ""
		if m.unknown {
			status, reason = MoveFailed, reasonNoSource
		}
		_, err := m.b.endMove(t, status, reason)
		return 0, err
	}

	var target *liveQueue
	if t.Destination != "" {
		target = m.b.byARN(t.Destination)
	}

	if t.Destination != "" && target == nil {
		_, err := m.b.endMove(t, MoveFailed, reasonNoQueue)
		return 0, err
	}

	movable := m.movable(rows)
	if lost := slices.IndexFunc(movable, func(r *record) bool {
		return target == nil && !t.Delete && r.source != "" && m.b.byARN(m.b.opts.own(r.source)) == nil
	}); lost == 0 {
		_, err := m.b.endMove(t, MoveFailed, reasonNoQueue)
		return 0, err
	} else if lost > 0 {
		last, movable = movable[lost].key-1, movable[:lost]
	}

	if n, err = m.move(movable, target); err == nil {
		m.cursor = last
	}
	return n, err
}

// movable omits messages that are delayed, in flight, leaving or without a required source queue, and the FIFO messages
// behind them.
func (m *mover) movable(rows []*record) (movable []*record) {
	q := m.task.source
	q.lock()
	defer q.mu.Unlock()
	now := q.broker.clock.nowMilli()
	for _, r := range rows {
		held := q.index.held[r.key]
		stays := r.due > now || held != nil && (held.inFlight || held.leaving) || q.index.fifo && m.behind[r.group]
		if !stays && m.task.Destination == "" && !m.task.Delete && r.source == "" {
			stays, m.unknown = true, true
		}
		if stays {
			m.behind[r.group] = q.index.fifo
			continue
		}
		movable = append(movable, r)
	}

	return movable
}

// move moves the rows to target or, if nil, to each message's source queue. With task.Delete, it deletes them instead.
func (m *mover) move(rows []*record, target *liveQueue) (n int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}

	q, keys := m.task.source, make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}

	q.mu.Lock()
	reserved := q.index.reserveKeys(keys)
	q.mu.Unlock()
	s := &moveStep{b: m.b, task: m.task}
	if m.task.Delete {
		s.departure = &removal{ctx: context.Background(), q: q, messages: reserved, cause: CauseDeleted}
	} else if s.departure, err = m.b.newMove(context.Background(), q, target, reserved); err != nil {
		return 0, err
	}

	err = m.b.writer.do(context.Background(), s, needs{durable: !m.task.Delete})
	return s.departed(), err
}

type departure interface {
	request
	departed() int
}

type moveStep struct {
	departure
	b     *Broker
	task  *moveTask
	ended bool
}

func (s *moveStep) apply(x *tx) error {
	n, err := x.c.integer(`SELECT count(*) FROM moves WHERE id = ? AND status = ?`, s.task.id, string(MoveRunning))
	s.ended = n == 0
	if s.ended || err != nil {
		return err
	}
	if err := s.departure.apply(x); err != nil {
		return err
	}
	x.c.run(&err, `UPDATE moves SET moved = moved + ? WHERE id = ?`, int64(s.departed()), s.task.id)
	return err
}

func (s *moveStep) onCommit(err error) error {
	if err == nil && s.ended {
		_ = s.departure.onCommit(errNoTask)
		return nil
	}
	if err = s.departure.onCommit(err); err != nil {
		return err
	}
	s.b.moves.mu.Lock()
	defer s.b.moves.mu.Unlock()
	s.task.Moved += int64(s.departed())
	return nil
}

func (b *Broker) endMove(t *moveTask, status MoveStatus, reason string) (ended bool, err error) {
	err = b.writer.change(func(x *tx) error {
		n, err := x.c.exec(`UPDATE moves SET status = ?, reason = ? WHERE id = ? AND status = ?`, string(status), reason,
			t.id, string(MoveRunning))
		ended = n > 0
		return err
	}, func() {
		b.moves.mu.Lock()
		defer b.moves.mu.Unlock()
		t.end(status, reason)
	})
	return ended, err
}

func (x *tx) insertMoveTask(t *moveTask) (err error) {
	x.c.run(&err, `INSERT INTO moves (id, source, destination, deletes, filter, rate, high, started, status, reason,
		moved, to_move) VALUES (?,?,?,?,?,?,?,?,?,'',0,?)`, t.id, t.source.index.number, t.Destination, t.Delete,
		string(rawJSON(t.Filter)), int64(t.Rate), t.high, t.StartedAt.UnixMilli(), string(t.Status), t.ToMove)
	x.c.run(&err, `DELETE FROM moves WHERE source = ?1 AND number NOT IN
		(SELECT number FROM moves WHERE source = ?1 ORDER BY number DESC LIMIT ?2)`, t.source.index.number, int64(maxMoveTasks))
	return err
}

// loadMoves reads the tasks. A task in memory without a row fails, because its queue was deleted.
func (b *Broker) loadMoves(c *conn) error {
	sources := map[int64]*liveQueue{}
	for _, q := range b.queues.all() {
		sources[q.index.number] = q
	}

	b.moves.mu.Lock()
	defer b.moves.mu.Unlock()
	known := map[string]*moveTask{}
	for _, list := range b.moves.bySource {
		for _, t := range list {
			known[t.id] = t
		}
	}

	clear(b.moves.bySource)
	var damaged error
	err := c.query(func(row row) {
		q := sources[row.int(1)]
		if q == nil {
			return
		}
		t := known[row.text(0)]
		if t == nil {
			t = &moveTask{source: q, id: row.text(0), ended: make(chan struct{})}
			t.MoveTask = MoveTask{Status: MoveRunning, ToMove: row.int(9), StartedAt: date(row.int(5)),
				MoveRequest: MoveRequest{Source: q.arn, Destination: b.opts.own(row.text(2)), Rate: int(row.int(3)),
					Delete: row.int(10) != 0}}
			if err := json.Unmarshal([]byte(row.text(11)), &t.Filter); err != nil {
				damaged = err
			}
			t.high = row.int(4)
		}
		t.Moved = row.int(8)
		if MoveStatus(row.text(6)) != MoveRunning {
			t.end(MoveStatus(row.text(6)), row.text(7))
		}
		delete(known, t.id)
		b.moves.bySource[q.index.number] = append(b.moves.bySource[q.index.number], t)
	}, `SELECT id, source, destination, rate, high, started, status, reason, moved, to_move, deletes, filter
		FROM moves ORDER BY number`)
	for _, t := range known {
		t.end(MoveFailed, reasonNoQueue)
	}
	return cmp.Or(err, damaged)
}

func (b *Broker) resumeMoves() {
	b.moves.mu.Lock()
	defer b.moves.mu.Unlock()
	for _, list := range b.moves.bySource {
		for _, t := range list {
			if t.Status == MoveRunning && !t.started {
				t.started = b.background.start(func() { b.runMove(t) })
			}
		}
	}
}
