package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"

	"tendril/queue"
)

type record struct {
	key  int64
	sent int64 // stamp
	sum  int64
	size int64 // attributes and body in bytes
	due  int64 // Unix milliseconds on the broker's clock; 0 for no delay

	// The fields from origin to source are set only on messages from another queue.
	origin   int64
	received int64 // receive count on arrival in this queue
	first    int64 // stamp of the first receive in an earlier queue
	dead     int64 // stamp of the latest dead-lettering
	source   string

	group, dedup, trace string
	attributes          []byte // see encodeAttributes
	body                string
	whole               bool   // with attributes and body
	history             string // see readHistory; only from browsedColumns
}

func (r *record) originKey() int64 {
	if r.origin != 0 {
		return r.origin
	}
	return r.key
}

func (r *record) plain() bool {
	return r.due == 0 && r.origin == 0 && r.group == "" && r.dedup == "" && r.trace == ""
}

func (r *record) footprint() int64 { return 256 + r.size }

// Most CPUs compute this CRC in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum does not cover the key, which a move changes.
func checksum(content uint32, origin int64) int64 {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(origin))
	return int64(crc32.Update(content, castagnoli, key[:]))
}

func (r *record) contentSum() uint32 {
	sum := crc32.Update(0, castagnoli, r.attributes)
	for i, s := range [...]string{r.body, r.group, r.dedup, r.trace} {
		if s == "" {
			continue
		}
		// The index and length separate the fields. crc32.Update only reads, so the conversion is safe.
		sum = crc32.Update(sum^uint32(i<<28^len(s)), castagnoli, unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	return sum
}

func (r *record) isDamaged() bool { return checksum(r.contentSum(), r.originKey()) != r.sum }

var errAttributes = errors.New("invalid attributes of a stored message")

// encodeAttributes sorts by name. Each name, type and value follows its length.
func encodeAttributes(attributes []queue.Attribute) []byte {
	if len(attributes) == 0 {
		return nil
	}

	attributes = queue.SortedAttributes(attributes)

	size := 0
	for i := range attributes {
		a := &attributes[i]
		size += len(a.Name) + len(a.Type) + len(a.Value) + 3*2
	}

	out := make([]byte, 0, size)
	for i := range attributes {
		for _, s := range [...]string{attributes[i].Name, attributes[i].Type, attributes[i].Value} {
			out = binary.AppendUvarint(out, uint64(len(s)))
			out = append(out, s...)
		}
	}
	return out
}

// The strings share one copy of data.
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
			return nil, errAttributes
		}
		attributes = append(attributes, queue.Attribute{Name: name, Type: kind, Value: value})
	}
	return attributes, nil
}

// keepContent is the size in bytes above which contents are neither loaded by scans nor cached.
const keepContent = 8 << 10

// recordColumns are the columns from which [conn.eachRecord] reads a record, in its order.
type recordColumns string

const (
	fixedColumns recordColumns = `id, sent, sum, size, due, origin, received, first, dead, source,
	group_id, dedup_id, trace, `
	allColumns       = fixedColumns + `attributes, body`
	browsedColumns   = allColumns + `, (SELECT history FROM attempts WHERE attempts.id = messages.id)`
	headColumns      = fixedColumns + `NULL, NULL`
	attributeColumns = fixedColumns + `attributes, NULL`
)

var (
	scannedContent = fmt.Sprintf(`iif(size <= %[1]d, attributes, NULL), iif(size <= %[1]d, body, NULL)`, keepContent)
	scanColumns    = fixedColumns + recordColumns(scannedContent)
)

func (c *conn) records(columns recordColumns, where string, args ...any) (rows []*record, err error) {
	err = c.eachRecord(func(r *record) { rows = append(rows, r) }, columns, where, args...)
	return rows, err
}

func (c *conn) eachRecord(f func(*record), columns recordColumns, where string, args ...any) error {
	return c.query(func(row row) {
		r := &record{
			key: row.int(0), sent: row.int(1), sum: row.int(2), size: row.int(3), due: row.int(4),
			origin: row.int(5), received: row.int(6), first: row.int(7), dead: row.int(8), source: row.text(9),
			group: row.text(10), dedup: row.text(11), trace: row.text(12), attributes: row.bytes(13),
		}
		r.body, r.whole = row[14].(string)
		if columns == browsedColumns {
			r.history = row.text(15)
		}
		f(r)
	}, `SELECT `+string(columns)+` FROM messages WHERE `+where, args...)
}

func (c *conn) scan(low, high int64, delayed bool, limit int) ([]*record, error) {
	only := ` AND due IS NULL`
	if delayed {
		only = ``
	}
	return c.records(scanColumns, `id > ? AND id <= ?`+only+` ORDER BY id LIMIT ?`, low, high, int64(limit))
}

func (c *conn) scanWithout(low, high int64, tenants []string, limit int) ([]*record, error) {
	return c.records(scanColumns, `id > ? AND id <= ? AND due IS NULL
		AND (group_id IS NULL OR group_id NOT IN (SELECT value FROM json_each(?))) ORDER BY id LIMIT ?`,
		low, high, string(rawJSON(tenants)), int64(limit))
}

// ok is false if the range has messages with more than a body and attributes.
func (c *conn) scanPlain(low, high int64, limit int) (rows []*record, ok bool, err error) {
	ok = true
	err = c.query(func(row row) {
		ok = ok && row[4] == nil
		if !ok {
			return
		}
		r := &record{key: row.int(0), sent: row.int(1), sum: row.int(2), size: row.int(3), attributes: row.bytes(5)}
		r.body, r.whole = row[6].(string)
		rows = append(rows, r)
	}, `SELECT id, sent, sum, size, coalesce(origin, group_id, trace), `+scannedContent+`
		FROM messages WHERE id > ? AND id <= ? AND due IS NULL ORDER BY id LIMIT ?`, low, high, int64(limit))
	return rows, ok, err
}

// scanDue returns messages by due time, then key, after (from, fromKey) and due by to.
func (c *conn) scanDue(number, low, high, from, fromKey, to int64, limit int) ([]*record, error) {
	return c.records(scanColumns, `id >> 40 = ? AND due IS NOT NULL AND due <= ? AND (due, id) > (?, ?)
		AND id > ? AND id <= ? ORDER BY due, id LIMIT ?`, number, to, from, fromKey, low, high, int64(limit))
}

// lookUp reads up to [queue.MaxBatch] messages; missing ones are skipped.
func (c *conn) lookUp(keys ...int64) ([]*record, error) {
	var args [queue.MaxBatch]any
	for i, key := range keys {
		args[i] = key
	}
	return c.records(allColumns, `id IN (?,?,?,?,?,?,?,?,?,?)`, args[:]...)
}

func (c *conn) recordHead(key int64) (*record, error) {
	rows, err := c.records(headColumns, `id = ?`, key)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}
