package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// cli is the world of one run of the command, so that tests can give it
// another.
type cli struct {
	in       io.Reader
	out, err io.Writer
	// environ is the environment as NAME=value.
	environ []string
	// tty tells that out is a terminal that a person reads; ttyIn that in is
	// one that a person types at.
	tty, ttyIn bool
	// buffers hold what is printed once [cli.buffer] was called.
	buffers []*lineBuffer
}

// newCLI is the world of this process.
func newCLI() *cli {
	return &cli{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(),
		tty: term.IsTerminal(int(os.Stdout.Fd())), ttyIn: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// color reports whether colours may be used, as NO_COLOR and TERM say.
func (c *cli) color() bool {
	return c.tty && c.env("NO_COLOR") == "" && c.env("TERM") != "dumb"
}

// env returns a variable, "" when it is not set.
func (c *cli) env(name string) string {
	value := ""
	for _, entry := range c.environ {
		if n := len(name); len(entry) > n && entry[:n] == name && entry[n] == '=' {
			value = entry[n+1:]
		}
	}
	return value
}
