package run

import (
	"sync"
	"testing"
)

// A release must not delay messages, so memory is released only if no collection has run.
func TestEndOfALoad(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, c := range map[string]struct {
		rest, held, collections uint64
		want                    bool
	}{
		"at rest":            {20 * mib, 20 * mib, 5, false},
		"a little more":      {20 * mib, 36 * mib, 5, false},
		"far more":           {20 * mib, 37 * mib, 5, true},
		"a large index":      {400 * mib, 600 * mib, 5, false},
		"far more than that": {400 * mib, 601 * mib, 5, true},
		"less than at rest":  {400 * mib, 20 * mib, 5, false},
		"still in use":       {20 * mib, 400 * mib, 6, false},
	} {
		l := load{rest: c.rest, collections: 5}
		if got := l.hasEnded(c.held, c.collections); got != c.want {
			t.Errorf("%s: ended %t", name, got)
		}
	}
}

// Buffers of package net/http survive one collection. Other tests collect garbage, so this test is not parallel.
func TestMemoryOfALoadIsReleased(t *testing.T) {
	var l load
	l.rest, _ = heldMemory()
	var pool sync.Pool
	defer pool.Get()
	var buffers [4000][]byte
	for i := range buffers {
		buffers[i] = make([]byte, 16<<10)
	}
	for i := range buffers {
		pool.Put(buffers[i]) //nolint:staticcheck // the cost of a pointer does not matter
		buffers[i] = nil
	}

	loaded, collections := heldMemory()
	l.collections = collections
	l.release()
	if held, _ := heldMemory(); held+50<<20 > loaded {
		t.Errorf("%d MiB are held after a load of %d MiB", held>>20, loaded>>20)
	}
}
