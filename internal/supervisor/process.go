package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Process is one long-running program to run. Exactly one of Shell and Argv
// says what to run.
type Process struct {
	// Name labels the process in events, output and errors: 1 to 64 of
	// A-Z a-z 0-9 _ and -, and unlike every other name ("web").
	Name string
	// Shell is one command line, run by /bin/sh -c. A single simple command
	// replaces the shell, so that signals and exit statuses are its own.
	Shell string
	// Argv is a program and its arguments, run without a shell. A program name
	// without a slash is looked up in the PATH of Env; one with a slash that
	// is not absolute counts from Dir.
	Argv []string
	// Dir is the working directory; "" is the caller's own.
	Dir string
	// Env is the complete environment as NAME=value: nothing is inherited.
	// Empty means an empty environment.
	Env []string
	// Detached: what leaves the process group is a service of the machine, which outlives us. It is used by a
	// [Runner] alone.
	Detached bool
	// MayFinish: an end with status 0 is no failure, and no restart follows it.
	MayFinish bool
	// Port is the TCP port on which the process will listen, 1 to 65535; it is
	// checked to be free before every start. 0 means not a server.
	Port int
	// AnyListener lets another program serve Port in the place of the process,
	// such as the proxy of a container engine. Without it the process is not
	// ready while somebody listens there whom it certainly did not start.
	AnyListener bool
	// User is whom to run as: a name, a number, or either with a group after a
	// colon ("nobody", "1000:1000"). The user's further groups are joined unless
	// a group is named. HOME, USER and LOGNAME are set, whatever Env says. ""
	// is the user of this program; another needs root.
	User string
	// Limits are resource limits by their names in /etc/security/limits.conf
	// ("nofile", "core", "nproc", "as", "fsize", ...): a number in the system's
	// own unit (bytes, seconds, files), "unlimited", or two of these as
	// "soft:hard". They hold from the first instruction on. Linux only; they
	// need /bin/sh.
	Limits map[string]string
	// OneOutput passes on what goes to stderr as stdout, in the order in which it is written.
	OneOutput bool
	// OutputWait is how long what the process leaves behind may hold its output open once
	// it has ended; 0 means 500 ms.
	OutputWait time.Duration
	// Check says when the process is ready. The zero value is a TCP connection
	// to Port, or, where Port is 0 too, "ready as soon as it was started".
	Check Check
}

// check is Check with its default filled in.
func (p *Process) check() Check {
	if p.Check.IsZero() && p.Port != 0 {
		return Check{Port: p.Port}
	}
	return p.Check
}

// validate says what is wrong with p alone.
func (p *Process) validate() error {
	switch {
	case !validName(p.Name):
		return fmt.Errorf("process name %q: use 1 to 64 of A-Z a-z 0-9 _ and -", p.Name)
	case p.Shell == "" && len(p.Argv) == 0:
		return fmt.Errorf("process %s: nothing to run: give a command", p.Name)
	case p.Shell != "" && len(p.Argv) > 0:
		return fmt.Errorf("process %s: has both a shell line and arguments: give only one of them", p.Name)
	case len(p.Argv) > 0 && p.Argv[0] == "":
		return fmt.Errorf("process %s: the program's name is empty", p.Name)
	case p.Port < 0 || p.Port > 65535:
		return fmt.Errorf("process %s: port %d: use 1 to 65535, or 0 for a process that does not listen", p.Name, p.Port)
	}

	if strings.ContainsRune(p.Shell+strings.Join(p.Argv, ""), 0) {
		return fmt.Errorf("process %s: a command cannot contain a NUL byte", p.Name)
	}

	if err := p.Check.validate(); err != nil {
		return fmt.Errorf("process %s: %w", p.Name, err)
	}
	if err := p.validateConfinement(); err != nil {
		return fmt.Errorf("process %s: %w", p.Name, err)
	}
	return p.validateEnv()
}

// validateConfinement checks whom it runs as and within which limits.
func (p *Process) validateConfinement() error {
	if _, err := parseLimits(p.Limits); err != nil {
		return err
	}
	return validateUser(p.User)
}

// validateEnv names a bad variable but never prints a value: it may be secret.
func (p *Process) validateEnv() error {
	for i, entry := range p.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return fmt.Errorf("process %s: entry %d of the environment has no name: write NAME=value", p.Name, i+1)
		}
		if strings.ContainsRune(entry, 0) {
			return fmt.Errorf("process %s: the variable %q contains a NUL byte, which environment variables cannot "+
				"contain", p.Name, name)
		}
	}
	return nil
}

// validateAll checks every process and what they must not share.
func validateAll(procs []Process) error {
	if len(procs) == 0 {
		return errors.New("no process to run: give at least one")
	}
	names, ports := map[string]bool{}, map[int]string{}
	for i := range procs {
		p := &procs[i]
		if err := p.validate(); err != nil {
			return err
		}
		if names[p.Name] {
			return fmt.Errorf("two processes are called %s: give each its own name", p.Name)
		}
		names[p.Name] = true
		if other := ports[p.Port]; p.Port != 0 && other != "" {
			return fmt.Errorf("processes %s and %s both want port %d: give each its own", other, p.Name, p.Port)
		}
		ports[p.Port] = p.Name
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, c := range []byte(name) {
		if !isNameByte(c) && c != '-' {
			return false
		}
	}
	return true
}

// isNameByte reports whether c may stand in the name of a shell variable.
func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
