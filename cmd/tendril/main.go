package main

import (
	"os"
	"runtime/debug"
	_ "time/tzdata"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/cli/run"
)

// version is set by the linker in release builds.
var version = "0.1.0-dev"

func main() {
	// After a panic or the signal of systemd's watchdog, Go exits with status 2 by default, which here means invalid
	// settings, after which service managers do not restart tendril. So abort with a signal instead.
	debug.SetTraceback("crash")
	run.HideMemory()
	os.Exit(cli.Execute(base.New(version), os.Args[1:]))
}
