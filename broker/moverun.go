package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

const (
	bulkRows     = 200 // per transaction
	moveInterval = 100 * time.Millisecond
	moveRetry    = time.Second
)

// mover goes through the source queue once, oldest message first; after a restart, from the oldest remaining one.
type mover struct {
	b      *Broker
	task   *moveTask
	sel    condition
	cursor int64
	// blockedGroups are the FIFO groups with a message that stays, so that their later messages stay too.
	blockedGroups map[string]bool
	leftNoSource  bool
}

func (b *Broker) runMove(t *moveTask) {
	m := &mover{b: b, task: t, sel: b.condition(&t.Filter), cursor: makeKey(t.source.index.number, 0),
		blockedGroups: map[string]bool{}}
	failing := false
	for b.moves.snapshot(t).Status == MoveRunning {
		start := time.Now()
		n, err := m.step()
		wait := m.minDuration(n) - time.Since(start)
		if err != nil {
			wait = moveRetry
		}
		if !m.pause(wait) {
			return
		}
		if err != nil && !failing {
			b.log.Warn("batch of a move task failed, retrying", "queue", t.source.name, "err", loggedError(b.dir, err))
		}
		failing = err != nil
	}
}

func (m *mover) minDuration(n int) time.Duration {
	if m.task.Rate == 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(m.task.Rate)
}

func (m *mover) pause(wait time.Duration) (running bool) {
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
		return bulkRows
	}
	return max(1, m.task.Rate*int(moveInterval)/int(time.Second))
}

// step moves a batch and returns its size. At the end of the queue, or if a target queue is missing, it ends the
// task.
func (m *mover) step() (n int, err error) {
	rows, last, err := m.nextRows()
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 && last == 0 {
		return 0, m.endAtLast()
	}
	if last == 0 {
		last = m.task.high
	}

	var target *liveQueue
	if m.task.Destination != "" {
		if target = m.b.byARN(m.task.Destination); target == nil {
			return 0, m.end(MoveFailed, reasonNoQueue)
		}
	}

	movable := m.movable(rows)
	if i := slices.IndexFunc(movable, m.lacksSource); i == 0 {
		return 0, m.end(MoveFailed, reasonNoQueue)
	} else if i > 0 { // move only the messages before it; the next step ends the task
		last = movable[i].key - 1
		movable = movable[:i]
	}

	n, err = m.move(movable, target)
	if err == nil {
		m.cursor = last
	}
	return n, err
}

func (m *mover) nextRows() (rows []*record, last int64, err error) {
	m.cursor = max(m.cursor, m.task.source.keys().low) // purged rows may still be stored
	err = m.b.read(func(c *conn) (err error) {
		rows, last, err = c.scanMatching(m.sel.columns(), m.cursor, m.task.high, m.sel, m.limit())
		return err
	})
	return rows, last, err
}

func (m *mover) endAtLast() error {
	if m.leftNoSource {
		return m.end(MoveFailed, reasonNoSource)
	}
	return m.end(MoveCompleted, "")
}

func (m *mover) end(status MoveStatus, reason string) error {
	_, err := m.b.endMove(m.task, status, reason)
	return err
}

func (m *mover) toSources() bool { return m.task.Destination == "" && !m.task.Delete }

func (m *mover) lacksSource(r *record) bool {
	return m.toSources() && r.source != "" && m.b.byARN(m.b.opts.localARN(r.source)) == nil
}

// movable omits messages that are delayed, in flight, leaving or without a required source queue, and FIFO messages
// behind them.
func (m *mover) movable(rows []*record) (movable []*record) {
	q := m.task.source
	q.lockAndExpire()
	defer q.mu.Unlock()
	now := q.broker.clock.nowMilli()
	for _, r := range rows {
		switch {
		case m.unavailable(r, now):
		case r.source == "" && m.toSources():
			m.leftNoSource = true
		default:
			movable = append(movable, r)
			continue
		}
		if q.index.fifo {
			m.blockedGroups[r.group] = true
		}
	}
	return movable
}

// The caller must hold the source's lock.
func (m *mover) unavailable(r *record, now int64) bool {
	held := m.task.source.index.held[r.key]
	isBusy := held != nil && (held.inFlight || held.leaving)
	return r.due > now || isBusy || m.blockedGroups[r.group]
}

