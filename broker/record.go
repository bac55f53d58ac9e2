package broker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
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
