package main

import (
	"os"
	"runtime/debug"
	_ "time/tzdata"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/cli/run"
)

// version is set at release builds by the linker.
var version = "0.1.0-dev"

func main() {
	// After a panic, or the signal of systemd's watchdog, Go would exit with status 2:
	// that of wrong settings, for which nobody starts us again. So it is a signal.
	debug.SetTraceback("crash")
	run.HideMemory()
	os.Exit(cli.Execute(base.New(version), os.Args[1:]))
}
