package broker

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"tendril/queue"
)

// Filter selects the stored messages that meet all its conditions. The zero value selects all messages.
type Filter = queue.Selection

// reach returns the last key that a filter with this Through value can match.
func reach(through, number, high int64) int64 {
	if through <= 0 || through > maxSeq {
		return high
	}
	return min(high, makeKey(number, through))
}

// condition is a filter in SQL. For message attributes, the SQL only preselects rows; admits decides.
type condition struct {
	text             string
	args             []any
	attribute, value string
	reason           string
}

// condition translates f to SQL, except reason, which chunk uses.
func (b *Broker) condition(f *Filter) (c condition) {
	and := func(text string, arg any) { c.text, c.args = c.text+` AND `+text, append(c.args, arg) }
	if f.IDs != nil {
		origins := []int64{}
		for _, id := range f.IDs {
			if origin, ok := b.seal.origin(id); ok {
				origins = append(origins, origin)
			}
		}
		and(`coalesce(origin, id) IN (SELECT value FROM json_each(?))`, string(rawJSON(origins)))
	}

	if f.Reason != nil && *f.Reason == "" {
		and(`NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.id = messages.id AND reason <> ?)`, "")
	} else if f.Reason != nil {
		c.reason = *f.Reason
	}

	if !f.DeadSince.IsZero() {
		and(`dead >= ?`, f.DeadSince.UnixMilli())
	}

	if !f.DeadUntil.IsZero() {
		and(`dead < ?`, f.DeadUntil.UnixMilli())
	}

	if f.Attribute != "" {
		c.attribute, c.value = f.Attribute, f.Value
		and(`instr(attributes, ?) > 0`, encodedText(f.Attribute))
		if f.Value != "" {
			and(`instr(attributes, ?) > 0`, encodedText(f.Value))
		}
	}

	if f.Match != "" {
		and(`instr(body, ?) > 0`, f.Match)
	}
	return c
}

func encodedText(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

func (c *condition) chunk(after, high int64, rows int) (where string, args []any) {
	if c.reason == "" {
		return `id > ? AND id <= ?`, []any{after, high}
	}
	return `id IN (SELECT id FROM attempts WHERE id >> 40 = ? AND reason = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?)`,
		[]any{after >> seqBits, c.reason, after, high, int64(rows)}
}

func (c *condition) admits(r *record) bool {
	if c.attribute == "" {
		return true
	}
	attributes, err := decodeAttributes(r.attributes)
	return err == nil && slices.ContainsFunc(attributes, func(a queue.Attribute) bool {
		return a.Name == c.attribute && (c.value == "" || a.Value == c.value)
	})
}

// scanMatching examines at most browseChunk rows. last is the last key examined, or 0 at the end of the queue.
func (c *conn) scanMatching(columns string, after, high int64, sel condition, limit int) (rows []*record, last int64,
	err error) {
	end := false
	if sel.text != "" {
		n := int64(0)
		n, last, end, err = c.countChunk(after, high, sel, min(browseChunk, 10*limit))
		if err != nil || n == 0 && !end {
			return nil, last, err
		}
		high = last
	}

	chunk, args := sel.chunk(after, high, browseChunk)
	args = append(append(args, sel.args...), int64(limit))
	rows, err = c.records(`SELECT `+columns+` FROM messages WHERE `+chunk+sel.text+` ORDER BY id LIMIT ?`, args...)
	switch n := len(rows); {
	case n == limit || n > 0 && sel.text == "":
		last = rows[n-1].key
	case end:
		last = 0
	}
	return slices.DeleteFunc(rows, func(r *record) bool { return !sel.admits(r) }), last, err
}

// countChunk counts the matching rows in a chunk. last is the last key examined; end means that no rows follow.
func (c *conn) countChunk(after, high int64, sel condition, rows int) (n, last int64, end bool, err error) {
	chunk, args := sel.chunk(after, high, rows)
	err = c.query(func(row row) {
		n = row.int(0)
		last = row.int(1)
		end = row.int(2) < int64(rows)
	},
		`SELECT sum(1`+sel.text+`), max(id), count(*)
			FROM (SELECT * FROM messages WHERE `+chunk+` ORDER BY id LIMIT ?) AS messages`,
		append(append(slices.Clone(sel.args), args...), int64(rows))...)
	return n, last, end, err
}

const matchColumns = `id, sent, sum, size, due, origin, received, first, dead, source, group_id, dedup_id, trace,
	attributes, NULL`

func (c *condition) columns() string {
	if c.attribute != "" {
		return matchColumns
	}
	return headColumns
}

// Count counts the matching messages. If that takes longer than within, n is a lower bound and exact is false.
func (q *Queue) Count(ctx context.Context, f Filter, within time.Duration) (n int64, exact bool, err error) {
	live, err := q.live(ctx, 0)
	if err != nil {
		return 0, false, err
	}

	live.mu.Lock()
	at := live.index.low()
	last := live.index.last()
	all := live.index.counters.live()
	live.mu.Unlock()
	high := reach(f.Through, live.index.number, last)
	f.Through = 0
	if high == last && f.IsZero() {
		return all, true, nil
	}

	q.b.attempts.sync(ctx, q.b)
	sel := q.b.condition(&f)
	for start := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		var found, last int64
		err := live.broker.read(func(c *conn) (err error) {
			found, last, err = c.countMatchingChunk(at, high, sel)
			return err
		})
		n += found
		if err != nil || last == 0 {
			return n, err == nil, err
		}
		at = last
		if time.Since(start) > within {
			return n, false, nil
		}
	}
}

// countMatchingChunk is like countChunk, but last is 0 at the end of the queue.
func (c *conn) countMatchingChunk(after, high int64, sel condition) (n, last int64, err error) {
	if sel.attribute != "" {
		rows, last, err := c.scanMatching(matchColumns, after, high, sel, browseChunk)
		return int64(len(rows)), last, err
	}
	n, last, end, err := c.countChunk(after, high, sel, browseChunk)
	if end {
		last = 0
	}
	return n, last, err
}
