package broker

import (
	"context"

	"tendril/queue"
)

// DeleteMessages removes messages by id as an operator's act and returns how
// many there were; ids that are gone, or just being deleted, are passed over.
// They count as purged.
func (b *Broker) DeleteMessages(ctx context.Context, name string, ids []string) (int, error) {
	q, err := b.queue(name)
	if err != nil {
		return 0, err
	}
	held, err := q.reserve(ctx, ids)
	if err != nil || len(held) == 0 {
		return 0, err
	}
	r := &removal{q: q, messages: held, done: make(chan error, 1)}
	if err := b.writer.do(r, r.done); err != nil {
		return 0, err
	}
	return r.counted, nil
}

// hold finds messages by id and keeps them from being given out or deleted:
// they are leaving.
func (q *liveQueue) reserve(ctx context.Context, ids []string) ([]*message, error) {
	var keys []int64
	for len(ids) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(len(ids), browseChunk)
		err := q.b.read(func(c *conn) error {
			for _, id := range ids[:n] {
				key, err := q.keyOf(c, id)
				if err != nil {
					return err
				}
				if key != 0 {
					keys = append(keys, key)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ids = ids[n:]
	}
	return q.reserveKeys(keys)
}

func (q *liveQueue) reserveKeys(keys []int64) (held []*message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(); err != nil {
		return nil, err
	}
	for _, key := range keys {
		switch m := q.held[key]; {
		case key <= q.low():
		case m == nil:
			held = append(held, q.claim(key))
		case !m.leaving:
			m.leaving = true
			held = append(held, m)
		}
	}
	return held, nil
}

// removal is the request of an operator's delete.
type removal struct {
	q        *liveQueue
	messages []*message
	dues     []int64 // of those removed
	counted  int
	done     chan error
}

func (r *removal) durable() bool { return false }
func (r *removal) grows() bool   { return false }

func (r *removal) apply(t *tx) error {
	r.counted, r.dues = 0, nil
	if t.gone(r.q) {
		return nil
	}
	for _, m := range r.messages {
		row, found, err := t.row(r.q, m.key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		t.remove(m.key, true)
		t.counters(r.q).purged++
		r.counted++
		if row.due != 0 {
			r.dues = append(r.dues, row.due)
		}
	}
	return nil
}

func (r *removal) onCommit(err error) {
	q := r.q
	q.mu.Lock()
	for _, m := range r.messages {
		switch {
		case m.isPlaceholder():
			q.unclaim(m)
		case err != nil:
			q.keep(m)
		default:
			q.remove(m)
		}
	}
	if err == nil {
		q.counters.purged += int64(r.counted)
		for _, due := range r.dues {
			q.delays.sub(due)
		}
	}
	q.wakeAfterRemoval(len(r.messages))
	q.mu.Unlock()
	r.done <- err
}

// Move moves messages by id to another queue, in one transaction, keeping id,
// body and attributes and beginning a new receive count for redrive purposes;
// the receive count that receivers see goes on. The sent time and with it the
// retention begin anew, in another queue than a dead-letter queue also the time of
// the first receive; a delay ends. An empty to means the queue each was
// dead-lettered from. It returns how many were moved; ids that are gone, or
// have no such queue any more, are passed over.
func (b *Broker) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	q, err := b.queue(from)
	if err != nil {
		return 0, err
	}
	var target *liveQueue
	if to != "" {
		if target, err = b.queue(to); err != nil {
			return 0, err
		}
		if err := q.checkMove(target); err != nil {
			return 0, err
		}
	}
	held, err := q.reserve(ctx, ids)
	if err != nil || len(held) == 0 {
		return 0, err
	}
	t, err := b.newMove(q, target, held)
	if err != nil {
		return 0, err
	}
	if err := b.writer.do(t, t.done); err != nil {
		return 0, err
	}
	n := 0
	for _, it := range t.items {
		if it.moved {
			n++
		}
	}
	return n, nil
}

func (q *liveQueue) checkMove(to *liveQueue) error {
	if q == to {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Source and destination of a move are both %s; name another queue.", q.name)
	}
	if q.isFIFO() != to.isFIFO() {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Messages cannot move between a standard and a FIFO queue (%s, %s).", q.name, to.name)
	}
	return nil
}

// newMove makes the request of a move of held messages. With a nil target
// those whose source is unknown are let go.
func (b *Broker) newMove(from, target *liveQueue, held []*message) (*transfer, error) {
	sources := map[int64]string{}
	if target == nil {
		if err := b.readSources(held, sources); err != nil {
			from.release(held)
			return nil, err
		}
	}
	t := &transfer{b: b, from: from, done: make(chan error, 1)}
	var rest []*message
	isDead := map[*liveQueue]bool{}
	for _, m := range held {
		to := target
		if to == nil {
			to = b.byARN(sources[m.key])
		}
		if to == nil || from.checkMove(to) != nil {
			rest = append(rest, m)
			continue
		}
		if _, known := isDead[to]; !known {
			sources, err := b.DeadLetterSources(to.name)
			isDead[to] = err == nil && len(sources) > 0
		}
		t.items = append(t.items, &transferItem{m: m, to: to, toDead: isDead[to]})
	}
	from.release(rest)
	return t, nil
}

func (b *Broker) readSources(held []*message, sources map[int64]string) error {
	keys := make([]int64, len(held))
	for i, m := range held {
		keys[i] = m.key
	}
	return b.read(func(c *conn) error {
		return c.heads(keys, func(r *record) { sources[r.key] = r.source })
	})
}

// letGo ends the hold on messages.
func (q *liveQueue) release(held []*message) {
	if len(held) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range held {
		if m.isPlaceholder() {
			q.unclaim(m)
		} else {
			q.keep(m)
		}
	}
	q.wakeAfterRemoval(len(held))
}
