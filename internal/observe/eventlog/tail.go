package eventlog

import (
	"slices"
	"sync"
)

// Range limits entries by ID and number.
type Range struct {
	// After and Before are exclusive bounds; 0 means no bound.
	After, Before int64
	Newest        bool // newest first
	Limit         int  // 0 means no limit
}

type entry interface {
	id() int64
	size() int
}

func (e Event) id() int64 { return e.ID }
func (e Event) size() int { return 0 }

type tail[T entry] struct {
	maxEntries, maxBytes int

	mu      sync.Mutex
	entries []T
	bytes   int
	last    int64
	dropped bool // earlier entries are missing
	changed chan struct{}
}

func (t *tail[T]) add(with func(id int64) T) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := with(t.last + 1)
	t.push(e)
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
	return e
}

func (t *tail[T]) load(entries []T, whole bool) {
	t.dropped = t.dropped || !whole
	for _, e := range entries {
		if e.id() > t.last {
			t.push(e)
		}
	}
}

// push and load require the lock once the tail is shared.
func (t *tail[T]) push(e T) {
	t.last = max(t.last, e.id())
	t.entries = append(t.entries, e)
	t.bytes += e.size()
	for len(t.entries) > t.maxEntries || t.bytes > t.maxBytes && len(t.entries) > 1 {
		t.bytes -= t.entries[0].size()
		t.entries[0] = *new(T)
		t.entries, t.dropped = t.entries[1:], true
	}
}

func (t *tail[T]) lastID() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (t *tail[T]) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

func (t *tail[T]) snapshot() (entries []T, dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries), t.dropped
}

type selector[T entry] struct {
	Range
	matches  func(*T) bool
	selected []T
}

func (s *selector[T]) offer(e T) (more bool) {
	full := s.Limit > 0 && len(s.selected) >= s.Limit
	if full && !s.Newest || s.Before > 0 && e.id() >= s.Before {
		return false
	}
	if e.id() <= s.After || !s.matches(&e) {
		return true
	}
	s.selected = append(s.selected, e)
	if full {
		s.selected = s.selected[1:]
	}
	return true
}

func (s *selector[T]) offerAll(entries []T) {
	for _, e := range entries {
		if !s.offer(e) {
			return
		}
	}
}

func (s *selector[T]) result() []T {
	if s.Newest {
		slices.Reverse(s.selected)
	}
	return s.selected
}
