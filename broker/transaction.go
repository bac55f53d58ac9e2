package broker

import (
	"slices"
	"strings"
)

// tx is the writer's transaction: it gathers rows so that few statements
// carry many, and writes the counters of the touched queues once.
type tx struct {
	c        *conn
	inserts  []*record
	removed  []int64 // keys of messages to delete
	receipts []int64 // those of them that have a row in receipts
	touched  map[*liveQueue]counters
	dropped  map[*liveQueue]bool // deleted in this transaction
}

const (
	insertRows = 8
	deleteRows = 16
)

func newTx(c *conn) *tx {
	return &tx{c: c, touched: map[*liveQueue]counters{}, dropped: map[*liveQueue]bool{}}
}

// counters returns the counters of a queue, to be changed in place: they are
// written with the commit, and put back if it fails.
func (t *tx) counters(q *liveQueue) *counters {
	if _, ok := t.touched[q]; !ok {
		t.touched[q] = q.disk
	}
	return &q.disk
}

// insert adds a message.
func (t *tx) insert(r *record) { t.inserts = append(t.inserts, r) }

// remove deletes a message; received says that it may have a row in receipts.
func (t *tx) remove(key int64, received bool) {
	t.removed = append(t.removed, key)
	if received {
		t.receipts = append(t.receipts, key)
	}
}

// flush runs the gathered statements.
func (t *tx) flush() error {
	if err := t.flushInserts(); err != nil {
		return err
	}
	if err := t.flushDeletes("messages", t.removed); err != nil {
		return err
	}
	if err := t.flushDeletes("receipts", t.receipts); err != nil {
		return err
	}
	t.inserts, t.removed, t.receipts = t.inserts[:0], t.removed[:0], t.receipts[:0]
	return nil
}

// flushCounters writes the counters of the touched queues.
func (t *tx) flushCounters() error {
	for q := range t.touched {
		if t.dropped[q] {
			continue
		}
		if err := writeCounters(t.c, q.number, &q.disk); err != nil {
			return err
		}
	}
	return nil
}

// undo puts the counters back after a rollback.
func (t *tx) undo() {
	for q, before := range t.touched {
		q.disk = before
	}
}

func (t *tx) reset() {
	t.inserts, t.removed, t.receipts = t.inserts[:0], t.removed[:0], t.receipts[:0]
	clear(t.touched)
	clear(t.dropped)
}

// gone reports whether a queue was deleted, in an earlier transaction or in
// this one.
func (t *tx) gone(q *liveQueue) bool { return q.removed || t.dropped[q] }

// exists reports whether a queue holds a message under a key.
func (t *tx) exists(q *liveQueue, key int64) (bool, error) {
	found, err := t.c.exists(key)
	return found && keySeq(key) > q.disk.floor, err
}

// insertPlain is for messages that have only a body and attributes, most of
// them; insertAny is for the rest. Each has a form for one row and one for
// many.
var (
	insertPlain = [2]string{insertText(1, 6), insertText(insertRows, 6)}
	insertAny   = [2]string{insertText(1, 15), insertText(insertRows, 15)}
)

func insertText(rows, columns int) string {
	names := `id, sent, sum, size, attributes, body`
	if columns == 15 {
		names = allColumns
	}
	row := `(` + parameters(columns) + `),`
	return `INSERT INTO messages (` + names + `) VALUES ` + strings.TrimSuffix(strings.Repeat(row, rows), `,`)
}

func (t *tx) flushInserts() error {
	rest := t.inserts
	for len(rest) > 0 {
		plain := rest[0].plain()
		n := 1
		for n < len(rest) && n < insertRows && rest[n].plain() == plain {
			n++
		}
		form := 1
		if n < insertRows {
			n, form = 1, 0
		}
		if err := t.insertRun(rest[:n], plain, form); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// insertRun writes records that fit one statement.
func (t *tx) insertRun(run []*record, plain bool, form int) error {
	var args []any
	for _, r := range run {
		if plain {
			args = append(args, r.key, r.sent, r.sum, r.size, blob(r.attributes), r.body)
			continue
		}
		args = append(args, r.key, r.sent, r.sum, r.size, number(r.due), number(r.origin), number(r.received),
			number(r.first),
			number(r.dead), text(r.source), text(r.group), text(r.dedup), text(r.trace), blob(r.attributes), r.body)
	}
	statement := insertAny[form]
	if plain {
		statement = insertPlain[form]
	}
	_, err := t.c.exec(statement, args...)
	return err
}

// plain reports whether the record has only a body and attributes.
func (r *record) plain() bool {
	return r.due == 0 && r.origin == 0 && r.group == "" && r.dedup == "" && r.trace == ""
}

// number, text and blob make NULL of what is not there.
func number(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// flushDeletes deletes rows of a table by id: runs of neighbours as a range,
// the others by list.
func (t *tx) flushDeletes(table string, keys []int64) error {
	slices.Sort(keys)
	var single []any
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j] == keys[j-1]+1 {
			j++
		}
		if j-i >= 4 {
			if _, err := t.c.exec(`DELETE FROM `+table+` WHERE id BETWEEN ? AND ?`, keys[i], keys[j-1]); err != nil {
				return err
			}
			i = j
			continue
		}
		for ; i < j; i++ {
			single = append(single, keys[i])
		}
	}
	return t.deleteList(table, single)
}

func (t *tx) deleteList(table string, keys []any) error {
	for len(keys) > 0 {
		n := min(len(keys), deleteRows)
		form := n
		if n > 1 {
			form = deleteRows
		}
		args := keys[:n:n]
		for len(args) < form {
			args = append(args, nil)
		}
		if _, err := t.c.exec(deleteTexts[table][form/deleteRows], args...); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// deleteTexts holds, for each table, the statement for one row and for many.
var deleteTexts = map[string][2]string{
	"messages": {`DELETE FROM messages WHERE id = ?`, `DELETE FROM messages WHERE id IN (` + parameters(deleteRows) + `)`},
	"receipts": {`DELETE FROM receipts WHERE id = ?`, `DELETE FROM receipts WHERE id IN (` + parameters(deleteRows) + `)`},
}
