package broker

import (
	"context"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// State is the state of a stored message.
type State string

// The states of a stored message.
const (
	Visible  State = "visible"
	Delayed  State = "delayed"
	InFlight State = "inflight"
	// Damaged messages fail their checksum and are not delivered.
	Damaged State = "damaged"
)

// Stored is a message in a queue, read without receiving it.
type Stored struct {
	queue.Message // without ReceiptHandle
	Queue         string
	State         State
	// Until is when a delayed or in-flight message becomes visible; otherwise zero.
	Until time.Time
	// DeadAt is when the message was dead-lettered, or zero.
	DeadAt time.Time
	// Attempts are the latest failed deliveries, at most 10, oldest first.
	Attempts []Attempt
}

// BrowseRequest selects messages to list.
type BrowseRequest struct {
	Filter
	// State limits the page to one state; "" means all.
	State State
	// After is the cursor of the previous page; "" starts at the oldest message.
	After string
	// Limit is the page size, 1 to 1000; 0 means 100.
	Limit int
	// Within limits the time for a page, which then ends early with a cursor; 0 means no limit.
	Within time.Duration
}

const (
	defaultBrowseLimit = 100
	maxBrowseLimit     = 1000
	// browseChunk limits the rows per read, because a long read would keep the write-ahead log from restarting.
	browseChunk = 2000
)

// Browse returns stored messages, oldest first, and the cursor of the next page ("" at the end). If few messages
// match, it may read the whole queue; ctx and req.Within limit that.
func (b *Broker) Browse(ctx context.Context, name string, req BrowseRequest) (page []Stored, next string, err error) {
	q, err := b.live(name)
	if err != nil {
		return nil, "", err
	}
	if req.Limit == 0 {
		req.Limit = defaultBrowseLimit
	}
	if req.Limit < 1 || req.Limit > maxBrowseLimit {
		return nil, "", errParameter("Limit", strconv.Itoa(req.Limit), "Must be between 1 and 1000, if provided.")
	}

	after, err := parseCursor(req.After)
	if err != nil {
		return nil, "", err
	}

	keys := q.keys()
	at := max(keys.low, makeKey(q.index.number, after))
	high := lastMatch(req.Through, q.index.number, keys.high)
	b.attempts.flushAndWait(ctx)
	sel := b.condition(&req.Filter)
	for start := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		var rows []*record
		err := b.read(func(c *conn) (err error) {
			rows, at, err = c.scanMatching(browsedColumns, at, high, sel, req.Limit-len(page))
			return err
		})
		if err != nil {
			return nil, "", err
		}

		for _, r := range rows {
			if s, ok := q.storedMessage(r); ok && (req.State == "" || s.State == req.State) {
				page = append(page, s)
			}
		}
		if at == 0 {
			return page, "", nil
		}
		isLate := req.Within > 0 && time.Since(start) > req.Within
		if isLate || len(page) == req.Limit {
			return page, strconv.FormatInt(keySeq(at), 10), nil
		}
	}
}

func parseCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 0 || seq > maxSeq {
		return 0, errParameter("After", cursor, "It is not a cursor that a page returned.")
	}
	return seq, nil
}

func (q *liveQueue) storedMessage(r *record) (Stored, bool) {
	isDamaged := r.isDamaged()
	if isDamaged {
		q.withhold(r)
	}

	s := Stored{Message: q.message(new(block), r), Queue: q.name, State: Visible, DeadAt: date(r.dead),
		Attempts: readHistory(r.history)}
	q.lockAndExpire()
	defer q.mu.Unlock()
	if q.deleted || !q.index.published(r.key) {
		return s, false
	}

	now := q.now()
	if m := q.index.held[r.key]; m != nil && !m.claimed {
		s.ReceiveCount = int(m.received())
		s.FirstReceivedAt = date(m.first)
		if m.inFlight {
			s.State = InFlight
			s.Until = timeOf(m.until, now)
			return s, true
		}
	}

	if isDamaged {
		s.State = Damaged
		return s, true
	}

	if due := q.broker.clock.reading(r.due); r.due != 0 && due > now {
		s.State = Delayed
		s.Until = timeOf(due, now)
	}
	return s, true
}

func timeOf(at, now int64) time.Time {
	return time.Now().Add(time.Duration(at - now))
}

// Message returns a stored message. If it is missing, the error has the code [queue.CodeResourceNotFound].
func (b *Broker) Message(ctx context.Context, name, id string) (Stored, error) {
	q, err := b.Queue(name).live(ctx, 0)
	if err != nil {
		return Stored{}, err
	}

	b.attempts.flushAndWait(ctx)
	var found []*record
	err = b.read(func(c *conn) error {
		key, err := q.index.keyOf(c, id)
		if err == nil {
			found, err = c.records(browsedColumns, `id = ?`, key)
		}
		return err
	})
	if err != nil {
		return Stored{}, err
	}

	for _, r := range found {
		if s, ok := q.storedMessage(r); ok {
			return s, nil
		}
	}
	return Stored{}, errNoMessage(name, id)
}

// keyOf returns 0 if the message is missing.
func (x *index) keyOf(c *conn, id string) (key int64, err error) {
	origin, ok := x.broker.seal.origin(strings.TrimSpace(id))
	if !ok {
		return 0, nil
	}
	low, high := makeKey(x.number, 0), x.high()
	return c.integer(`SELECT id FROM messages WHERE id = ?1 AND origin IS NULL AND id > ?2 AND id <= ?3
		UNION ALL SELECT id FROM messages WHERE origin = ?1 AND id > ?2 AND id <= ?3`, origin, low, high)
}
