package broker

import (
	"database/sql/driver"
	"strings"
)

const allColumns = `id, sent, sum, due, origin, received, first, dead, source,
	group_id, dedup_id, trace, attributes, body`

// keepBody is the largest body, in bytes, that a scan brings along.
const keepBody = 8 << 10

// scanColumns leaves large bodies and their attributes where they are.
const scanColumns = `id, sent, sum, due, origin, received, first, dead, source, group_id, dedup_id, trace,
	iif(octet_length(body) <= ?1, attributes, NULL), iif(octet_length(body) <= ?1, body, NULL)`

// fillRecord reads a row of allColumns or scanColumns. It reports whether the
// content was there.
func fillRecord(r *record, row []driver.Value) (whole bool) {
	number := func(i int) int64 { n, _ := row[i].(int64); return n }
	text := func(i int) string { s, _ := row[i].(string); return s }
	*r = record{
		key: number(0), sent: number(1), sum: number(2), due: number(3),
		origin: number(4), received: number(5), first: number(6), dead: number(7), source: text(8),
		group: text(9), dedup: text(10), trace: text(11),
	}
	r.attributes, _ = row[12].([]byte)
	r.body, whole = row[13].(string)
	return whole
}

// scan calls each for the messages with low < key <= high, in order, at most
// limit; those with a delay only if delayed. Of large messages content is
// false: only the fields before the attributes are filled.
func (c *conn) scan(low, high int64, delayed bool, limit int, each func(r *record, content bool)) error {
	only := ` AND due IS NULL`
	if delayed {
		only = ``
	}
	var r record
	return c.query(func(row []driver.Value) error {
		whole := fillRecord(&r, row)
		each(&r, whole)
		return nil
	}, `SELECT `+scanColumns+` FROM messages WHERE id > ?2 AND id <= ?3`+only+` ORDER BY id LIMIT ?4`,
		int64(keepBody), low, high, int64(limit))
}

// scanDue calls each for the messages of a queue, with low < key <= high, that
// were sent with a delay which ends after from, or at from with a key above
// fromKey, and no later than to: in the order in which they become visible.
func (c *conn) scanDue(number, low, high, from, fromKey, to int64, limit int, each func(r *record, content bool)) error {
	var r record
	return c.query(func(row []driver.Value) error {
		whole := fillRecord(&r, row)
		each(&r, whole)
		return nil
	}, `SELECT `+scanColumns+` FROM messages
		WHERE id >> 40 = ?2 AND due IS NOT NULL AND due <= ?3 AND (due, id) > (?4, ?5) AND id > ?6 AND id <= ?7
		ORDER BY due, id LIMIT ?8`,
		int64(keepBody), number, to, from, fromKey, low, high, int64(limit))
}

// records reads whole messages by key; those that are gone are left out.
func (c *conn) records(keys []int64, each func(r *record)) error {
	for len(keys) > 0 {
		n := min(len(keys), lookupRows)
		args := make([]any, 0, lookupRows)
		for _, k := range keys[:n] {
			args = append(args, k)
		}
		for len(args) < lookupRows {
			args = append(args, nil)
		}
		err := c.query(func(row []driver.Value) error {
			r := new(record)
			fillRecord(r, row)
			each(r)
			return nil
		}, lookupStatement, args...)
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// heads reads messages by key without their contents; those that are gone are
// left out.
func (c *conn) heads(keys []int64, each func(r *record)) error {
	for _, key := range keys {
		err := c.query(func(row []driver.Value) error {
			var r record
			fillRecord(&r, row)
			each(&r)
			return nil
		}, headStatement, key)
		if err != nil {
			return err
		}
	}
	return nil
}

const headStatement = `SELECT id, sent, sum, due, origin, received, first, dead, source, group_id, dedup_id, trace, NULL, NULL
	FROM messages WHERE id = ?`

// lookupRows is how many messages one lookup asks for: those of one receive.
const lookupRows = 10

const lookupStatement = `SELECT ` + allColumns + ` FROM messages WHERE id IN (?,?,?,?,?,?,?,?,?,?)`

// placeholders returns n question marks, with commas between.
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
