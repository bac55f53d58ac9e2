package broker

import "time"

// Ledger accounts for every message. It always balances:
//
//	Sent + MovedIn = Done + DeadLettered + MovedOut + Expired + Purged + Live
//
// and for the sum over all queues, MovedIn = DeadLettered + MovedOut.
type Ledger struct {
	// Sent counts accepted sends (FIFO duplicates are not accepted twice).
	Sent int64 `json:"sent"`
	// Done counts deletes by receipt handle.
	Done int64 `json:"done"`
	// DeadLettered counts moves to a dead-letter queue by the redrive policy.
	DeadLettered int64 `json:"dead_lettered"`
	// MovedIn counts arrivals by dead-lettering or redrive; MovedOut counts
	// departures by redrive.
	MovedIn  int64 `json:"moved_in"`
	MovedOut int64 `json:"moved_out"`
	// Expired counts messages that passed their retention period.
	Expired int64 `json:"expired"`
	// Purged counts messages removed by an operator.
	Purged int64 `json:"purged"`
	// Live counts messages in the queue now: Visible + Delayed + InFlight + Damaged.
	Live     int64 `json:"live"`
	Visible  int64 `json:"visible"`
	Delayed  int64 `json:"delayed"`
	InFlight int64 `json:"in_flight"`
	// Damaged counts messages that are not delivered, since what is stored is not what was sent. One is found when it is
	// received, listed or moved.
	Damaged int64 `json:"damaged,omitempty"`
}

// counters are what is counted of one queue: its ledger, the next free place, and
// the place up to which all is purged.
type counters struct {
	next, floor                        int64
	sent, done, deadLettered           int64
	movedIn, movedOut, expired, purged int64
}

// live is the number of messages in the queue, by the ledger's equation.
func (k *counters) live() int64 {
	return k.sent + k.movedIn - k.done - k.deadLettered - k.movedOut - k.expired - k.purged
}

// add adds the account of another queue; the places are not part of it.
func (k *counters) add(o *counters) {
	k.sent += o.sent
	k.done += o.done
	k.deadLettered += o.deadLettered
	k.movedIn += o.movedIn
	k.movedOut += o.movedOut
	k.expired += o.expired
	k.purged += o.purged
}

func writeCounters(c *conn, number int64, k *counters) error {
	_, err := c.exec(`INSERT OR REPLACE INTO counters
		(queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged)
		VALUES (?,?,?,?,?,?,?,?,?,?)`,
		number, k.next, k.floor, k.sent, k.done, k.deadLettered, k.movedIn, k.movedOut, k.expired, k.purged)
	return err
}

// readCounters returns the counters of every queue by number, row 0 included.
func readCounters(c *conn) (map[int64]counters, error) {
	all := map[int64]counters{}
	err := c.query(func(row row) {
		all[row.int(0)] = counters{
			next: row.int(1), floor: row.int(2), sent: row.int(3), done: row.int(4), deadLettered: row.int(5),
			movedIn: row.int(6), movedOut: row.int(7), expired: row.int(8), purged: row.int(9),
		}
	}, `SELECT queue, next, floor, sent, done, dead_lettered, moved_in, moved_out, expired, purged FROM counters`)
	return all, err
}

// ledger is the account of messages of which so many are in flight, delayed and damaged.
func (k *counters) ledger(inFlight, delayed, damaged int) Ledger {
	l := Ledger{
		Sent: k.sent, Done: k.done, DeadLettered: k.deadLettered, MovedIn: k.movedIn, MovedOut: k.movedOut,
		Expired: k.expired, Purged: k.purged, Live: k.live(), Delayed: int64(delayed), InFlight: int64(inFlight),
		Damaged: int64(damaged),
	}
	l.Visible = l.Live - l.InFlight - l.Delayed - l.Damaged
	return l
}

// ledger is the account now.
func (x *index) ledger() Ledger {
	return x.counters.ledger(x.inFlight.Len(), x.delays.delayed, x.damaged)
}

// Ledger returns the account of one queue.
func (b *Broker) Ledger(name string) (Ledger, error) {
	q, err := b.queues.get(name)
	if err != nil {
		return Ledger{}, err
	}
	q.lock()
	defer q.mu.Unlock()
	return q.index.ledger(), nil
}

// TotalLedger returns the sum of the accounts of all queues, those included
// that were deleted since the data directory was made.
func (b *Broker) TotalLedger() Ledger {
	b.queues.moving.Lock()
	defer b.queues.moving.Unlock()
	total := b.queues.deleted.index.counters
	inFlight := 0
	delayed := 0
	damaged := 0
	for _, q := range b.queues.all() {
		q.lock()
		total.add(&q.index.counters)
		inFlight = inFlight + q.index.inFlight.Len()
		delayed = delayed + q.index.delays.delayed
		damaged = damaged + q.index.damaged
		q.mu.Unlock()
	}
	return total.ledger(inFlight, delayed, damaged)
}

// OldestAge returns the age of the oldest live message of a queue, 0 when it
// is empty. Of a message that came from another queue it is the time since it
// came, of one that was scheduled the time since it is visible.
func (b *Broker) OldestAge(name string) (time.Duration, error) {
	q, err := b.queues.get(name)
	if err != nil {
		return 0, err
	}

	q.mu.Lock()
	low := q.index.low()
	high := q.index.high()
	live := q.index.counters.live()
	last := q.index.last()
	from := max(low, q.ageFrom)
	q.mu.Unlock()
	if live == 0 {
		return 0, nil
	}

	var since, key, due int64
	err = b.read(func(c *conn) error {
		err := c.query(func(row row) { key, since = row.int(0), row.int(1) }, `SELECT id, max(sent, coalesce(dead, 0))
			FROM messages WHERE id > ? AND id <= ? AND (due IS NULL OR due <> sent) ORDER BY id LIMIT 1`, from, high)
		if err == nil {
			// Others with a delay became visible later than they, or an older one, were sent.
			due, err = c.integer(`SELECT due FROM messages WHERE id >> 40 = ? AND due IS NOT NULL AND due <= ? AND id > ?
				ORDER BY due LIMIT 1`, q.index.number, q.broker.clock.floor(q.broker.clock.now()), low)
		}
		return err
	})
	if err != nil {
		return 0, err
	}

	if key == 0 {
		key = last + 1
	}

	q.mu.Lock()
	q.ageFrom = max(q.ageFrom, key-1)
	q.mu.Unlock()
	if since == 0 || due != 0 && due < since {
		since = due
	}

	if since == 0 {
		return 0, nil
	}
	return max(0, time.Duration(stamp()-since)*time.Millisecond), nil
}