// move moves the rows to target or, if nil, to each message's source queue. With task.Delete, it deletes them.
func (m *mover) move(rows []*record, target *liveQueue) (n int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}

	q := m.task.source
	reserved, err := q.reserveKeys(keys)
	if err != nil {
		return 0, err
	}

	s := &moveStep{b: m.b, task: m.task}
	need := needsFsync
	if m.task.Delete {
		need = needsNothing
		s.departure = &removal{ctx: context.Background(), q: q, messages: reserved, cause: CauseDeleted}
	} else if s.departure, err = m.b.newMove(context.Background(), q, target, reserved); err != nil {
		return 0, err
	}
	err = m.b.writer.do(s, need)
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

func (s *moveStep) apply(x *tx) {
	s.ended = x.integer(`SELECT count(*) FROM moves WHERE id = ? AND status = ?`, s.task.id, string(MoveRunning)) == 0
	if s.ended {
		return
	}
	s.departure.apply(x)
	x.exec(`UPDATE moves SET moved = moved + ? WHERE id = ?`, int64(s.departed()), s.task.id)
}

func (s *moveStep) onCommit(err error) error {
	if err == nil && s.ended {
		_ = s.departure.onCommit(errNoTask) // releases the messages
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
	write := func(x *tx) {
		ended = x.exec(`UPDATE moves SET status = ?, reason = ? WHERE id = ? AND status = ?`, string(status), reason,
			t.id, string(MoveRunning)) > 0
	}
	err = b.writer.change(write, func() {
		b.moves.mu.Lock()
		defer b.moves.mu.Unlock()
		t.end(status, reason)
	})
	return ended, err
}

func (x *tx) insertMoveTask(t *moveTask) {
	x.exec(`INSERT INTO moves (id, source, destination, deletes, filter, rate, high, started, status, reason,
		moved, to_move) VALUES (?,?,?,?,?,?,?,?,?,'',0,?)`, t.id, t.source.index.number, t.Destination, t.Delete,
		string(rawJSON(t.Filter)), int64(t.Rate), t.high, t.StartedAt.UnixMilli(), string(t.Status), t.ToMove)
	x.exec(`DELETE FROM moves WHERE source = ?1 AND number NOT IN
		(SELECT number FROM moves WHERE source = ?1 ORDER BY number DESC LIMIT ?2)`, t.source.index.number,
		int64(maxMoveTasks))
}

// A task in memory without a row fails, because its queue was deleted.
func (b *Broker) loadMoves(c *conn) error {
	sources := map[int64]*liveQueue{}
	for _, q := range b.queues.all() {
		sources[q.index.number] = q
	}

	b.moves.mu.Lock()
	defer b.moves.mu.Unlock()
	inMemory := b.moves.takeAll()
	var unreadable error
	err := c.query(func(row row) {
		source := sources[row.int(1)]
		if source == nil {
			return
		}
		t := inMemory[row.text(0)]
		delete(inMemory, row.text(0))
		if t == nil {
			var err error
			t, err = b.moveTaskOf(source, row)
			unreadable = cmp.Or(err, unreadable)
		}
		t.Moved = row.int(8)
		if status := MoveStatus(row.text(6)); status != MoveRunning {
			t.end(status, row.text(7))
		}
		b.moves.bySource[row.int(1)] = append(b.moves.bySource[row.int(1)], t)
	}, `SELECT `+moveColumns+` FROM moves ORDER BY number`)

	for _, withoutRow := range inMemory {
		withoutRow.end(MoveFailed, reasonNoQueue)
	}
	return cmp.Or(err, unreadable)
}

// The caller must hold the lock.
func (l *moveTasks) takeAll() map[string]*moveTask {
	byID := map[string]*moveTask{}
	for _, list := range l.bySource {
		for _, t := range list {
			byID[t.id] = t
		}
	}
	clear(l.bySource)
	return byID
}

// moveColumns are the columns that loadMoves and moveTaskOf read.
const moveColumns = `id, source, destination, rate, high, started, status, reason, moved, to_move, deletes, filter`

func (b *Broker) moveTaskOf(source *liveQueue, row row) (*moveTask, error) {
	t := &moveTask{source: source, id: row.text(0), high: row.int(4), ended: make(chan struct{})}
	t.MoveTask = MoveTask{Status: MoveRunning, ToMove: row.int(9), StartedAt: date(row.int(5)),
		MoveRequest: MoveRequest{Source: source.arn, Destination: b.opts.localARN(row.text(2)), Rate: int(row.int(3)),
			Delete: row.int(10) != 0}}
	return t, json.Unmarshal([]byte(row.text(11)), &t.Filter)
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
