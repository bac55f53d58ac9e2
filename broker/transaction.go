package broker

import (
	"slices"
	"strings"

	"tendril/queue"
)

// tx is a transaction. It batches rows to save statements.
type tx struct {
	c        *conn
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

func (t *tx) commit(s *store, group []pendingRequest) (err error) {
	defer func() {
		if err != nil {
			_, _ = t.c.exec(`ROLLBACK`)
		}
		t.end(err)
	}()
	durable := slices.ContainsFunc(group, func(r pendingRequest) bool { return r.needs&needsFsync != 0 })
	if err := s.synchronous(durable); err != nil {
		return err
	}
	if _, err := t.c.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}

	for _, r := range group {
		if err := r.request.apply(t); err != nil {
			return err
		}
	}

	if err := t.flushRows(); err != nil {
		return err
	}
	for q := range t.touched {
		if t.dropped[q] {
			continue
		}
		if err := writeCounters(t.c, q.index.number, &q.disk); err != nil {
			return err
		}
	}
	_, err = t.c.exec(`COMMIT`)
	return err
}

// If the commit fails, end restores the counters.
func (t *tx) counters(q *liveQueue) *counters {
	if _, ok := t.touched[q]; !ok {
		t.touched[q] = q.disk
	}
	return &q.disk
}

// received means that rows in receipts and attempts are possible.
func (t *tx) remove(key int64, received bool) {
	t.removed = append(t.removed, key)
	if received {
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
func (t *tx) flushRows() error {
	defer t.forgetRows()
	if err := t.flushInserts(); err != nil {
		return err
	}
	if err := t.flushDeletes("messages", t.removed); err != nil {
		return err
	}
	if err := t.flushDeletes("receipts", t.received); err != nil {
		return err
	}
	if err := t.flushDeletes("attempts", t.failed); err != nil {
		return err
	}
	return t.flushReasons()
}

func (t *tx) forgetRows() {
	t.inserts = t.inserts[:0]
	t.removed = t.removed[:0]
	t.received = t.received[:0]
	t.failed = t.failed[:0]
	clear(t.reasons)
}

func (t *tx) end(err error) {
	if err != nil {
		for q, before := range t.touched {
			q.disk = before
		}
		t.forgetRows()
	}
	clear(t.touched)
	clear(t.dropped)
}

func (t *tx) gone(q *liveQueue) bool { return q.removed || t.dropped[q] }

func (t *tx) row(q *liveQueue, key int64) (*record, error) {
	if keySeq(key) <= q.disk.floor {
		return nil, nil
	}
	return t.c.head(key)
}

// insertPlain is for messages with only a body and attributes. Both arrays are indexed by the number of rows. OR FAIL
// saves the journal for undoing one statement; an error rolls back the whole transaction anyway.
var (
	insertPlain = insertTexts(`id, sent, sum, size, attributes, body`, 6)
	insertAny   = insertTexts(allColumns, 15)
)

func insertTexts(names string, columns int) (texts [queue.MaxBatch + 1]string) {
	for n := range texts {
		texts[n] = `INSERT OR FAIL INTO messages (` + names + `) VALUES ` + repeated(`(`+repeated(`?`, columns)+`)`, n)
	}
	return texts
}

func repeated(sql string, n int) string { return strings.Join(slices.Repeat([]string{sql}, n), `,`) }

func (t *tx) flushInserts() error {
	for rest := t.inserts; len(rest) > 0; {
		plain, n := rest[0].plain(), 1
		for n < min(len(rest), queue.MaxBatch) && rest[n].plain() == plain {
			n++
		}
		if err := t.insert(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// insert inserts up to [queue.MaxBatch] rows, all plain or none.
func (t *tx) insert(rows []*record) error {
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
	_, err := t.c.exec(text, t.args...)
	return err
}

func orNull[T comparable](v T) any {
	var none T
	if v == none {
		return nil
	}
	return v
}

const listedKeys = 16

// deletion has the SQL that deletes one row, listedKeys rows, or a range of rows.
type deletion struct{ one, listed, between string }

var deletions = map[string]deletion{
	"messages": deletionOf(`messages`, ``),
	"receipts": deletionOf(`receipts`, ``),
	"attempts": deletionOf(`attempts`, ` RETURNING id, reason, at`),
}

func deletionOf(table, returning string) deletion {
	text := `DELETE FROM ` + table + ` WHERE id `
	return deletion{
		one:     text + `= ?` + returning,
		listed:  text + `IN (` + repeated(`?`, listedKeys) + `)` + returning,
		between: text + `BETWEEN ? AND ?` + returning,
	}
}

func (t *tx) deleteRows(table, text string, keys ...any) error {
	if table != "attempts" {
		_, err := t.c.exec(text, keys...)
		return err
	}
	return t.c.query(func(row row) { t.countReason(row.int(0), row.text(1), row.int(2), -1) }, text, keys...)
}

func (t *tx) flushDeletes(table string, keys []int64) error {
	texts := deletions[table]
	slices.Sort(keys)
	var scattered []any
	for len(keys) > 0 {
		n := consecutive(keys)
		if n >= 4 {
			if err := t.deleteRows(table, texts.between, keys[0], keys[n-1]); err != nil {
				return err
			}
		} else {
			for _, key := range keys[:n] {
				scattered = append(scattered, key)
			}
		}
		keys = keys[n:]
	}

	for some := range slices.Chunk(scattered, listedKeys) {
		text := texts.one
		if len(some) > 1 {
			text = texts.listed
			some = append(some, make([]any, listedKeys-len(some))...)
		}
		if err := t.deleteRows(table, text, some...); err != nil {
			return err
		}
	}
	return nil
}

func consecutive(keys []int64) int {
	n := 1
	for n < len(keys) && keys[n] == keys[n-1]+1 {
		n++
	}
	return n
}
