package broker

import (
	"database/sql/driver"
	"time"
)

// ledger is the account now. The lock is held.
func (q *liveQueue) ledger() Ledger {
	l := q.books.ledger()
	l.InFlight = int64(q.flight.len())
	l.Delayed = int64(q.delays.delayed)
	l.Visible = l.Live - l.InFlight - l.Delayed
	return l
}

func (k *books) ledger() Ledger {
	return Ledger{
		Sent: k.sent, Done: k.done, DeadLettered: k.deadLettered, MovedIn: k.movedIn, MovedOut: k.movedOut,
		Expired: k.expired, Purged: k.purged, Live: k.live(),
	}
}

// Ledger returns the account of one queue.
func (b *Broker) Ledger(name string) (Ledger, error) {
	q, err := b.queue(name)
	if err != nil {
		return Ledger{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ledger(), nil
}

// TotalLedger returns the sum of the accounts of all queues, those included
// that were deleted since the data directory was made.
func (b *Broker) TotalLedger() Ledger {
	b.booksMu.Lock()
	defer b.booksMu.Unlock()
	total := b.departedBooks.books.ledger()
	for _, q := range b.all() {
		q.mu.Lock()
		total.add(q.ledger())
		q.mu.Unlock()
	}
	return total
}

func (l *Ledger) add(o Ledger) {
	l.Sent += o.Sent
	l.Done += o.Done
	l.DeadLettered += o.DeadLettered
	l.MovedIn += o.MovedIn
	l.MovedOut += o.MovedOut
	l.Expired += o.Expired
	l.Purged += o.Purged
	l.Live += o.Live
	l.Visible += o.Visible
	l.Delayed += o.Delayed
	l.InFlight += o.InFlight
}

// OldestAge returns the age of the oldest live message of a queue, 0 when it
// is empty. Of a message that came from another queue it is the time since it
// came.
func (b *Broker) OldestAge(name string) (time.Duration, error) {
	q, err := b.queue(name)
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	low, high, live := q.low(), q.high(), q.books.live()
	q.mu.Unlock()
	if live == 0 {
		return 0, nil
	}
	var since int64
	err = b.read(func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			since, _ = row[0].(int64)
			return nil
		}, `SELECT max(sent, coalesce(dead, 0)) FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT 1`, low, high)
	})
	if err != nil || since == 0 {
		return 0, err
	}
	return max(0, time.Duration(stamp()-since)*time.Millisecond), nil
}
