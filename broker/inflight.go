package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"tendril/internal/host/datadir"
)

// receiveMarks records receives that are not yet in the database in a memory-mapped file, without system calls. Marks
// survive kill -9, but not necessarily a power failure. A message has at most one.
type receiveMarks struct {
	mu   sync.Mutex
	data []byte // nil if not mapped
	free []uint32
	used uint32
}

// mark records one receive:
//
//	key 8 | first receive 8 | serial 4 | receive count 4 | epoch 4 | checksum 4
type mark struct {
	key, first       int64
	serial, received uint32
}

const (
	marksName = "inflight"
	markSize  = 32
	// maxMarks is enough for 160,000 receives per second. Further receives get no mark.
	maxMarks = 32_768

	marksSize = maxMarks * markSize
)

// The epoch and a checksum reveal stale and partially written marks.
func (m *mark) encode(text []byte, epoch uint32) {
	binary.LittleEndian.PutUint64(text, uint64(m.key))
	binary.LittleEndian.PutUint64(text[8:], uint64(m.first))
	binary.LittleEndian.PutUint32(text[16:], m.serial)
	binary.LittleEndian.PutUint32(text[20:], m.received)
	binary.LittleEndian.PutUint32(text[24:], epoch)
	binary.LittleEndian.PutUint32(text[28:], crc32.ChecksumIEEE(text[:28]))
}

func decodeMark(text []byte, epoch uint32) (m mark, ok bool) {
	m = mark{
		key:      int64(binary.LittleEndian.Uint64(text)),
		first:    int64(binary.LittleEndian.Uint64(text[8:])),
		serial:   binary.LittleEndian.Uint32(text[16:]),
		received: binary.LittleEndian.Uint32(text[20:]),
	}
	again := make([]byte, markSize)
	m.encode(again, epoch)
	return m, m.key != 0 && bytes.Equal(again, text)
}

// open returns the marks that an earlier process left, even if it cannot map the file.
func (k *receiveMarks) open(dir string, epoch uint32) (left []mark, err error) {
	f, err := datadir.OpenFile(filepath.Join(dir, marksName))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	text, err := io.ReadAll(io.LimitReader(f, marksSize))
	for at := 0; at+markSize <= len(text); at += markSize {
		if m, ok := decodeMark(text[at:at+markSize], epoch); ok {
			left = append(left, m)
		}
	}

	if err != nil {
		return left, err
	}
	if len(text) < marksSize {
		if err := allocate(f, marksSize); err != nil {
			return left, err
		}
	}
	k.data, err = unix.Mmap(int(f.Fd()), 0, marksSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return left, err
}

// put replaces the message's mark, unless no slot is free. The caller must hold the lock.
func (k *receiveMarks) put(m *message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := m.mark
	switch n := len(k.free); {
	case n > 0:
		m.mark = k.free[n-1]
		k.free = k.free[:n-1]
	case int(k.used) < len(k.data)/markSize:
		k.used++
		m.mark = k.used
	default:
		return
	}

	now := mark{m.key, m.first, uint32(m.count), uint32(m.received())}
	now.encode(k.data[(m.mark-1)*markSize:][:markSize], m.epoch)
	k.release(before) // last, so that the message always has a mark
}

func (k *receiveMarks) drop(m *message) {
	if m.mark == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.release(m.mark)
	m.mark = 0
}

// Slot 0 means no mark. The caller must hold the lock.
func (k *receiveMarks) release(slot uint32) {
	if slot != 0 && k.data != nil {
		clear(k.data[(slot-1)*markSize : slot*markSize])
		k.free = append(k.free, slot)
	}
}

func (k *receiveMarks) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.data
	k.data = nil
	k.free = nil
	k.used = 0
	if data == nil {
		return nil
	}
	return unix.Munmap(data)
}

func (t *tx) storeMarks(left []mark, epoch int64) {
	for _, m := range left {
		t.exec(`INSERT INTO receipts (id, count, first, received_at, until, epoch, unread)
			SELECT id, ?2, ?3, ?4, 0, ?5, ?6 FROM messages WHERE id = ?1
			ON CONFLICT (id) DO UPDATE SET count = ?2, until = 0, epoch = ?5, unread = ?6,
			first = iif(first = 0, ?3, first) WHERE count < ?2`,
			m.key, int64(m.serial), m.first, stamp(), epoch, int64(m.serial-m.received))
	}
}

// Posting records that the worker is about to post a message. If the process is killed, a receive with CountAtPost
// counts only after Posting.
func (q *Queue) Posting(receipt string) {
	live, err := q.b.live(q.name)
	if err != nil {
		return
	}
	live.mu.Lock()
	defer live.mu.Unlock()
	r, err := live.index.openReceipt(&live.index.work, receipt)
	if err != nil {
		return
	}
	m := live.index.held[r.key]
	if m == nil || m.leaving || !m.isLatest(r) || !m.unposted {
		return
	}
	m.unposted = false
	live.broker.marks.put(m)
	live.storeReceive(m)
}
