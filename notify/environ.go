package notify

import (
	"slices"
	"strings"
)

// WithoutVariables returns a copy of an environment, entries NAME=value, without
// the variables by which systemd is spoken to. A program that is started with
// them may take itself for the service and say that it is ready, or expect to
// be watched.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID":
			return true
		}
		return false
	})
}
