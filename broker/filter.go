package broker

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"tendril/queue"
)

// Filter says which stored messages are meant: those that fulfil all of it. The zero value means all messages.
type Filter struct {
	// IDs are those of the messages; nil for any.
	IDs []string `json:"ids,omitempty"`
	// Match is contained in the body.
	Match string `json:"match,omitempty"`
	// Attribute is the name of a message attribute, and Value its value; "" for any value.
	Attribute string `json:"attribute,omitempty"`
	Value     string `json:"value,omitempty"`
	// DeadSince and DeadUntil bound when the message was dead-lettered: not before the one, and before the other.
	DeadSince time.Time `json:"dead_since,omitzero"`
	DeadUntil time.Time `json:"dead_until,omitzero"`
	// Reason is that of the [ReasonGroup] to which the message belongs; nil for any.
	Reason *string `json:"reason,omitempty"`
	// Through is the place of the newest message that may match, as [Broker.Newest] returned it; 0 for any.
	Through int64 `json:"through,omitempty"`
}

// IsZero reports whether the filter means all messages.
func (f *Filter) IsZero() bool {
	return f.IDs == nil && f.Match == "" && f.Attribute == "" && f.DeadSince.IsZero() && f.DeadUntil.IsZero() &&
		f.Reason == nil && f.Through == 0
}

// reach is the last key of a queue that the filter admits, at most high.
func (f *Filter) reach(queue, high int64) int64 {
	if f.Through <= 0 || f.Through > maxSeq {
		return high
	}
	return min(high, makeKey(queue, f.Through))
}

// condition is a filter as SQL. Of attributes the SQL only says which rows may match: admits decides.
type condition struct {
	text             string
	args             []any
	attribute, value string
	// reason, when it is not "", is that of the messages: the table of attempts finds them.
	reason string
}

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

// encodedText is a text as encodeAttributes writes it.
func encodedText(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

// chunk is the SQL of the next rows after a key that are looked at, so many of them.
func (c *condition) chunk(after, high int64, rows int) (where string, args []any) {
	if c.reason == "" {
		return `id > ? AND id <= ?`, []any{after, high}
	}
	return `id IN (SELECT id FROM attempts WHERE id >> 40 = ? AND reason = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?)`,
		[]any{after >> seqBits, c.reason, after, high, int64(rows)}
}

// admits decides about a row that the SQL has selected. r.attributes must be loaded; it reports whether one has the
// name and, if given, the value. Unreadable ones do not match.
func (c *condition) admits(r *record) bool {
	if c.attribute == "" {
		return true
	}
	attributes, err := decodeAttributes(r.attributes)
	return err == nil && slices.ContainsFunc(attributes, func(a queue.Attribute) bool {
		return a.Name == c.attribute && (c.value == "" || a.Value == c.value)
	})
}

// scanMatching reads the next rows after a key that a condition selects, at most limit of them. last is the key up to
// which it looked; 0 when that was the end. One call looks at browseChunk rows at most.
func (c *conn) scanMatching(columns string, after, high int64, sel condition, limit int) (rows []*record, last int64,
	err error) {
	end := false
	if sel.text != "" {
		n := int64(0)
		// Where most rows match, few more than wanted are looked at.
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

// countChunk counts the rows that the SQL of a condition selects among the next rows after a key, so many of them. last
// is the key of the last one, and end says that no more follow.
func (c *conn) countChunk(after, high int64, sel condition, rows int) (n, last int64, end bool, err error) {
	chunk, args := sel.chunk(after, high, rows)
	err = c.query(func(row row) { n, last, end = row.int(0), row.int(1), row.int(2) < int64(rows) },
		`SELECT sum(1`+sel.text+`), max(id), count(*)
			FROM (SELECT * FROM messages WHERE `+chunk+` ORDER BY id LIMIT ?) AS messages`,
		append(append(slices.Clone(sel.args), args...), int64(rows))...)
	return n, last, end, err
}

// matchColumns leaves bodies where they are.
const matchColumns = `id, sent, sum, size, due, origin, received, first, dead, source, group_id, dedup_id, trace,
	attributes, NULL`

// columns are what deciding about a row needs.
func (c *condition) columns() string {
	if c.attribute != "" {
		return matchColumns
	}
	return headColumns
}

// Count returns how many messages of a queue a filter means. After a time it gives up: then there are more than n, and
// exact is false.
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
	high := f.reach(live.index.number, last)
	if f.Through = 0; high == last && f.IsZero() {
		return all, true, nil
	}

	q.b.attempts.settle(ctx, q.b)
	sel := q.b.condition(&f)
	for begun := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		var found, last int64
		err := live.broker.read(func(c *conn) (err error) {
			found, last, err = c.countMatching(at, high, sel)
			return err
		})
		if n += found; err != nil || last == 0 {
			return n, err == nil, err
		}
		if at = last; time.Since(begun) > within {
			return n, false, nil
		}
	}
}

// countMatching counts among the next rows after a key, as scanMatching reads them.
func (c *conn) countMatching(after, high int64, sel condition) (n, last int64, err error) {
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
