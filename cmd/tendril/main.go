package main

import (
	"os"
	"runtime/debug"
	_ "time/tzdata"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/cli/run"
)

// The linker sets version in release builds.
var version = "0.1.0-dev"

func main() {
	// By default Go exits with status 2 after a panic or the signal of systemd's watchdog. That is the status of
	// invalid settings, after which we would not be restarted. So abort with a signal.
	debug.SetTraceback("crash")
	run.HideMemory()
	os.Exit(cli.Execute(base.New(version), os.Args[1:]))
}
