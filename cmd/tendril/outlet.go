package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tendril/terminal"
)

// buffer keeps what is printed from now on from waiting for who reads it, and
// a reader that goes away from ending this process. It is for commands that have
// work in hand; others end with their reader, as is usual. Lines of text are
// written at once, lines of JSON gather.
func (c *cli) buffer(text bool) {
	outliveReader()
	delay, tell := lineBufferDelay, tellJSON
	if text {
		delay, tell = 0, tellText
	}
	if c.err = (&terminal.Writer{To: behind(c.err), Colors: text && c.color()}); text {
		c.out = &terminal.Writer{To: behind(c.out), Colors: c.color()}
	} else {
		c.out = c.programs()
	}
	out := newLineBuffer(c.out, delay, tell)
	c.buffers = append(c.buffers, out)
	if sameFile(c.out, c.err) { // a terminal, or 2>&1: lines of both keep their order
		c.err = out
	} else {
		err := newLineBuffer(c.err, 0, tellText)
		c.buffers = append(c.buffers, err)
		c.err = err
	}
	c.out = out
	log.SetOutput(c.err) // what net/http has to say
}

// outliveReader has writing fail, instead of ending this process, when nobody reads
// its output any more.
func outliveReader() {
	// Not ignored: what we start would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// closeBuffers writes what waits, for as long as an end may wait for readers.
func (c *cli) closeBuffers() {
	var written []<-chan struct{}
	for _, b := range c.buffers {
		written = append(written, b.Close())
	}
	if len(written) == 0 {
		return
	}
	late := time.NewTimer(lineBufferPatience)
	defer late.Stop()
	for _, w := range written {
		select {
		case <-w:
		case <-late.C:
			return
		}
	}
}

// behind is where a writer that escapes writes to, or the writer itself.
func behind(w io.Writer) io.Writer {
	if escaping, ok := w.(*terminal.Writer); ok {
		return escaping.To
	}
	return w
}

// programs is standard output for JSON, which no escape may change unless a person
// looks at it.
func (c *cli) programs() io.Writer {
	if c.tty {
		return c.out
	}
	return behind(c.out)
}

// sameFile reports whether two writers lead to the same place.
func sameFile(a, b io.Writer) bool {
	f, isFile := behind(a).(*os.File)
	g, also := behind(b).(*os.File)
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

// unreadText says that lines were left out, which nobody read.
func unreadText(lines int) string {
	if lines == 1 {
		return "1 line was left out here: this output was not read"
	}
	return fmt.Sprintf("%d lines were left out here: this output was not read", lines)
}

func tellJSON(w io.Writer, lines int) {
	slog.New(slog.NewJSONHandler(w, nil)).Warn(unreadText(lines), "component", "output", "lines", lines)
}

func tellText(w io.Writer, lines int) {
	fmt.Fprintf(w, "%s ! %s\n", time.Now().Format("15:04:05"), unreadText(lines))
}
