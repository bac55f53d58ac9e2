package base

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tendril/internal/config/yamlfile"
	"tendril/internal/host/terminal"
)

// CLI holds everything that one run of the command reads and writes, so that tests can substitute it.
type CLI struct {
	Name       string // as invoked
	Version    string
	In         io.Reader
	Out, Err   io.Writer
	Args       []string
	Environ    []string
	Tty, TtyIn bool
	// Free maps options to free addresses and ports; see [environment.Options.FreePorts].
	Free    map[string]string
	warned  []yamlfile.Problem
	buffers []*lineBuffer
	closers []func()

	unbufferedOut, unbufferedErr io.Writer // set by Buffer
}

// AtEnd registers a function for [CLI.End].
func (c *CLI) AtEnd(end func()) { c.closers = append(c.closers, end) }

// End calls the functions registered with AtEnd, in reverse order.
func (c *CLI) End() {
	for _, end := range slices.Backward(c.closers) {
		end()
	}
	c.closers = nil
}

// New returns a CLI for this process.
func New(version string) *CLI {
	return &CLI{
		Name: os.Args[0], Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
		Tty: term.IsTerminal(int(os.Stdout.Fd())), TtyIn: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// Color reports whether standard output is a terminal on which NO_COLOR and TERM permit colors.
func (c *CLI) Color() bool {
	return c.Tty && c.Env("NO_COLOR") == "" && c.Env("TERM") != "dumb"
}

// Env returns the value of an environment variable, or "".
func (c *CLI) Env(name string) string {
	value, _ := c.LookUp(name)
	return value
}

// LookUp returns the value of an environment variable. If it is set more than once, the last value counts.
func (c *CLI) LookUp(name string) (value string, found bool) {
	for _, entry := range slices.Backward(c.Environ) {
		if value, found = strings.CutPrefix(entry, name+"="); found {
			return value, true
		}
	}
	return "", false
}

// Confirm returns an error unless yes is true or the user types word. act completes "this would". Without a terminal, the
// error suggests flags.
func (c *CLI) Confirm(act, word, flags string, yes bool) error {
	if yes {
		return nil
	}
	if !c.TtyIn {
		return Usagef("this would %s, which cannot be undone", act).Hint("add " + flags + " to confirm")
	}
	c.PrintErrf("This will %s. It cannot be undone.\nType %s to confirm: ", act, word)
	if c.ReadAnswer() != word {
		return Failedf("not confirmed: the answer was not %s", word)
	}
	return nil
}

// ReadAnswer reads a line from standard input.
func (c *CLI) ReadAnswer() string {
	line, _ := bufio.NewReader(c.In).ReadString('\n')
	return strings.TrimSpace(line)
}

// Progress returns a progress bar, or a counter if total is negative. It prints only to a terminal, if shown is true.
func (c *CLI) Progress(total int, what string, shown bool) *progressbar.ProgressBar {
	w := Unescaped(c.Err) // the bar writes control sequences
	if f, ok := w.(*os.File); !shown || !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(w != io.Discard))
}

// Buffer keeps a slow or absent reader from blocking or killing the process. Text is written immediately, JSON in
// batches. A further call replaces the buffers.
func (c *CLI) Buffer(text bool) {
	OutliveReader()
	if len(c.buffers) == 0 {
		c.unbufferedOut = c.Out
		c.unbufferedErr = c.Err
	}
	c.CloseBuffers()
	c.Out = c.unbufferedOut
	c.Err = c.unbufferedErr

	stdout := newLineBuffer(c.DataOut(), lineBufferDelay, reportJSON)
	if text {
		escaping := &terminal.Writer{To: Unescaped(c.Out), Colors: c.Color()}
		stdout = newLineBuffer(escaping, 0, reportPlain)
	}
	c.buffers = []*lineBuffer{stdout}

	stderr := stdout // both are a terminal, or 2>&1: keep the order of lines
	if !sameFile(c.Out, c.Err) {
		escaping := &terminal.Writer{To: Unescaped(c.Err), Colors: text && c.Color()}
		stderr = newLineBuffer(escaping, 0, reportPlain)
		c.buffers = append(c.buffers, stderr)
	}

	c.Out = stdout
	c.Err = stderr
	log.SetOutput(c.Err) // for net/http
}

// CloseBuffers flushes the buffers. It waits up to a second for readers.
func (c *CLI) CloseBuffers() {
	var written []<-chan struct{}
	for _, b := range c.buffers {
		written = append(written, b.Close())
	}
	late := time.After(lineBufferPatience)
	for _, w := range written {
		select {
		case <-w:
		case <-late:
			return
		}
	}
}

// DataOut returns the writer for JSON and YAML: standard output, without escaping unless it is a terminal.
func (c *CLI) DataOut() io.Writer {
	if c.Tty {
		return c.Out
	}
	return Unescaped(c.Out)
}

// Printf prints to standard output.
func (c *CLI) Printf(format string, args ...any) (int, error) {
	return fmt.Fprintf(c.Out, format, args...)
}

// Println prints a line to standard output.
func (c *CLI) Println(args ...any) (int, error) { return fmt.Fprintln(c.Out, args...) }

// PrintErrf prints to standard error.
func (c *CLI) PrintErrf(format string, args ...any) (int, error) {
	return fmt.Fprintf(c.Err, format, args...)
}

// PrintErrln prints a line to standard error.
func (c *CLI) PrintErrln(args ...any) (int, error) { return fmt.Fprintln(c.Err, args...) }
