package cli

import (
	"path/filepath"

	"tendril/internal/cli/base"
	"tendril/internal/host/terminal"
)

// Execute runs a command line and returns its exit status.
func Execute(c *base.CLI, args []string) int {
	defer c.CloseBuffers()
	defer c.End()
	c.Out, c.Err = &terminal.Writer{To: c.Out}, &terminal.Writer{To: c.Err}
	if filepath.Base(c.Name) == "get-config" { // a link in PATH or in /opt/elasticbeanstalk/bin
		args = append([]string{"get-config"}, args...)
	}

	args, noticed := base.SingleDash(args)
	if noticed {
		base.PrintLine(c.Err, "long flags usually have two dashes; one is accepted")
	}

	c.Args = args
	root := NewRoot(c)
	root.SetArgs(args)
	err := root.Execute()
	if err := base.WithoutReaderGone(err); err != nil {
		base.PrintError(c.Err, err)
	}

	return base.ExitCode(err)
}
