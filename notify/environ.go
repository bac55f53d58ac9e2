package notify

import (
	"slices"
	"strings"
)

// WithoutVariables returns a copy of an environment, entries NAME=value, without
// the variables of systemd's notification protocol. A child process that has them may
// report itself as the service, or expect to be watched.
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
