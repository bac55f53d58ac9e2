package broker

import (
	"context"
	"slices"
)

// Move moves messages by ID to another queue in one transaction and returns their number. If to is "", each
// returns to the queue it was dead-lettered from. Messages that are missing, damaged, being removed or without a
// target are skipped.
//
// Move keeps the receive count, but resets the sent time and the count that the redrive policy limits.
func (b *Broker) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	q, err := b.live(from)
	if err != nil {
		return 0, err
	}

	var target *liveQueue
	if to != "" {
		if target, err = b.live(to); err != nil {
			return 0, err
		}
		if err := checkMove(q, target); err != nil {
			return 0, err
		}
	}

	reserved, err := q.reserve(ctx, ids)
	if err != nil || len(reserved) == 0 {
		return 0, err
	}
	t, err := b.newMove(ctx, q, target, reserved)
	if err != nil {
		return 0, err
	}
	if err := b.writer.do(t, needsFsync); err != nil {
		return 0, err
	}
	return t.departed(), nil
}

func checkMove(q, to *liveQueue) error {
	if q == to {
		return errInvalid("Source and destination of a move are both %s; name another queue.", q.name)
	}
	if q.index.fifo != to.index.fifo {
		return errInvalid("Messages cannot move between a standard and a FIFO queue (%s, %s).", q.name, to.name)
	}
	return nil
}

func (q *liveQueue) reserve(ctx context.Context, ids []string) (reserved []*message, err error) {
	var keys []int64
	for part := range slices.Chunk(ids, browseChunk) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := q.broker.read(func(c *conn) error {
			for _, id := range part {
				key, err := q.index.keyOf(c, id)
				if err != nil {
					return err
				}
				keys = append(keys, key) // reserveKeys skips 0
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return q.reserveKeys(keys)
}

func (q *liveQueue) reserveKeys(keys []int64) (reserved []*message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return nil, errNoQueue()
	}

	for _, key := range keys {
		if !q.index.published(key) {
			continue
		}
		switch m := q.index.held[key]; {
		case m == nil:
			reserved = append(reserved, q.index.claim(key))
		case !m.leaving:
			m.leaving = true
			reserved = append(reserved, m)
		}
	}
	return reserved, nil
}

// newMove prepares a move to target or, if nil, to each message's source queue. It releases messages that cannot
// move or, after an error, all.
func (b *Broker) newMove(ctx context.Context, from, target *liveQueue, reserved []*message) (*transfer, error) {
	intact, err := from.withholdDamaged(reserved)
	if err != nil {
		from.release(reserved)
		return nil, err
	}

	var sources map[int64]string
	if target == nil {
		if sources, err = b.sourceARNs(intact); err != nil {
			from.release(intact)
			return nil, err
		}
	}

	deadLetterQueues := b.deadLetterTargets()
	t := &transfer{ctx: ctx, from: from, cause: CauseMoved}
	var withoutTarget []*message
	for _, m := range intact {
		to := target
		if to == nil {
			to = b.byARN(sources[m.key])
		}
		if to == nil || checkMove(from, to) != nil {
			withoutTarget = append(withoutTarget, m)
			continue
		}
		t.items = append(t.items, &transferItem{m: m, to: to, toDead: deadLetterQueues[to.arn]})
	}

	from.release(withoutTarget)
	return t, nil
}

func (b *Broker) sourceARNs(messages []*message) (map[int64]string, error) {
	sources := map[int64]string{}
	err := b.read(func(c *conn) error {
		for _, m := range messages {
			head, err := c.recordHead(m.key)
			if err != nil {
				return err
			}
			if head != nil {
				sources[m.key] = b.opts.localARN(head.source)
			}
		}
		return nil
	})
	return sources, err
}

func (b *Broker) deadLetterTargets() map[string]bool {
	targets := map[string]bool{}
	for _, q := range b.queues.all() {
		if policy := q.settings().redrive; policy != nil {
			targets[policy.target] = true
		}
	}
	return targets
}

func (q *liveQueue) release(reserved []*message) {
	if len(reserved) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range reserved {
		q.index.unreserve(m)
	}
	q.wakeAfterRemoval(len(reserved))
}
