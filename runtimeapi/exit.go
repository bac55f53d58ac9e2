package runtimeapi

import (
	"strconv"

	"golang.org/x/sys/unix"

	"tendril/supervisor"
)

// Exit is how one process ended.
type Exit = supervisor.Exit

// exitMessage describes an end in the words that Lambda uses.
func exitMessage(e Exit) string {
	switch {
	case e.Err != nil:
		return "Couldn't start the runtime: " + e.Err.Error()
	case e.Signal != "":
		return "Runtime exited with error: signal: " + unix.SignalNum(e.Signal).String()
	case e.Code == 0:
		return "Runtime exited without providing a reason"
	default:
		return "Runtime exited with error: exit status " + strconv.Itoa(e.Code)
	}
}
