package broker

import (
	"slices"
	"strings"

	"tendril/queue"
)

// tx is a transaction. It batches rows to save statements. Once a statement has failed, later ones have no effect and
// find nothing.
type tx struct {
	c        *conn
	err      error // of the first failed statement
	inserts  []*record
	args     []any
	removed  []int64
	received []int64 // removed keys with possible rows in receipts
	failed   []int64 // removed keys with possible rows in attempts
	reasons  map[reasonCount]int64
	touched  map[*liveQueue]counters
	dropped  map[*liveQueue]bool
}

func newTx(c *conn) *tx {
	return &tx{c: c, touched: map[*liveQueue]counters{}, dropped: map[*liveQueue]bool{},
		reasons: map[reasonCount]int64{}}
}

func (t *tx) commit(s *store, group []pendingRequest) error {
	durable := slices.ContainsFunc(group, func(r pendingRequest) bool { return r.needs&needsFsync != 0 })
	t.err = s.synchronous(durable)
	t.exec(`BEGIN IMMEDIATE`)
	for _, r := range group {
		if t.err == nil {
			r.request.apply(t)
		}
	}

	t.flushRows()
	for q := range t.touched {
		if !t.dropped[q] {
			t.writeCounters(q)
		}
	}
	t.exec(`COMMIT`)

	if t.err != nil {
		_, _ = t.c.exec(`ROLLBACK`)
	}
	t.end()
	return t.err
}

func (t *tx) exec(text string, args ...any) (rows int64) {
	if t.err == nil {
		rows, t.err = t.c.exec(text, args...)
	}
	return rows
}

func (t *tx) query(each func(row row), text string, args ...any) {
	if t.err == nil {
		t.err = t.c.query(each, text, args...)
	}
}

func (t *tx) integer(text string, args ...any) (n int64) {
	t.query(func(row row) { n = row.int(0) }, text, args...)
	return n
}

// If the commit fails, end restores the counters.
func (t *tx) counters(q *liveQueue) *counters {
	if _, ok := t.touched[q]; !ok {
		t.touched[q] = q.disk
	}
	return &q.disk
}

// mayHaveRows reports whether the message may have rows in receipts and attempts.
func (t *tx) remove(key int64, mayHaveRows bool) {
	t.removed = append(t.removed, key)
	if mayHaveRows {
		t.received = append(t.received, key)
		t.failed = append(t.failed, key)
	}
}

// removeMoved expects that the attempts already have the new key.
func (t *tx) removeMoved(key int64) {
	t.removed = append(t.removed, key)
	t.received = append(t.received, key)
}

// flushRows must run before the commit and before statements that read the rows.
func (t *tx) flushRows() {
	t.flushInserts()
	t.flushDeletes(&deleteMessages, t.removed)
	t.flushDeletes(&deleteReceipts, t.received)
	t.flushDeletes(&deleteAttempts, t.failed)
	t.flushReasons()
	t.forgetRows()
}

func (t *tx) forgetRows() {
	t.inserts = t.inserts[:0]
	t.removed = t.removed[:0]
	t.received = t.received[:0]
	t.failed = t.failed[:0]
	clear(t.reasons)
}

func (t *tx) end() {
	if t.err != nil {
		for q, before := range t.touched {
			q.disk = before
		}
		t.forgetRows()
	}
	clear(t.touched)
	clear(t.dropped)
}

func (t *tx) gone(q *liveQueue) bool { return q.removed || t.dropped[q] }

func (t *tx) row(q *liveQueue, key int64) (r *record) {
	if t.err == nil && keySeq(key) > q.disk.floor {
		r, t.err = t.c.recordHead(key)
	}
	return r
}

// insertPlain is for messages with only a body and attributes. Both arrays are indexed by the number of rows. OR
// FAIL avoids the journal for undoing one statement; an error rolls back the whole transaction anyway.
var (
	insertPlain = insertTexts(`id, sent, sum, size, attributes, body`, 6)
	insertAny   = insertTexts(string(allColumns), 15)
)

func insertTexts(names string, columns int) (texts [queue.MaxBatch + 1]string) {
	for n := range texts {
		texts[n] = `INSERT OR FAIL INTO messages (` + names + `) VALUES ` + repeated(`(`+repeated(`?`, columns)+`)`, n)
	}
	return texts
}

func repeated(sql string, n int) string { return strings.Join(slices.Repeat([]string{sql}, n), `,`) }

func (t *tx) flushInserts() {
	for rest := t.inserts; len(rest) > 0; {
		plain, n := rest[0].plain(), 1
		for n < min(len(rest), queue.MaxBatch) && rest[n].plain() == plain {
			n++
		}
		t.insert(rest[:n])
		rest = rest[n:]
	}
}

// insert inserts up to [queue.MaxBatch] rows, all plain or none.
func (t *tx) insert(rows []*record) {
	plain := rows[0].plain()
	t.args = t.args[:0]
	for _, r := range rows {
		t.args = append(t.args, r.key, r.sent, r.sum, r.size)
		if !plain {
			t.args = append(t.args, orNull(r.due), orNull(r.origin), orNull(r.received), orNull(r.first), orNull(r.dead),
				orNull(r.source), orNull(r.group), orNull(r.dedup), orNull(r.trace))
		}
		if r.attributes == nil {
			t.args = append(t.args, nil)
		} else {
			t.args = append(t.args, r.attributes)
		}
		t.args = append(t.args, r.body)
	}

	text := insertAny[len(rows)]
	if plain {
		text = insertPlain[len(rows)]
	}
	t.exec(text, t.args...)
}

func orNull[T comparable](v T) any {
	var none T
	if v == none {
		return nil
	}
	return v
}

const (
	listedKeys   = 16
	minRangeKeys = 4
)

// deletion has the SQL that deletes one row, listedKeys rows, or a range of rows.
type deletion struct {
	one, listed, between string
	returnsReasons       bool
}

var (
	deleteMessages = deletionOf(`messages`, ``)
	deleteReceipts = deletionOf(`receipts`, ``)
	deleteAttempts = deletionOf(`attempts`, ` RETURNING id, reason, at`)
)

func deletionOf(table, returning string) deletion {
	text := `DELETE FROM ` + table + ` WHERE id `
	return deletion{
		one:     text + `= ?` + returning,
		listed:  text + `IN (` + repeated(`?`, listedKeys) + `)` + returning,
		between: text + `BETWEEN ? AND ?` + returning,

		returnsReasons: returning != ``,
	}
}

func (t *tx) deleteRows(d *deletion, text string, keys ...any) {
	if d.returnsReasons {
		t.query(func(row row) { t.countReason(row.int(0), row.text(1), row.int(2), -1) }, text, keys...)
	} else {
		t.exec(text, keys...)
	}
}

func (t *tx) flushDeletes(d *deletion, keys []int64) {
	slices.Sort(keys)
	var scattered []any
	for len(keys) > 0 {
		n := consecutive(keys)
		if n >= minRangeKeys {
			t.deleteRows(d, d.between, keys[0], keys[n-1])
		} else {
			for _, key := range keys[:n] {
				scattered = append(scattered, key)
			}
		}
		keys = keys[n:]
	}

	for some := range slices.Chunk(scattered, listedKeys) {
		text := d.one
		if len(some) > 1 {
			text = d.listed
			some = append(some, make([]any, listedKeys-len(some))...) // NULLs match no row
		}
		t.deleteRows(d, text, some...)
	}
}

func consecutive(keys []int64) int {
	n := 1
	for n < len(keys) && keys[n] == keys[n-1]+1 {
		n++
	}
	return n
}
