package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// ReasonGroup is a group of messages in a queue that last failed for the same reason.
type ReasonGroup = queue.ReasonGroup

const maxReasons = 1000

// DeadLetterReasons groups a queue's messages by the reason of their last failure. It returns up to 1,000 groups,
// largest first, and is fast for any number of messages.
func (b *Broker) DeadLetterReasons(ctx context.Context, name string) ([]ReasonGroup, error) {
	q, err := b.queues.get(name)
	if err != nil {
		return nil, err
	}
	b.attempts.sync(ctx, b)
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	groups := map[string]*ReasonGroup{}
	hour := stamp() / hourMillis
	low := int64(0)
	live := 0
	err = b.read(func(c *conn) error {
		q.mu.Lock()
		low, live = q.index.low(), int(q.index.counters.live())
		q.mu.Unlock()
		return readReasons(c, q.index.number, hour, groups)
	})
	if err != nil {
		return nil, err
	}

	for reason, g := range groups {
		if reason != "" {
			live -= g.Count
		}
	}

	if none := groups[""]; none != nil {
		none.Count = max(live, none.Count)
	} else if live > 0 {
		groups[""] = &ReasonGroup{Count: live}
	}

	list := make([]ReasonGroup, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}

	slices.SortFunc(list, func(a, b ReasonGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	list = list[:min(len(list), maxReasons)]
	return list, b.read(func(c *conn) error { return dateReasons(c, low, list) })
}

const hourMillis = 3_600_000

func readReasons(c *conn, number, hour int64, groups map[string]*ReasonGroup) error {
	return c.query(func(row row) {
		g := groups[row.text(0)]
		if g == nil {
			g = &ReasonGroup{Reason: row.text(0)}
			groups[g.Reason] = g
		}
		g.Count += int(row.int(2))
		if ago := hour - row.int(1); ago >= 0 && ago < int64(len(g.Hours)) {
			g.Hours[int64(len(g.Hours))-1-ago] += int(row.int(2))
		}
	}, `SELECT reason, hour, count FROM reasons WHERE queue = ?`, number)
}

func dateReasons(c *conn, low int64, groups []ReasonGroup) (err error) {
	for i := 0; i < len(groups) && err == nil; i++ {
		g := &groups[i]
		for order, to := range map[string]*time.Time{"": &g.First, " DESC": &g.Last} {
			var at int64
			if at, err = c.integer(`SELECT at FROM attempts WHERE id >> 40 = ?1 >> 40 AND reason = ?2 AND id > ?1
				ORDER BY id`+order+` LIMIT 1`, low, g.Reason); err != nil {
				break
			}
			*to = date(at)
		}
	}
	return err
}

type reasonCount struct {
	queue  int64
	reason string
	hour   int64
}

func (t *tx) countReason(key int64, reason string, at, n int64) {
	t.reasons[reasonCount{key >> seqBits, reason, at / hourMillis}] += n
}

func (t *tx) flushReasons() (err error) {
	for k, n := range t.reasons {
		if n == 0 {
			continue
		}
		t.c.run(&err, `INSERT INTO reasons (queue, reason, hour, count) VALUES (?, ?, ?, ?)
			ON CONFLICT (queue, reason, hour) DO UPDATE SET count = count + excluded.count`, k.queue, k.reason, k.hour, n)
		if n < 0 {
			t.c.run(&err, `DELETE FROM reasons WHERE queue = ? AND reason = ? AND hour = ? AND count <= 0`,
				k.queue, k.reason, k.hour)
		}
	}
	clear(t.reasons)
	return err
}
