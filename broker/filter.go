package broker

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"tendril/queue"
)

// Filter is an alias of [queue.Selection].
type Filter = queue.Selection

func lastMatch(through, number, high int64) int64 {
	if through <= 0 || through > maxSeq {
		return high
	}
	return min(high, makeKey(number, through))
}

// condition is a filter in SQL. For message attributes, the SQL only preselects; admits decides.
type condition struct {
	text             string
	args             []any
	attribute, value string
	reason           string
}

// condition leaves a nonempty reason to keyClause.
func (b *Broker) condition(f *Filter) condition {
	var c condition
	if f.IDs != nil {
		origins := []int64{}
		for _, id := range f.IDs {
			if origin, ok := b.seal.origin(id); ok {
				origins = append(origins, origin)
			}
		}
		c.and(`coalesce(origin, id) IN (SELECT value FROM json_each(?))`, string(rawJSON(origins)))
	}

	switch {
	case f.Reason == nil:
	case *f.Reason == "":
		c.and(`NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.id = messages.id AND reason <> ?)`, "")
	default:
		c.reason = *f.Reason
	}

	if !f.DeadSince.IsZero() {
		c.and(`dead >= ?`, f.DeadSince.UnixMilli())
	}

	if !f.DeadUntil.IsZero() {
		c.and(`dead < ?`, f.DeadUntil.UnixMilli())
	}

	if f.Attribute != "" {
		c.attribute = f.Attribute
		c.value = f.Value
		c.and(`instr(attributes, ?) > 0`, encodedText(f.Attribute))
		if f.Value != "" {
			c.and(`instr(attributes, ?) > 0`, encodedText(f.Value))
		}
	}

	if f.Match != "" {
		c.and(`instr(body, ?) > 0`, f.Match)
	}
	return c
}

func (c *condition) and(text string, arg any) {
	c.text += ` AND ` + text
	c.args = append(c.args, arg)
}

func encodedText(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

func (c *condition) keyClause(after, high int64, rows int) (where string, args []any) {
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

const rowsPerMatch = 10

// scanMatching returns up to limit matching rows among at most the next browseChunk. last is the last key
// examined, or 0 at the end of the range.
func (c *conn) scanMatching(columns recordColumns, after, high int64, sel condition, limit int) (rows []*record, last int64,
	err error) {
	if sel.text == "" {
		rows, err = c.selectMatching(columns, after, high, sel, limit)
		if err != nil || len(rows) == 0 {
			return nil, 0, err
		}
		return rows, rows[len(rows)-1].key, nil
	}

	// A SELECT of few matches could examine the whole queue.
	n, last, err := c.countChunk(after, high, sel, min(browseChunk, rowsPerMatch*limit))
	if err != nil || n == 0 {
		return nil, last, err
	}
	if last != 0 {
		high = last
	}
	if rows, err = c.selectMatching(columns, after, high, sel, limit); err != nil {
		return nil, 0, err
	}
	if len(rows) == limit {
		last = rows[limit-1].key
	}
	return slices.DeleteFunc(rows, func(r *record) bool { return !sel.admits(r) }), last, nil
}

func (c *conn) selectMatching(columns recordColumns, after, high int64, sel condition, limit int) ([]*record, error) {
	keys, args := sel.keyClause(after, high, browseChunk)
	args = append(args, sel.args...)
	args = append(args, int64(limit))
	return c.records(columns, keys+sel.text+` ORDER BY id LIMIT ?`, args...)
}

// countChunk counts the matches among the next rows. last is as in scanMatching.
func (c *conn) countChunk(after, high int64, sel condition, rows int) (n, last int64, err error) {
	keys, keyArgs := sel.keyClause(after, high, rows)
	args := slices.Concat(sel.args, keyArgs, []any{int64(rows)})
	err = c.query(func(row row) {
		n = row.int(0)
		if row.int(2) == int64(rows) {
			last = row.int(1)
		}
	}, `SELECT sum(1`+sel.text+`), max(id), count(*)
			FROM (SELECT * FROM messages WHERE `+keys+` ORDER BY id LIMIT ?) AS messages`, args...)
	return n, last, err
}

func (c *condition) columns() recordColumns {
	if c.attribute != "" {
		return attributeColumns
	}
	return headColumns
}

// Count counts the matching messages. After the time within, n is a lower bound and exact is false.
func (q *Queue) Count(ctx context.Context, f Filter, within time.Duration) (n int64, exact bool, err error) {
	live, err := q.live(ctx, 0)
	if err != nil {
		return 0, false, err
	}

	keys := live.keys()
	at := keys.low
	high := lastMatch(f.Through, live.index.number, keys.last)
	f.Through = 0
	if high == keys.last && f.IsZero() {
		return keys.live, true, nil
	}

	q.b.attempts.flushAndWait(ctx)
	sel := q.b.condition(&f)
	deadline := time.Now().Add(within)
	for {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		var found int64
		err := live.broker.read(func(c *conn) (err error) {
			found, at, err = c.countMatching(at, high, sel)
			return err
		})
		if err != nil {
			return n, false, err
		}

		n += found
		if at == 0 {
			return n, true, nil
		}
		if time.Now().After(deadline) {
			return n, false, nil
		}
	}
}

func (c *conn) countMatching(after, high int64, sel condition) (n, last int64, err error) {
	if sel.attribute == "" {
		return c.countChunk(after, high, sel, browseChunk)
	}
	rows, last, err := c.scanMatching(sel.columns(), after, high, sel, browseChunk)
	return int64(len(rows)), last, err
}
