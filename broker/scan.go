package broker

import (
	"database/sql/driver"
	"errors"
	"strings"
)

const allColumns = `id, sent, sum, size, due, origin, received, first, dead, source,
	group_id, dedup_id, trace, attributes, body`

// keepContent is the largest content, in bytes, that a scan brings along.
const keepContent = 8 << 10

// scanColumns leaves large contents where they are.
const scanColumns = `id, sent, sum, size, due, origin, received, first, dead, source, group_id, dedup_id, trace,
	iif(size <= ?1, attributes, NULL), iif(size <= ?1, body, NULL)`

// headColumns leaves all contents where they are.
const headColumns = `id, sent, sum, size, due, origin, received, first, dead, source, group_id, dedup_id, trace, NULL, NULL`

// fillRecord reads a row of one of the column lists above. It reports whether
// the content was there.
func fillRecord(r *record, row []driver.Value) (whole bool) {
	number := func(i int) int64 { n, _ := row[i].(int64); return n }
	text := func(i int) string { s, _ := row[i].(string); return s }
	*r = record{
		key: number(0), sent: number(1), sum: number(2), size: number(3), due: number(4),
		origin: number(5), received: number(6), first: number(7), dead: number(8), source: text(9),
		group: text(10), dedup: text(11), trace: text(12),
	}
	r.attributes, _ = row[13].([]byte)
	r.body, whole = row[14].(string)
	return whole
}

// scanned is a row as a scan brings it: of a large message content is false,
// and only the fields before the attributes are filled.
type scanned struct {
	record
	content bool
}

// scan returns the messages with low < key <= high, in order, at most limit;
// those with a delay only if delayed.
func (c *conn) scan(low, high int64, delayed bool, limit int) ([]*scanned, error) {
	only := ` AND due IS NULL`
	if delayed {
		only = ``
	}
	return c.scanRows(`SELECT `+scanColumns+` FROM messages WHERE id > ?2 AND id <= ?3`+only+` ORDER BY id LIMIT ?4`,
		int64(keepContent), low, high, int64(limit))
}

func (c *conn) scanRows(text string, args ...any) (rows []*scanned, err error) {
	err = c.query(func(row []driver.Value) error {
		r := new(scanned)
		r.content = fillRecord(&r.record, row)
		rows = append(rows, r)
		return nil
	}, text, args...)
	return rows, err
}

// scanPlain is a quicker scan for messages that have only a body and
// attributes. It gives up, with ok false, at the first that has more.
func (c *conn) scanPlain(low, high int64, limit int) (rows []*scanned, ok bool, err error) {
	err = c.query(func(row []driver.Value) error {
		if row[5] != nil {
			return errNotPlain
		}
		r := new(scanned)
		r.key, _ = row[0].(int64)
		r.sent, _ = row[1].(int64)
		r.sum, _ = row[2].(int64)
		r.attributes, _ = row[3].([]byte)
		r.body, r.content = row[4].(string)
		r.size = int64(len(r.attributes) + len(r.body))
		rows = append(rows, r)
		return nil
	}, `SELECT id, sent, sum, iif(size <= ?1, attributes, NULL), iif(size <= ?1, body, NULL), coalesce(origin, group_id, trace)
		FROM messages WHERE id > ?2 AND id <= ?3 AND due IS NULL ORDER BY id LIMIT ?4`,
		int64(keepContent), low, high, int64(limit))
	if errors.Is(err, errNotPlain) {
		return nil, false, nil
	}
	return rows, err == nil, err
}

var errNotPlain = errors.New("a message has more than a body and attributes")

// scanDue returns the messages of a queue, with low < key <= high, that were
// sent with a delay which ends after from, or at from with a key above fromKey,
// and no later than to: in the order in which they become visible.
func (c *conn) scanDue(number, low, high, from, fromKey, to int64, limit int) ([]*scanned, error) {
	return c.scanRows(`SELECT `+scanColumns+` FROM messages
		WHERE id >> 40 = ?2 AND due IS NOT NULL AND due <= ?3 AND (due, id) > (?4, ?5) AND id > ?6 AND id <= ?7
		ORDER BY due, id LIMIT ?8`,
		int64(keepContent), number, to, from, fromKey, low, high, int64(limit))
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

const headStatement = `SELECT ` + headColumns + ` FROM messages WHERE id = ?`

// lookupRows is how many messages one lookup asks for: those of one receive.
const lookupRows = 10

const lookupStatement = `SELECT ` + allColumns + ` FROM messages WHERE id IN (?,?,?,?,?,?,?,?,?,?)`

// parameters returns the question marks of n SQL parameters, with commas between.
func parameters(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
