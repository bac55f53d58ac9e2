package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"tendril/queue"
)

// Send accepts up to [queue.MaxBatch] messages and returns one [queue.Sent] for each, in order, once they are on
// disk. Entries can fail individually; the error is for the whole call. ctx has no effect once the messages are
// submitted.
func (q *Queue) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	live, err := q.live(ctx, 0)
	if err != nil {
		return nil, err
	}
	s, err := newSending(live, msgs)
	if err != nil {
		return nil, err
	}
	if len(s.items) == 0 {
		return s.sent, nil
	}

	if err := q.b.writer.do(s, needsFsync|needsSpace); err != nil {
		return nil, err
	}
	s.setIDs()
	return s.sent, nil
}

type sending struct {
	q     *liveQueue
	set   *settings
	at    int64 // stamp
	items []sendingItem
	sent  []queue.Sent
}

type sendingItem struct {
	record     *record
	contentSum uint32
	delay      time.Duration
	notBefore  int64 // Unix milliseconds, or 0
	index      int
	first      int64 // key of the message, or of a duplicate's original
}

func (it *sendingItem) fresh() bool { return it.first != 0 && it.first == it.record.key }

// The error is for the whole call.
func newSending(q *liveQueue, msgs []queue.Outgoing) (*sending, error) {
	set := q.settings()
	if err := set.checkCall(msgs); err != nil {
		return nil, err
	}

	s := &sending{q: q, set: set, items: make([]sendingItem, 0, len(msgs)), sent: make([]queue.Sent, len(msgs))}
	for i := range msgs {
		m := &msgs[i]
		notBefore, err := set.notBefore(m)
		if err = cmp.Or(set.checkOutgoing(m), err); err != nil {
			s.sent[i].Err = err
			continue
		}

		r := set.newRecord(m)
		it := sendingItem{record: r, contentSum: r.contentSum(), delay: set.delay, notBefore: notBefore, index: i}
		if m.Delay != nil && !set.fifo {
			it.delay = *m.Delay
		}
		s.items = append(s.items, it)
	}
	return s, nil
}

func (s *settings) newRecord(m *queue.Outgoing) *record {
	r := &record{group: m.GroupID, dedup: m.DedupID, trace: m.TraceHeader, body: m.Body, whole: true}
	r.attributes = encodeAttributes(m.Attributes)
	r.size = int64(len(r.body) + len(r.attributes))
	if s.fifo && r.dedup == "" {
		sum := sha256.Sum256([]byte(m.Body))
		r.dedup = hex.EncodeToString(sum[:])
	}
	return r
}

func (s *sending) apply(t *tx) {
	for i := range s.items {
		s.items[i].first = 0
	}
	if t.gone(s.q) {
		return
	}

	now := s.q.broker.clock.nowRoundedUp()
	s.at = stamp()
	for i := range s.items {
		s.applyItem(t, &s.items[i], now)
	}
}

func (s *sending) applyItem(t *tx, it *sendingItem, now int64) {
	if s.set.fifo {
		if original := t.originalOf(s.q, it.record, s.set, now); original != 0 {
			it.first = original
			it.record.key = 0
			return
		}
	}

	k := t.counters(s.q)
	it.record.key = makeKey(s.q.index.number, k.next)
	it.first = it.record.key
	it.record.sum = checksum(it.contentSum, it.record.key)
	s.setTimes(it, now)
	k.next++
	k.Sent++
	t.inserts = append(t.inserts, it.record)
	if s.set.fifo {
		t.remember(s.q, it.record, s.set, now)
	}
}

func (s *sending) setTimes(it *sendingItem, now int64) {
	r := it.record
	r.sent = s.at
	r.due = 0
	if it.delay > 0 {
		r.due = roundUp(now+it.delay.Milliseconds(), delayGrid)
	}
	if it.notBefore > s.at {
		r.due = max(r.due, s.visibleAt(it.notBefore, now))
		r.sent = r.due
	}
}

func (s *sending) setIDs() {
	work := new(block)
	for i := range s.items {
		it := &s.items[i]
		to := &s.sent[it.index]
		to.ID = s.q.broker.seal.messageID(work, it.first)
		if s.set.fifo {
			to.SequenceNumber = sequenceNumber(it.first)
		}
	}
}

func (s *sending) onCommit(err error) error {
	q := s.q
	if err != nil {
		return err
	}
	if q.removed {
		return errNoQueue()
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for i := range s.items {
		if it := &s.items[i]; it.fresh() {
			n++
			q.index.counters.next = keySeq(it.record.key) + 1
			q.index.arrive(it.record)
		}
	}

	if n == 0 {
		return nil
	}

	q.index.counters.Sent += int64(n)
	q.waiters.wake(n)
	q.setAlarm()
	q.watchRetention(s.at)
	return nil
}

// dedupWindow is how long a deduplication ID is kept, even after its message is deleted. A purge discards it.
const dedupWindow = 5 * time.Minute

// originalOf returns the key of the message sent with the same deduplication ID within dedupWindow and not purged
// since, or 0.
func (t *tx) originalOf(q *liveQueue, r *record, set *settings, now int64) (key int64) {
	t.query(func(row row) {
		if original := row.int(0); row.int(1) > now && keySeq(original) > q.disk.floor {
			key = original
		}
	}, `SELECT message, expires FROM dedup WHERE queue = ? AND dedup_id = ? AND group_id = ?`,
		q.index.number, r.dedup, set.dedupScope(r))
	return key
}

func (t *tx) remember(q *liveQueue, r *record, set *settings, now int64) {
	t.exec(`INSERT OR REPLACE INTO dedup (queue, dedup_id, group_id, message, expires) VALUES (?,?,?,?,?)`,
		q.index.number, r.dedup, set.dedupScope(r), r.key, now+dedupWindow.Milliseconds())
}

func (s *settings) dedupScope(r *record) string {
	if s.dedupPerGroup {
		return r.group
	}
	return ""
}
