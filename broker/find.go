package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// FindByID returns up to most messages of all queues whose IDs start with start. It examines all messages, starting
// with the smallest queue. whole is false if the time within ran out first.
func (b *Broker) FindByID(ctx context.Context, start string, most int, within time.Duration) (found []Stored, whole bool, err error) {
	start = strings.ToLower(start)
	until := time.Now().Add(within)
	for _, r := range b.smallestFirst() {
		for at := r.low; at > 0; {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			if time.Now().After(until) {
				return found, false, nil
			}
			var ids []string
			err := b.read(func(c *conn) (err error) {
				ids, at, err = c.idsFrom(b.seal, at, r.high, start)
				return err
			})
			if err != nil {
				return nil, false, err
			}
			for _, id := range ids {
				s, err := b.Message(ctx, r.queue, id)
				switch {
				case errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}), errors.Is(err, queue.ErrNoQueue): // gone
				case err != nil:
					return nil, false, err
				default:
					found = append(found, s)
				}
				if len(found) == most {
					return found, true, nil
				}
			}
		}
	}
	return found, true, nil
}

type keyRange struct {
	queue           string
	low, last, high int64
}

// smallestFirst sorts the queues by the size of their key range, which approximates the number of messages.
func (b *Broker) smallestFirst() (all []keyRange) {
	for _, q := range b.queues.all() {
		q.mu.Lock()
		all = append(all, keyRange{q.name, q.index.low(), q.index.last(), q.index.high()})
		q.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b keyRange) int {
		return cmp.Or(cmp.Compare(a.last-a.low, b.last-b.low), strings.Compare(a.queue, b.queue))
	})
	return all
}

// idsFrom returns the IDs that start with start. last is the last key examined, or 0 at the end of the queue.
func (c *conn) idsFrom(s seal, after, high int64, start string) (ids []string, last int64, err error) {
	rows, work := 0, new(block)
	err = c.query(func(row row) {
		rows++
		last = row.int(0)
		if id := s.messageID(work, row.int(1)); strings.HasPrefix(id, start) {
			ids = append(ids, id)
		}
	}, `SELECT id, coalesce(origin, id) FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`, after, high, int64(browseChunk))
	if rows < browseChunk {
		last = 0
	}
	return ids, last, err
}
