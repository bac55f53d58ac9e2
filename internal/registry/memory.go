package registry

import (
	"context"
	"maps"
	"sync"
	"time"
)

const memoryRetention = 48 * time.Hour // of records that expire

// Memory is an in-memory store, for a single instance and for tests.
type Memory struct {
	mu      sync.Mutex
	records map[memoryKey]memoryRecord
}

type memoryKey struct {
	kind Kind
	key  string
}

type memoryRecord struct {
	record  Record
	written time.Time
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{records: map[memoryKey]memoryRecord{}} }

// Read implements [Store].
func (m *Memory) Read(ctx context.Context, kind Kind, keys ...string) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := make([]Record, len(keys))
	for i, key := range keys {
		records[i] = m.stored(kind, key)
	}
	return records, ctx.Err()
}

func (m *Memory) stored(kind Kind, key string) Record {
	r := m.records[memoryKey{kind, key}].record
	r.Kind, r.Key = kind, key
	return r
}

// Swap implements [Store].
func (m *Memory) Swap(ctx context.Context, fence Fence, changes ...Change) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if fence != (Fence{}) {
		if err := fence.Refuse(m.stored(KindLease, fence.Lease), "The change"); err != nil {
			return nil, err
		}
	}

	records := make([]Record, len(changes))
	for i, c := range changes {
		if Same(m.stored(c.Old.Kind, c.Old.Key), c.Old) {
			m.write(c.Next)
		}
		records[i] = m.stored(c.Old.Kind, c.Old.Key)
	}
	return records, nil
}

func (m *Memory) write(next Record) {
	now := time.Now()
	maps.DeleteFunc(m.records, func(_ memoryKey, r memoryRecord) bool {
		return !r.record.Expires.IsZero() && now.Sub(r.written) > memoryRetention
	})
	m.records[memoryKey{next.Kind, next.Key}] = memoryRecord{next, now}
}
