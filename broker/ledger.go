package broker

import (
	"time"

	"tendril/queue"
)

// Ledger is an alias of [queue.Ledger].
type Ledger = queue.Ledger

// counters are a queue's positions and the stored part of its ledger, Sent to Purged. All messages up to floor are
// purged.
type counters struct {
	next, floor int64
	Ledger
}

func (k *counters) live() int64 {
	return k.Sent + k.MovedIn - k.Done - k.DeadLettered - k.MovedOut - k.Expired - k.Purged
}

func (k *counters) add(l *Ledger) {
	k.Sent += l.Sent
	k.Done += l.Done
	k.DeadLettered += l.DeadLettered
	k.MovedIn += l.MovedIn
	k.MovedOut += l.MovedOut
	k.Expired += l.Expired
	k.Purged += l.Purged
	k.Delayed += l.Delayed
	k.InFlight += l.InFlight
	k.Damaged += l.Damaged
}

func (t *tx) writeCounters(q *liveQueue) {
	k := &q.disk
	t.exec(`INSERT OR REPLACE INTO counters
		(queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged)
		VALUES (?,?,?,?,?,?,?,?,?,?)`,
		q.index.number, k.next, k.floor, k.Sent, k.Done, k.DeadLettered, k.MovedIn, k.MovedOut, k.Expired, k.Purged)
}

// readCounters returns the counters by queue number; 0 has the sum of the deleted queues.
func readCounters(c *conn) (map[int64]counters, error) {
	all := map[int64]counters{}
	err := c.query(func(row row) {
		all[row.int(0)] = counters{
			next: row.int(1), floor: row.int(2),
			Ledger: Ledger{Sent: row.int(3), Done: row.int(4), DeadLettered: row.int(5), MovedIn: row.int(6),
				MovedOut: row.int(7), Expired: row.int(8), Purged: row.int(9)},
		}
	}, `SELECT queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged FROM counters`)
	return all, err
}

func (k counters) ledger() Ledger {
	k.Live = k.live()
	k.Visible = k.Live - k.InFlight - k.Delayed - k.Damaged
	return k.Ledger
}

func (x *index) ledger() Ledger {
	k := x.counters
	k.InFlight = int64(x.inFlight.Len())
	k.Delayed = int64(x.delays.delayed)
	k.Damaged = int64(x.damaged)
	return k.ledger()
}

// Ledger returns the ledger of a queue.
func (b *Broker) Ledger(name string) (Ledger, error) {
	q, err := b.live(name)
	if err != nil {
		return Ledger{}, err
	}
	q.lockAndExpire()
	defer q.mu.Unlock()
	return q.index.ledger(), nil
}

// TotalLedger returns the sum of the ledgers of all queues, including deleted ones.
func (b *Broker) TotalLedger() Ledger {
	b.queues.moving.Lock()
	defer b.queues.moving.Unlock()
	total := b.queues.deleted.index.counters
	for _, q := range b.queues.all() {
		q.lockAndExpire()
		l := q.index.ledger()
		q.mu.Unlock()
		total.add(&l)
	}
	return total.ledger()
}

// OldestAge returns the time since a queue's oldest message was sent or moved there or, if scheduled, became
// visible. It returns 0 if there is no such message.
func (b *Broker) OldestAge(name string) (time.Duration, error) {
	q, err := b.live(name)
	if err != nil {
		return 0, err
	}

	keys := q.keys()
	if keys.live == 0 {
		return 0, nil
	}

	var key, since, due int64
	err = b.read(func(c *conn) (err error) {
		if key, since, err = c.oldestUnscheduled(max(keys.low, q.ageFrom.Load()), keys.high); err != nil {
			return err
		}
		// Messages with a plain delay do not change the result: each was sent before it was due, and the first query
		// found it or an older one.
		due, err = c.integer(`SELECT due FROM messages WHERE id >> 40 = ? AND due IS NOT NULL AND due <= ? AND id > ?
			ORDER BY due LIMIT 1`, q.index.number, q.broker.clock.nowMilli(), keys.low)
		return err
	})
	if err != nil {
		return 0, err
	}

	if key == 0 {
		key = keys.last + 1
	}
	q.ageFrom.Store(key - 1) // a concurrent call may store a smaller one, which is valid too

	if since == 0 || due != 0 && due < since {
		since = due
	}
	if since == 0 {
		return 0, nil
	}
	return max(0, time.Duration(stamp()-since)*time.Millisecond), nil
}

func (c *conn) oldestUnscheduled(from, high int64) (key, since int64, err error) {
	err = c.query(func(row row) {
		key = row.int(0)
		since = row.int(1)
	}, `SELECT id, max(sent, coalesce(dead, 0)) FROM messages
		WHERE id > ? AND id <= ? AND (due IS NULL OR due <> sent) ORDER BY id LIMIT 1`, from, high)
	return key, since, err
}
