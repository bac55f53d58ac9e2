package broker

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// load reads the queues. It touches only what is needed to go on, so that it
// takes the same time at any depth: the counters, the messages that were in
// flight or received before, the delays that have not ended.
func (b *Broker) load(s *store) error {
	counters, err := readBooks(s.write)
	if err != nil {
		return err
	}
	b.departedBooks.books = counters[0]
	b.departedBooks.disk = counters[0]
	found, err := b.readQueues(s.write, counters)
	if err != nil {
		return err
	}
	for _, q := range found {
		if err := q.load(s.write); err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		b.queues[q.name] = q
	}
	return s.write.query(func(row []driver.Value) error {
		name, _ := row[0].(string)
		b.departed[name], _ = row[1].(int64)
		return nil
	}, `SELECT name, at FROM departed`)
}

// readQueues makes the queues that the store has, without their messages.
func (b *Broker) readQueues(c *conn, counters map[int64]books) (found []*liveQueue, err error) {
	err = c.query(func(row []driver.Value) error {
		q, err := b.readQueue(row, counters)
		found = append(found, q)
		return err
	}, `SELECT number, name, attributes, tags, created, modified, purged_at FROM queues`)
	return found, err
}

// readQueue makes a queue of its row.
func (b *Broker) readQueue(row []driver.Value, counters map[int64]books) (*liveQueue, error) {
	n := func(i int) int64 { v, _ := row[i].(int64); return v }
	text := func(i int) []byte { v, _ := row[i].(string); return []byte(v) }
	name := string(text(1))
	var attributes, tags map[string]string
	if err := json.Unmarshal(text(2), &attributes); err != nil {
		return nil, fmt.Errorf("queue %s: reading its attributes: %w", name, err)
	}
	if err := json.Unmarshal(text(3), &tags); err != nil {
		return nil, fmt.Errorf("queue %s: reading its tags: %w", name, err)
	}
	set, err := parseSettings(attributes["FifoQueue"] == "true", attributes)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", name, err)
	}
	q := newLiveQueue(b, n(0), name, set)
	q.attributes, q.tags = attributes, tags
	q.created, q.modified, q.purgedAt = n(4), n(5), n(6)
	q.books, q.disk = counters[q.number], counters[q.number]
	return q, nil
}

// load brings the state of a queue's messages to memory.
func (q *liveQueue) load(c *conn) error {
	q.window.cursor = q.low()
	q.window.tail = max(q.low(), makeKey(q.number, q.books.next-1))
	if q.books.live() == 0 {
		q.window.cursor = q.window.tail
		return nil
	}
	q.window.stale = q.window.cursor < q.window.tail
	if !q.set.fifo {
		q.window.due()
	}
	if err := q.loadReceipts(c); err != nil {
		return err
	}
	return q.loadDelays(c)
}

// loadDelays counts the delays that have not ended.
func (q *liveQueue) loadDelays(c *conn) error {
	q.delays.clear()
	return c.query(func(row []driver.Value) error {
		due, _ := row[0].(int64)
		n, _ := row[1].(int64)
		q.delays.add(due, int(n))
		return nil
	}, `SELECT due, count(*) FROM messages WHERE id >> 40 = ? AND due > ? AND id > ? GROUP BY due`,
		q.number, q.b.clock.floor(q.b.clock.now()), q.low())
}
