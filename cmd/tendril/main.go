package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	_ "time/tzdata"

	"tendril/internal/host/terminal"
)

// version is set at release builds by the linker.
var version = "0.1.0-dev"

func main() {
	// After a panic, or the signal of systemd's watchdog, Go would exit with status 2:
	// that of wrong settings, for which nobody starts us again. So it is a signal.
	debug.SetTraceback("crash")
	hideMemory()
	os.Exit(execute(newCLI(), os.Args[1:]))
}

func execute(c *cli, args []string) int {
	defer c.closeBuffers()
	defer c.end()
	c.out, c.err = &terminal.Writer{To: c.out}, &terminal.Writer{To: c.err}
	if filepath.Base(c.name) == "get-config" { // the link in PATH and in /opt/elasticbeanstalk/bin
		args = append([]string{"get-config"}, args...)
	}
	args, noticed := singleDash(args)
	if noticed {
		printLine(c.err, "long flags with a single dash are understood; the usual form has two")
	}
	c.args = args
	root := newRoot(c)
	root.SetArgs(args)
	err := root.Execute()
	if err := worthSaying(err); err != nil {
		printError(c.err, err)
	}
	return exitCode(err)
}
