package main

import (
	"path/filepath"
	"tendril/internal/host/terminal"
)

func Execute(c *CLI, args []string) int {
	defer c.CloseBuffers()
	defer c.End()
	c.Out, c.Err = &terminal.Writer{To: c.Out}, &terminal.Writer{To: c.Err}
	if filepath.Base(c.Name) == "get-config" { // the link in PATH and in /opt/elasticbeanstalk/bin
		args = append([]string{"get-config"}, args...)
	}
	args, noticed := SingleDash(args)
	if noticed {
		PrintLine(c.Err, "long flags with a single dash are understood; the usual form has two")
	}
	c.Args = args
	root := NewRoot(c)
	root.SetArgs(args)
	err := root.Execute()
	if err := WorthSaying(err); err != nil {
		PrintError(c.Err, err)
	}
	return ExitCode(err)
}
