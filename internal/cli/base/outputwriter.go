package base

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"tendril/internal/host/terminal"
	"tendril/internal/observe/logging"
)

// OutliveReader makes writes to a closed pipe fail instead of killing the process.
func OutliveReader() {
	// Child processes would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Behind returns the writer behind an escaping writer, or w itself.
func Behind(w io.Writer) io.Writer {
	if escaping, ok := w.(*terminal.Writer); ok {
		return escaping.To
	}
	return w
}

func sameFile(a, b io.Writer) bool {
	f, isFile := Behind(a).(*os.File)
	g, also := Behind(b).(*os.File)
	if !isFile || !also {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		return false
	}
	gi, err := g.Stat()
	return err == nil && os.SameFile(fi, gi)
}

const unreadMessage = "log lines dropped, output not read"

func reportJSON(w io.Writer, lines int) {
	slog.New(slog.NewJSONHandler(w, nil)).Warn(unreadMessage, "component", "output", "lines", lines)
}

func reportPlain(w io.Writer, lines int) {
	logging.New(logging.Options{Out: w, Format: logging.Text}).Warn(unreadMessage, "lines", lines)
}

const (
	lineBufferDelay = 20 * time.Millisecond
	lineBufferSize  = 32 << 10
	// lineBufferMost holds some 14,000 lines: over a second at ten thousand lines per second, minutes at default
	// verbosity.
	lineBufferMost = 4 << 20
	// lineBufferPatience limits the wait for readers at exit.
	lineBufferPatience = time.Second
)

// lineBuffer batches log lines to save system calls and writes them in a goroutine. A line is delayed by at most
// delay. Write never waits for the reader: beyond lineBufferMost lines are dropped, and once the reader continues, a
// line reports their number.
type lineBuffer struct {
	w      io.Writer
	delay  time.Duration
	report func(w io.Writer, lines int)

	mu      sync.Mutex
	full    [][]byte // filled portions, older than lines
	lines   []byte
	spare   []byte
	held    int // total bytes, including the portion being written
	left    int // dropped lines not reported yet
	due     bool
	writing bool
	timer   *time.Timer
	closed  chan struct{} // created by Close; closed when everything is written
}

func newLineBuffer(w io.Writer, delay time.Duration, report func(w io.Writer, lines int)) *lineBuffer {
	return &lineBuffer{w: w, delay: delay, report: report}
}

// Write accepts whole lines. It never fails or blocks.
func (b *lineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Once lines are dropped, drop all until write has reported them, to keep the gap in one place.
	if b.left > 0 || b.held > 0 && b.held+len(lines) > lineBufferMost {
		b.left += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}
	b.add(lines)
	switch {
	case b.closed != nil || b.delay == 0:
		b.flush(true)
	case len(b.full) > 0:
		b.flush(false)
	case b.timer == nil:
		b.timer = time.AfterFunc(b.delay, b.timedFlush)
	}
	return len(lines), nil
}

// add appends lines. The caller holds mu.
func (b *lineBuffer) add(lines []byte) {
	b.lines = append(b.lines, lines...)
	b.held += len(lines)
	if len(b.lines) >= lineBufferSize {
		b.full = append(b.full, b.lines)
		b.lines, b.spare = b.spare, nil
	}
}

func (b *lineBuffer) timedFlush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = nil
	b.flush(true)
}

// flush starts writing full portions, or with all also the partial one. The caller holds mu.
func (b *lineBuffer) flush(all bool) {
	b.due = b.due || all
	if !b.writing {
		b.writing = true
		go b.write()
	}
}

func (b *lineBuffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for portion := b.next(); portion != nil; portion = b.next() {
		b.mu.Unlock()
		b.w.Write(portion)
		b.mu.Lock()
		b.held -= len(portion)
		if cap(portion) <= 2*lineBufferSize {
			b.spare = portion[:0]
		}
		if b.left > 0 {
			b.reportLeftOut()
		}
	}

	b.writing, b.due = false, false
	if b.closed != nil && b.held == 0 {
		select {
		case <-b.closed:
		default:
			close(b.closed)
		}
	}
}

// next returns the next portion to write, or nil. The caller holds mu.
func (b *lineBuffer) next() (portion []byte) {
	switch {
	case len(b.full) > 0:
		portion, b.full = b.full[0], b.full[1:]
	case b.due && len(b.lines) > 0:
		portion, b.lines, b.spare = b.lines, b.spare, nil
	}
	return portion
}

// reportLeftOut adds a line about dropped lines. The caller holds mu.
func (b *lineBuffer) reportLeftOut() {
	var line bytes.Buffer
	b.report(&line, b.left)
	b.left = 0
	b.due = true
	b.add(line.Bytes())
}

// Close flushes the buffer and makes later writes immediate. The returned channel is closed when everything has been
// written.
func (b *lineBuffer) Close() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed == nil {
		b.closed = make(chan struct{})
		b.flush(true)
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	return b.closed
}
