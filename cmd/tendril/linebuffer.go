package main

import (
	"io"
	"sync"
	"time"
)

// The bounds of a [lineBuffer].
const (
	lineBufferDelay = 20 * time.Millisecond
	lineBufferSize  = 32 << 10
)

// lineBuffer gathers log lines so that thousands a second do not cost a system
// call each. A line waits for 20 ms at most, and Close writes what is left. A
// reader that is gone costs lines, never the work that they tell of.
type lineBuffer struct {
	mu     sync.Mutex
	w      io.Writer
	lines  []byte
	timer  *time.Timer // runs while lines wait
	closed bool
}

func newLineBuffer(w io.Writer) *lineBuffer { return &lineBuffer{w: w} }

// Write takes whole lines. It never fails.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line...)
	switch {
	case b.closed || len(b.lines) >= lineBufferSize:
		b.flush()
	case b.timer == nil:
		b.timer = time.AfterFunc(lineBufferDelay, b.timedFlush)
	}
	return len(line), nil
}

func (b *lineBuffer) timedFlush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush()
}

// flush writes what waits; the caller holds mu.
func (b *lineBuffer) flush() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if len(b.lines) > 0 {
		b.w.Write(b.lines)
		b.lines = b.lines[:0]
	}
}

// Close writes what waits; later lines are written at once.
func (b *lineBuffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.flush()
}
