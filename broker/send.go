package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"tendril/queue"
)

// Send accepts up to [queue.MaxBatch] messages. It returns one [queue.Sent]
// for each, in order, after they are on disk; entries may fail one by one.
// The error is for the whole call (no such queue, storage).
//
// Once the messages are handed to the disk, ctx no longer counts: the answer
// says what became of them.
func (b *Broker) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	q, err := b.queues.get(name)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(msgs); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSending(q, msgs)
	if len(s.records) == 0 {
		return s.sent, nil
	}
	if err := b.writer.do(s, s.done); err != nil {
		return nil, err
	}
	return s.sent, nil
}

// sending is the request of one Send.
type sending struct {
	q       *liveQueue
	set     settings
	records []*record
	sums    []uint32 // of their contents
	delays  []time.Duration
	index   []int        // of each record among sent
	sent    []queue.Sent // the answer
	fresh   []*record    // those that are not duplicates
	done    chan error
}

// newSending checks the messages and makes records of the good ones.
func newSending(q *liveQueue, msgs []queue.Outgoing) *sending {
	q.mu.Lock()
	set := q.set
	q.mu.Unlock()
	s := &sending{q: q, set: set, sent: make([]queue.Sent, len(msgs)), done: make(chan error, 1)}
	for i := range msgs {
		m := &msgs[i]
		if err := set.checkOutgoing(m); err != nil {
			s.sent[i].Err = err
			continue
		}
		delay := set.delay
		if m.Delay != nil && !set.fifo {
			delay = *m.Delay
		}
		r := newRecord(m, &set)
		s.records = append(s.records, r)
		s.sums = append(s.sums, r.contentSum())
		s.delays = append(s.delays, delay)
		s.index = append(s.index, i)
	}
	return s
}

func newRecord(m *queue.Outgoing, set *settings) *record {
	r := &record{
		group: m.GroupID, dedup: m.DedupID, trace: m.TraceHeader,
		attributes: encodeAttributes(m.Attributes), body: m.Body,
	}
	if set.fifo && r.dedup == "" {
		sum := sha256.Sum256([]byte(m.Body))
		r.dedup = hex.EncodeToString(sum[:])
	}
	r.size = int64(len(r.body) + len(r.attributes))
	return r
}

func (s *sending) needs() (durable, space bool) { return true, true }

func (s *sending) apply(t *tx) error {
	s.fresh = s.fresh[:0]
	if t.gone(s.q) {
		return nil
	}
	clock := s.q.clock
	now, sent := clock.milli(clock.now()), stamp()
	for i, r := range s.records {
		answer := &s.sent[s.index[i]]
		if s.set.fifo {
			first, err := t.duplicate(s.q, r, &s.set, now)
			if err != nil {
				return err
			}
			if first != 0 {
				s.answer(answer, first)
				continue
			}
		}
		k := t.counters(s.q)
		r.key, r.sent, r.due = makeKey(s.q.number, k.next), sent, 0
		r.sum = checksum(s.sums[i], r.key)
		if s.delays[i] > 0 {
			r.due = gridUp(now + s.delays[i].Milliseconds())
		}
		k.next++
		k.sent++
		if s.set.fifo {
			if err := t.remember(s.q, r, &s.set, now); err != nil {
				return err
			}
		}
		t.insert(r)
		s.answer(answer, r.key)
		s.fresh = append(s.fresh, r)
	}
	return nil
}

func (s *sending) answer(to *queue.Sent, key int64) {
	to.ID = s.q.seal.messageID(key)
	if s.set.fifo {
		to.SequenceNumber = sequenceNumber(key)
	}
}

func (s *sending) onCommit(err error) {
	q := s.q
	if err == nil && q.removed {
		err = errNoQueue()
	}
	if err == nil && len(s.fresh) > 0 {
		q.mu.Lock()
		q.counters.sent += int64(len(s.fresh))
		q.counters.next = keySeq(s.fresh[len(s.fresh)-1].key) + 1
		for _, r := range s.fresh {
			q.arrive(r, r.size <= keepContent)
		}
		q.waiters.wake(len(s.fresh))
		q.arm()
		q.watchRetention(s.fresh[0].sent)
		q.mu.Unlock()
	}
	s.done <- err
}

// dedupWindow is how long a deduplication id is remembered, counted from the
// first send with it; deleting the message does not end it, purging does.
const dedupWindow = 5 * time.Minute

// duplicate returns the key under which a message with the same deduplication
// id was sent within the window; 0 when there was none.
func (t *tx) duplicate(q *liveQueue, r *record, set *settings, now int64) (first int64, err error) {
	err = t.c.query(func(row row) error {
		key := row.int(0)
		expires := row.int(1)
		if expires > now && keySeq(key) > q.disk.floor {
			first = key
		}
		return nil
	}, `SELECT message, expires FROM dedup WHERE queue = ? AND dedup_id = ? AND group_id = ?`,
		q.number, r.dedup, dedupScope(r, set))
	return first, err
}

// remember notes the deduplication id of a message in the transaction of its
// send.
func (t *tx) remember(q *liveQueue, r *record, set *settings, now int64) error {
	_, err := t.c.exec(`INSERT OR REPLACE INTO dedup (queue, dedup_id, group_id, message, expires) VALUES (?,?,?,?,?)`,
		q.number, r.dedup, dedupScope(r, set), r.key, now+dedupWindow.Milliseconds())
	return err
}

// dedupScope is the group within which a deduplication id counts; "" is the
// whole queue.
func dedupScope(r *record, set *settings) string {
	if set.dedupPerGroup {
		return r.group
	}
	return ""
}
