package environment

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// refuseRoot does not let an app run as root on a machine of its own, unless
// somebody said so: there it could do anything. In a container it cannot.
func (e *Environment) refuseRoot() error {
	if os.Geteuid() != 0 || e.s.AppUser != "" || e.s.AllowRoot || inContainer() {
		return nil
	}
	return fmt.Errorf("%w: tendril runs as root, and so would the app: name whom it should run as with --app-user, or allow this with --allow-root", ErrSettings)
}

// inContainer reports whether this seems to be a container: one of the marks that
// the engines leave, or a first process that is no system's init.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv", "/run/systemd/container"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	if os.Getenv("container") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" || os.Getpid() == 1 {
		return true
	}
	first, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		return false // not Linux, or nothing to go by
	}
	return !slices.Contains([]string{"systemd", "init", "openrc-init", "runit", "s6-svscan", "dinit"}, strings.TrimSpace(string(first)))
}
