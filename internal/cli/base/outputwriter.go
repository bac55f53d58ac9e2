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

// OutliveReader has writing fail, instead of ending this process, when nobody reads its output any more.
func OutliveReader() {
	// Not ignored: what we start would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Behind is where a writer that escapes writes to, or the writer itself.
func Behind(w io.Writer) io.Writer {
	if escaping, ok := w.(*terminal.Writer); ok {
		return escaping.To
	}
	return w
}

// sameFile reports whether two writers lead to the same place.
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

// unreadMessage stands in the place of lines that nobody read.
const unreadMessage = "log lines dropped, output was not read"

func reportJSON(w io.Writer, lines int) {
	slog.New(slog.NewJSONHandler(w, nil)).Warn(unreadMessage, "component", "output", "lines", lines)
}

func reportPlain(w io.Writer, lines int) {
	logging.New(logging.Options{Out: w, Format: logging.Text}).Warn(unreadMessage, "lines", lines)
}

// The bounds of a [lineBuffer].
const (
	lineBufferDelay = 20 * time.Millisecond
	lineBufferSize  = 32 << 10
	// lineBufferMost is what a reader may be behind: some 14,000 lines, a hiccup of
	// a second and more when every one of ten thousand a second is printed, and
	// minutes of what is printed by default; yet little for a machine's memory.
	lineBufferMost = 4 << 20
	// lineBufferPatience is how long an end waits for readers.
	lineBufferPatience = time.Second
)

// lineBuffer gathers log lines so that thousands a second do not cost a system call each, and writes them from a
// goroutine of its own. A line waits for the delay at most, 0 for none. A reader that is gone, or does not read,
// costs lines, never the work that they tell of: Write does not wait for it. Beyond lineBufferMost lines are left
// out, and once the reader reads again a line stands in their place that says how many.
type lineBuffer struct {
	w      io.Writer
	delay  time.Duration
	report func(w io.Writer, lines int) // writes the line about those left out

	mu      sync.Mutex
	full    [][]byte // portions of lineBufferSize and more, in front of lines
	lines   []byte
	spare   []byte // an empty portion to go on with
	held    int    // bytes of all of them, and of the portion that is being written
	left    int    // lines left out and not told yet
	due     bool   // lines are to be written now
	writing bool   // write runs
	timer   *time.Timer
	closed  chan struct{} // made by Close, closed when all is written
}

func newLineBuffer(w io.Writer, delay time.Duration, report func(w io.Writer, lines int)) *lineBuffer {
	return &lineBuffer{w: w, delay: delay, report: report}
}

// Write takes whole lines. It never fails, and never waits for the reader.
func (b *lineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// After the first line that is left out there are others until write has told, so that they stand in one place.
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

// add appends lines; the caller holds mu.
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

// flush has everything written that is due, or with all also what waits; the caller holds mu.
func (b *lineBuffer) flush(all bool) {
	b.due = b.due || all
	if !b.writing {
		b.writing = true
		go b.write()
	}
}

// write writes what is due, one portion after the other, until nothing is.
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

// next takes the portion that is to be written next, nil when none is due; the caller holds mu.
func (b *lineBuffer) next() (portion []byte) {
	switch {
	case len(b.full) > 0:
		portion, b.full = b.full[0], b.full[1:]
	case b.due && len(b.lines) > 0:
		portion, b.lines, b.spare = b.lines, b.spare, nil
	}
	return portion
}

// reportLeftOut puts a line in the place of those left out; the caller holds mu.
func (b *lineBuffer) reportLeftOut() {
	var line bytes.Buffer
	b.report(&line, b.left)
	b.left = 0
	b.due = true
	b.add(line.Bytes())
}

// Close has what waits written, and later lines at once. What it returns is
// closed when nothing waits any more: never, where the reader does not read.
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
