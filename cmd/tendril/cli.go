package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tendril/internal/host/terminal"
)

// cli holds everything one run of the command reads and writes, so that tests can substitute it.
type cli struct {
	// name is the name the program was invoked as; "" in tests.
	name     string
	in       io.Reader
	out, err io.Writer
	args     []string // of the command line, without the program
	// environ is the environment as NAME=value.
	environ []string
	// tty tells that out is a terminal that a person reads; ttyIn that in is one that a person types at.
	tty, ttyIn bool
	// free replace defaults of addresses and ports that are taken, by option, see [environment.Options.FreePorts].
	free map[string]string
	// buffers hold what is printed once [cli.buffer] was called.
	buffers []*lineBuffer
	// closers are called when the command has ended, the last one first.
	closers []func()
}

// atEnd has something closed when the command has ended.
func (c *cli) atEnd(end func()) { c.closers = append(c.closers, end) }

func (c *cli) end() {
	for _, end := range slices.Backward(c.closers) {
		end()
	}
	c.closers = nil
}

func newCLI() *cli {
	return &cli{
		name: os.Args[0], in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(),
		tty: term.IsTerminal(int(os.Stdout.Fd())), ttyIn: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// color reports whether colours may be used, as NO_COLOR and TERM say.
func (c *cli) color() bool {
	return c.tty && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"
}

func (c *cli) env(name string) string {
	value, _ := c.lookUp(name)
	return value
}

// lookUp returns a variable; of several the last one counts.
func (c *cli) lookUp(name string) (value string, found bool) {
	for _, entry := range slices.Backward(c.environ) {
		if value, found = strings.CutPrefix(entry, name+"="); found {
			return value, true
		}
	}
	return "", false
}

// confirm lets an act go on that cannot be undone: with yes, or when the person
// at the terminal types word. Nobody at a terminal and no yes is a usage error.
func (c *cli) confirm(act, word string, yes bool) error {
	if yes {
		return nil
	}
	if !c.ttyIn {
		return fail(exitUsage, fmt.Errorf("this would %s, which cannot be undone", act), "add --yes to confirm")
	}
	fmt.Fprintf(c.err, "This will %s. It cannot be undone.\nType %s to go on: ", act, word)
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && line == "" || strings.TrimSpace(line) != word {
		return fail(exitFailed, errors.New("nothing was changed: the answer was not "+word))
	}
	return nil
}

// progress returns a bar that counts to total on a person's terminal, or a counter when total is less than 0. Where
// nobody watches, or shown is false, it prints nothing.
func (c *cli) progress(total int, what string, shown bool) *progressbar.ProgressBar {
	w := behind(c.err) // it moves the cursor
	if f, ok := w.(*os.File); !shown || !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(w != io.Discard))
}

// buffer keeps what is printed from now on from waiting for its reader, and a reader that goes away from ending
// this process. It is for commands that have work in hand; others end with their reader, as is usual. Lines of text
// are written at once, lines of JSON gather.
func (c *cli) buffer(text bool) {
	outliveReader()
	delay, report := lineBufferDelay, reportJSON
	if text {
		delay, report = 0, reportPlain
	}
	if c.err = (&terminal.Writer{To: behind(c.err), Colors: text && c.color()}); text {
		c.out = &terminal.Writer{To: behind(c.out), Colors: c.color()}
	} else {
		c.out = c.programs()
	}
	out := newLineBuffer(c.out, delay, report)
	c.buffers = append(c.buffers, out)
	if sameFile(c.out, c.err) { // a terminal, or 2>&1: lines of both keep their order
		c.err = out
	} else {
		err := newLineBuffer(c.err, 0, reportPlain)
		c.buffers = append(c.buffers, err)
		c.err = err
	}
	c.out = out
	log.SetOutput(c.err) // what net/http has to say
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

// programs is standard output for JSON, which no escape may change unless a person looks at it.
func (c *cli) programs() io.Writer {
	if c.tty {
		return c.out
	}
	return behind(c.out)
}
