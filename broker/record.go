package broker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"unsafe"

	"tendril/queue"
)

// record is one row of the messages table: a message as it lies on disk.
type record struct {
	key  int64
	sent int64 // stamp
	sum  int64 // checksum of the content
	size int64 // of attributes and body, in bytes
	due  int64 // Unix milliseconds on the broker's clock; 0 for no delay

	// Set on messages that came from another queue.
	origin   int64 // the key it was sent under; 0 when that is key
	received int64 // receive count on arrival in this queue
	first    int64 // stamp of the first receive before that
	dead     int64 // stamp of the last dead-lettering
	source   string

	group, dedup, trace string
	attributes          []byte // as encodeAttributes writes them
	body                string
}

// originKey is the key that the message id belongs to.
func (r *record) originKey() int64 {
	if r.origin != 0 {
		return r.origin
	}
	return r.key
}

// footprint is about what the record takes in memory.
func (r *record) footprint() int64 { return 256 + r.size }

// checksum covers the content and the message id, so that a flipped bit on the
// disk is found before something wrong is delivered. It does not change when a
// message moves.
func (r *record) checksum() int64 { return checksum(r.contentSum(), r.originKey()) }

func checksum(content uint32, origin int64) int64 {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(origin))
	return int64(crc32.Update(content, castagnoli(), key[:]))
}

// castagnoli is the table of a polynomial that processors know; the library
// makes it once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (r *record) contentSum() uint32 {
	table := castagnoli()
	sum := crc32.Update(0, table, r.attributes)
	for i, s := range [...]string{r.body, r.group, r.dedup, r.trace} {
		if s == "" {
			continue
		}
		// Which it is and how long counts too. The bytes are only read.
		sum = crc32.Update(sum^uint32(i<<28^len(s)), table, unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	return sum
}

// errDamaged means that a row is not what was written.
var errDamaged = errors.New("the stored message is damaged: its checksum does not match")

// encodeAttributes writes attributes sorted by name: name, type and value,
// each after its length. It returns nil for none.
func encodeAttributes(attributes []queue.Attribute) []byte {
	if len(attributes) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(attributes), func(a, b queue.Attribute) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var out []byte
	for _, a := range sorted {
		for _, s := range [...]string{a.Name, a.Type, a.Value} {
			out = binary.AppendUvarint(out, uint64(len(s)))
			out = append(out, s...)
		}
	}
	return out
}

// decodeAttributes reads what encodeAttributes wrote. The strings share one
// copy of the input.
func decodeAttributes(data []byte) ([]queue.Attribute, error) {
	if len(data) == 0 {
		return nil, nil
	}
	text := string(data)
	next := func() (s string, ok bool) {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width) {
			return "", false
		}
		from := len(text) - len(data) + width
		data = data[width+int(n):]
		return text[from : from+int(n)], true
	}
	var attributes []queue.Attribute
	for len(data) > 0 {
		name, ok1 := next()
		kind, ok2 := next()
		value, ok3 := next()
		if !ok1 || !ok2 || !ok3 {
			return nil, errDamaged
		}
		attributes = append(attributes, queue.Attribute{Name: name, Type: kind, Value: value})
	}
	return attributes, nil
}

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
func fillRecord(r *record, row row) (whole bool) {
	*r = record{
		key: row.int(0), sent: row.int(1), sum: row.int(2), size: row.int(3), due: row.int(4),
		origin: row.int(5), received: row.int(6), first: row.int(7), dead: row.int(8), source: row.text(9),
		group: row.text(10), dedup: row.text(11), trace: row.text(12),
	}
	r.attributes = row.bytes(13)
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
	err = c.query(func(row row) error {
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
	err = c.query(func(row row) error {
		if row[5] != nil {
			return errNotPlain
		}
		r := new(scanned)
		r.key = row.int(0)
		r.sent = row.int(1)
		r.sum = row.int(2)
		r.attributes = row.bytes(3)
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
		err := c.query(func(row row) error {
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
		err := c.query(func(row row) error {
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
