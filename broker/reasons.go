package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"tendril/queue"
)

// ReasonGroup is an alias of [queue.ReasonGroup].
type ReasonGroup = queue.ReasonGroup

const maxReasons = 1000

// DeadLetterReasons groups a queue's messages by the reason of their last failure: up to 1,000 groups, largest first.
func (b *Broker) DeadLetterReasons(ctx context.Context, name string) ([]ReasonGroup, error) {
	q, err := b.live(name)
	if err != nil {
		return nil, err
	}
	b.attempts.flushAndWait(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	groups := reasonGroups{}
	hour := stamp() / hourMillis
	var keys keyRange
	err = b.read(func(c *conn) error {
		keys = q.keys()
		return groups.read(c, q.index.number, hour)
	})
	if err != nil {
		return nil, err
	}

	groups.addWithoutReason(int(keys.live))
	list := groups.largest(maxReasons)
	return list, b.read(func(c *conn) error { return dateReasons(c, keys.low, list) })
}

type reasonGroups map[string]*ReasonGroup

func (groups reasonGroups) addWithoutReason(live int) {
	rest := live
	for reason, g := range groups {
		if reason != "" {
			rest -= g.Count
		}
	}

	if g := groups[""]; g != nil {
		g.Count = max(rest, g.Count)
	} else if rest > 0 {
		groups[""] = &ReasonGroup{Count: rest}
	}
}

func (groups reasonGroups) largest(limit int) []ReasonGroup {
	list := make([]ReasonGroup, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b ReasonGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	return list[:min(len(list), limit)]
}

const hourMillis = 3_600_000

func (groups reasonGroups) read(c *conn, number, hour int64) error {
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

func dateReasons(c *conn, low int64, groups []ReasonGroup) error {
	const attempts = `SELECT at FROM attempts WHERE id >> 40 = ?1 >> 40 AND reason = ?2 AND id > ?1 `
	for i := range groups {
		g := &groups[i]
		first, err := c.integer(attempts+`ORDER BY id LIMIT 1`, low, g.Reason)
		if err != nil {
			return err
		}
		last, err := c.integer(attempts+`ORDER BY id DESC LIMIT 1`, low, g.Reason)
		if err != nil {
			return err
		}
		g.First = date(first)
		g.Last = date(last)
	}
	return nil
}

type reasonCount struct {
	queue  int64
	reason string
	hour   int64
}

func (t *tx) countReason(key int64, reason string, at, n int64) {
	t.reasons[reasonCount{key >> seqBits, reason, at / hourMillis}] += n
}

func (t *tx) flushReasons() {
	for k, n := range t.reasons {
		if n == 0 {
			continue
		}
		t.exec(`INSERT INTO reasons (queue, reason, hour, count) VALUES (?, ?, ?, ?)
			ON CONFLICT (queue, reason, hour) DO UPDATE SET count = count + excluded.count`,
			k.queue, k.reason, k.hour, n)
		if n < 0 {
			t.exec(`DELETE FROM reasons WHERE queue = ? AND reason = ? AND hour = ? AND count <= 0`,
				k.queue, k.reason, k.hour)
		}
	}
	clear(t.reasons)
}
