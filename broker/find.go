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

// FindByID returns up to most messages, from any queue, whose IDs start with start, ignoring case. It reads the
// IDs of all messages, smallest queue first, until it has enough. complete is false if the time within ran out
// first.
func (b *Broker) FindByID(ctx context.Context, start string, most int, within time.Duration) (found []Stored,
	complete bool, err error) {
	start = strings.ToLower(start)
	deadline := time.Now().Add(within)
	for _, keys := range b.queuesBySize() {
		for after := keys.low; after > 0; {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			if time.Now().After(deadline) {
				return found, false, nil
			}

			var ids []string
			err := b.read(func(c *conn) (err error) {
				ids, after, err = c.idsFrom(b.seal, after, keys.high, start)
				return err
			})
			if err != nil {
				return nil, false, err
			}

			messages, err := b.messagesByID(ctx, keys.queue, ids, most-len(found))
			if err != nil {
				return nil, false, err
			}
			found = append(found, messages...)
			if len(found) == most {
				return found, true, nil
			}
		}
	}
	return found, true, nil
}

func (b *Broker) messagesByID(ctx context.Context, name string, ids []string, most int) (found []Stored, err error) {
	for _, id := range ids {
		if len(found) == most {
			break
		}
		s, err := b.Message(ctx, name, id)
		switch {
		case errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}), errors.Is(err, queue.ErrNoQueue):
			continue
		case err != nil:
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// keyRange bounds the keys of a queue's messages: low < key <= last, or <= high including messages to come.
type keyRange struct {
	queue                 string
	low, last, high, live int64
}

func (q *liveQueue) keys() keyRange {
	q.mu.Lock()
	defer q.mu.Unlock()
	return keyRange{q.name, q.index.low(), q.index.last(), q.index.high(), q.index.counters.live()}
}

func (b *Broker) queuesBySize() (all []keyRange) {
	for _, q := range b.queues.all() {
		all = append(all, q.keys())
	}
	slices.SortFunc(all, func(a, b keyRange) int {
		return cmp.Or(cmp.Compare(a.last-a.low, b.last-b.low), strings.Compare(a.queue, b.queue))
	})
	return all
}

func (c *conn) idsFrom(s seal, after, high int64, start string) (ids []string, last int64, err error) {
	rows := 0
	work := new(block)
	err = c.query(func(row row) {
		rows++
		last = row.int(0)
		if id := s.messageID(work, row.int(1)); strings.HasPrefix(id, start) {
			ids = append(ids, id)
		}
	}, `SELECT id, coalesce(origin, id) FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
		after, high, int64(browseChunk))
	if rows < browseChunk {
		last = 0
	}
	return ids, last, err
}
