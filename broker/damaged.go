package broker

import "tendril/queue"

// withhold stops the delivery of a damaged message, which stays on disk and in the ledger until it is removed. Its
// FIFO group continues without it.
func (q *liveQueue) withhold(r *record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted || !q.index.published(r.key) {
		return
	}

	m := q.index.held[r.key]
	isDelayed := q.broker.clock.reading(r.due) > q.now()
	if m == nil && isDelayed {
		return
	}
	if m == nil {
		m = q.index.holdUnreceived(r)
	}
	if m.damaged || m.claimed {
		return
	}
	if m.inFlight {
		q.index.stopFlight(m)
		q.uncount(m)
		q.storeReceive(m)
	}

	m.damaged = true
	q.index.damaged++
	q.index.order.forget(m)
	q.wakeAfterRemoval(1)
	q.broker.log.Error("damaged message found, it is not delivered", "queue", q.name,
		"message_id", q.broker.messageID(m.origin),
		"hint", "inspect it with 'tendril message show ID', send it again, and delete it; see docs/backup.md")
}

func (x *index) holdUnreceived(r *record) *message {
	m := x.newMessage(r)
	x.dropContent(m)
	m.epoch = x.broker.epoch
	x.held[r.key] = m
	x.resetWindow() // the window may contain it
	return m
}

func (q *liveQueue) withholdDamaged(messages []*message) (intact []*message, err error) {
	keys := make([]int64, len(messages))
	for i, m := range messages {
		keys[i] = m.key
	}

	damaged := map[int64]*record{}
	err = q.broker.read(func(c *conn) error {
		return c.eachRecord(func(r *record) {
			if r.isDamaged() {
				damaged[r.key] = r
			}
		}, allColumns, `id IN (SELECT value FROM json_each(?))`, string(rawJSON(keys)))
	})
	if err != nil {
		return nil, err
	}

	var rejected []*message
	for _, m := range messages {
		if damaged[m.key] == nil {
			intact = append(intact, m)
		} else {
			rejected = append(rejected, m)
		}
	}

	q.release(rejected)
	for _, r := range damaged {
		q.withhold(r)
	}
	return intact, nil
}

func errIsDamaged(id string) error {
	return queue.Errorf(queue.CodeUnsupportedOperation,
		"Message %s is damaged and cannot be delivered: the stored message differs from the message sent. Send it "+
			"again and delete this one.",
		clip(id))
}
