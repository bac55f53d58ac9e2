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

// OutliveReader makes writes to a closed pipe return an error instead of killing the process.
func OutliveReader() {
	// Child processes would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Unescaped returns the underlying writer if w escapes control sequences, otherwise w.
func Unescaped(w io.Writer) io.Writer {
	if escaping, ok := w.(*terminal.Writer); ok {
		return escaping.To
	}
	return w
}

func sameFile(a, b io.Writer) bool {
	f, isFile := Unescaped(a).(*os.File)
	g, also := Unescaped(b).(*os.File)
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
	lineBufferBatch = 32 << 10
	// lineBufferLimit is about 14,000 lines: over a second at ten thousand lines per second, minutes at default
	// verbosity.
	lineBufferLimit    = 4 << 20
	lineBufferPatience = time.Second // limits the wait for readers at exit
)

// lineBuffer batches log lines to save system calls. Write never blocks: lines beyond lineBufferLimit are dropped and
// counted.
type lineBuffer struct {
	w      io.Writer
	delay  time.Duration
	report func(w io.Writer, lines int)

	mu      sync.Mutex
	lines   []byte
	spare   []byte
	held    int  // bytes, including the batch being written
	dropped int  // lines that have not been reported yet
	due     bool // write lines even if there are fewer than lineBufferBatch bytes
	writing bool
	timer   *time.Timer
	flushed chan struct{} // nil until Close
}

func newLineBuffer(w io.Writer, delay time.Duration, report func(w io.Writer, lines int)) *lineBuffer {
	return &lineBuffer{w: w, delay: delay, report: report}
}

func (b *lineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped > 0 || b.held > 0 && b.held+len(lines) > lineBufferLimit {
		b.dropped += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}

	b.add(lines)
	b.due = b.due || b.flushed != nil || b.delay == 0
	switch {
	case b.due || len(b.lines) >= lineBufferBatch:
		b.startWriting()
	case b.timer == nil:
		b.timer = time.AfterFunc(b.delay, b.timedFlush)
	}

	return len(lines), nil
}

// Callers of add, startWriting and reportDropped must hold mu.
func (b *lineBuffer) add(lines []byte) {
	b.lines = append(b.lines, lines...)
	b.held += len(lines)
}

func (b *lineBuffer) timedFlush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = nil
	b.due = true
	b.startWriting()
}

func (b *lineBuffer) startWriting() {
	if !b.writing {
		b.writing = true
		go b.write()
	}
}

func (b *lineBuffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.lines) >= lineBufferBatch || b.due && len(b.lines) > 0 {
		batch := b.lines
		b.lines = b.spare
		b.spare = nil
		b.mu.Unlock()
		b.w.Write(batch)
		b.mu.Lock()

		b.held -= len(batch)
		if cap(batch) <= 2*lineBufferBatch {
			b.spare = batch[:0]
		}
		if b.dropped > 0 {
			b.reportDropped()
		}
	}

	b.writing = false
	b.due = false
	if b.flushed != nil && b.held == 0 {
		select {
		case <-b.flushed:
		default:
			close(b.flushed)
		}
	}
}

func (b *lineBuffer) reportDropped() {
	var line bytes.Buffer
	b.report(&line, b.dropped)
	b.dropped = 0
	b.due = true
	b.add(line.Bytes())
}

// Close makes later writes immediate. The channel is closed once everything has been written.
func (b *lineBuffer) Close() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flushed == nil {
		b.flushed = make(chan struct{})
		b.due = true
		b.startWriting()
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	return b.flushed
}
