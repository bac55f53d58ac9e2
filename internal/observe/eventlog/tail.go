package eventlog

import (
	"slices"
	"sync"
)

// Range selects by id, and by number.
type Range struct {
	// After and Before bound the ids; neither is included. 0 means no bound.
	After, Before int64
	// Newest takes the newest ones, newest first, and not the oldest ones, oldest first.
	Newest bool
	Limit  int // the most that are taken; 0 means no bound
}

func (r *Range) includes(id int64) bool { return id > r.After && (r.Before == 0 || id < r.Before) }

// entry is what a tail holds: it has an id and a size in bytes.
type entry interface {
	id() int64
	size() int
}

func (e Event) id() int64 { return e.ID }
func (e Event) size() int { return 0 }

// tail holds the last entries of a sequence in memory, and wakes those who wait for the next one.
type tail[T entry] struct {
	most, maxBytes int // the bounds; maxBytes counts what entries say of their size

	mu      sync.Mutex
	entries []T // in the order of their ids
	bytes   int
	last    int64         // the id that was given last
	dropped bool          // whether there were older entries than those held
	changed chan struct{} // closed when an entry comes
}

// add appends the entry that with makes for the next id.
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

// push appends an entry, and drops the oldest ones beyond the bounds. Called with the lock held, or before others
// know the tail.
func (t *tail[T]) push(e T) {
	t.last = max(t.last, e.id())
	t.entries = append(t.entries, e)
	t.bytes += e.size()
	for len(t.entries) > t.most || t.bytes > t.maxBytes && len(t.entries) > 1 {
		t.bytes -= t.entries[0].size()
		t.entries[0] = *new(T)
		t.entries, t.dropped = t.entries[1:], true
	}
}

// wait returns a channel that is closed when the next entry comes.
func (t *tail[T]) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// held returns what is held now, and whether there was more.
func (t *tail[T]) held() (entries []T, dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries), t.dropped
}

// selector takes entries in the order of their ids and keeps those that a range selects.
type selector[T entry] struct {
	Range
	matches  func(*T) bool
	selected []T
}

// take offers an entry. It returns false when no further one can be selected.
func (s *selector[T]) take(e T) bool {
	full := s.Limit > 0 && len(s.selected) >= s.Limit
	switch {
	case full && !s.Newest, s.Before > 0 && e.id() >= s.Before:
		return false
	case !s.includes(e.id()) || !s.matches(&e):
		return true
	}
	if s.selected = append(s.selected, e); full {
		s.selected = s.selected[1:]
	}
	return true
}

// result returns what was selected, in the order that the range asks for.
func (s *selector[T]) result() []T {
	if s.Newest {
		slices.Reverse(s.selected)
	}
	return s.selected
}
