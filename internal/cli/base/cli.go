package base

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

// CLI holds everything one run of the command reads and writes, so that tests can substitute it.
type CLI struct {
	// Name is the name the program was invoked as; "" in tests.
	Name string
	// Version is the version of the program.
	Version  string
	In       io.Reader
	Out, Err io.Writer
	Args     []string // of the command line, without the program
	// Environ is the environment as NAME=value.
	Environ []string
	// Tty tells that out is a terminal that a person reads; ttyIn that in is one that a person types at.
	Tty, TtyIn bool
	// Free replace defaults of addresses and ports that are taken, by option, see [environment.Options.FreePorts].
	Free map[string]string
	// buffers hold what is printed once [cli.buffer] was called.
	buffers []*lineBuffer
	// closers are called when the command has ended, the last one first.
	closers []func()
}

// AtEnd has something closed when the command has ended.
func (c *CLI) AtEnd(end func()) { c.closers = append(c.closers, end) }

// End calls the closers, the last one first.
func (c *CLI) End() {
	for _, end := range slices.Backward(c.closers) {
		end()
	}
	c.closers = nil
}

// New returns the run of this process.
func New(version string) *CLI {
	return &CLI{
		Name: os.Args[0], Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
		Tty: term.IsTerminal(int(os.Stdout.Fd())), TtyIn: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// Color reports whether colours may be used, as NO_COLOR and TERM say.
func (c *CLI) Color() bool {
	return c.Tty && c.Env("NO_COLOR") == "" && c.Env("TERM") != "dumb"
}

// Env returns the value of a variable, "" if it is not set.
func (c *CLI) Env(name string) string {
	value, _ := c.LookUp(name)
	return value
}

// LookUp returns a variable; of several the last one counts.
func (c *CLI) LookUp(name string) (value string, found bool) {
	for _, entry := range slices.Backward(c.Environ) {
		if value, found = strings.CutPrefix(entry, name+"="); found {
			return value, true
		}
	}
	return "", false
}

// Confirm lets an act go on that cannot be undone: with yes, or when the person
// at the terminal types word. Nobody at a terminal and no yes is a usage error.
func (c *CLI) Confirm(act, word string, yes bool) error {
	if yes {
		return nil
	}
	if !c.TtyIn {
		return Usagef("this would %s, which cannot be undone", act).Hint("add --yes to confirm")
	}
	c.PrintErrf("This will %s. It cannot be undone.\nType %s to go on: ", act, word)
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && line == "" || strings.TrimSpace(line) != word {
		return Fail(ExitFailed, errors.New("nothing was changed: the answer was not "+word))
	}
	return nil
}

// Progress returns a bar that counts to total on a person's terminal, or a counter when total is less than 0. Where
// nobody watches, or shown is false, it prints nothing.
func (c *CLI) Progress(total int, what string, shown bool) *progressbar.ProgressBar {
	w := Behind(c.Err) // it moves the cursor
	if f, ok := w.(*os.File); !shown || !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(w != io.Discard))
}

// Buffer keeps what is printed from now on from waiting for its reader, and a reader that goes away from ending
// this process. It is for commands that have work in hand; others end with their reader, as is usual. Lines of text
// are written at once, lines of JSON gather.
func (c *CLI) Buffer(text bool) {
	OutliveReader()
	delay, report := lineBufferDelay, reportJSON
	if text {
		delay, report = 0, reportPlain
	}

	if c.Err = (&terminal.Writer{To: Behind(c.Err), Colors: text && c.Color()}); text {
		c.Out = &terminal.Writer{To: Behind(c.Out), Colors: c.Color()}
	} else {
		c.Out = c.Programs()
	}

	out := newLineBuffer(c.Out, delay, report)
	c.buffers = append(c.buffers, out)
	if sameFile(c.Out, c.Err) { // a terminal, or 2>&1: lines of both keep their order
		c.Err = out
	} else {
		err := newLineBuffer(c.Err, 0, reportPlain)
		c.buffers = append(c.buffers, err)
		c.Err = err
	}

	c.Out = out
	log.SetOutput(c.Err) // what net/http has to say
}

// CloseBuffers writes what waits, for as long as an end may wait for readers.
func (c *CLI) CloseBuffers() {
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

// Programs is standard output for JSON, which no escape may change unless a person looks at it.
func (c *CLI) Programs() io.Writer {
	if c.Tty {
		return c.Out
	}
	return Behind(c.Out)
}

// Agree asks a person at the terminal whether to go on. Nobody at a terminal and no yes is a usage error.
func (c *CLI) Agree(question string, yes bool) error {
	if yes {
		return nil
	}
	if !c.TtyIn {
		return Usagef("nothing was changed: nobody is here to confirm it").Hint("add --yes to confirm")
	}
	c.PrintErrf("%s [y/N] ", Plain(question))
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil && line == "" || answer != "y" && answer != "yes" {
		return Failedf("nothing was changed")
	}
	return nil
}

// Printf prints on standard output.
func (c *CLI) Printf(format string, args ...any) (int, error) {
	return fmt.Fprintf(c.Out, format, args...)
}

// Println prints a line on standard output.
func (c *CLI) Println(args ...any) (int, error) { return fmt.Fprintln(c.Out, args...) }

// PrintErrf prints on standard error, for people.
func (c *CLI) PrintErrf(format string, args ...any) (int, error) {
	return fmt.Fprintf(c.Err, format, args...)
}

// PrintErrln prints a line on standard error, for people.
func (c *CLI) PrintErrln(args ...any) (int, error) { return fmt.Fprintln(c.Err, args...) }
