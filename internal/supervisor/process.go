package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Process is a program to run. Exactly one of Shell and Argv must be set.
type Process struct {
	// Name is unique: 1 to 64 ASCII letters, digits, hyphens and underscores.
	Name string
	// Shell is a command line for /bin/sh -c. A simple command replaces the shell, so that signals reach the program.
	Shell string
	// Argv is run without a shell. A program name without a slash is looked up in Env's PATH; other relative paths are
	// relative to Dir.
	Argv []string
	Dir  string
	// Env is the complete environment as NAME=value.
	Env []string
	// Detached lets descendants outside the process group outlive tendril. Only a [Runner] supports it.
	Detached bool
	// MayFinish means that an exit with status 0 needs no restart.
	MayFinish bool
	// Port must be free before each start; 0 means that the process is not a server.
	Port int

	// User is a name or ID, optionally with a group ("nobody", "1000:1000"). Without one, the user's supplementary
	// groups apply. HOME, USER and LOGNAME override Env. "" means tendril's own user; others require root.
	User string
	// Limits have the names of /etc/security/limits.conf ("nofile", "core", ...). A value is a number in the resource's
	// unit, "unlimited", or "soft:hard". Limits require Linux and /bin/sh.
	Limits map[string]string
	// OneOutput merges stderr into stdout, in the order written.
	OneOutput bool
	// OutputWait is how long descendants may keep the output open after the process has exited; 0 means 500 ms.
	OutputWait time.Duration
	// Check's zero value means a TCP connection to Port or, if Port is 0 too, that the process is ready immediately.
	Check Check
}

func (p *Process) check() Check {
	if p.Check.IsZero() && p.Port != 0 {
		return Check{Port: p.Port}
	}
	return p.Check
}

func (p *Process) validate() error {
	switch {
	case !validName(p.Name):
		return fmt.Errorf("invalid process name %q: use 1 to 64 of A-Z a-z 0-9 _ and -", p.Name)
	case p.Shell == "" && len(p.Argv) == 0:
		return fmt.Errorf("process %s has no command", p.Name)
	case p.Shell != "" && len(p.Argv) > 0:
		return fmt.Errorf("process %s has both a shell line and arguments: use only one of them", p.Name)
	case len(p.Argv) > 0 && p.Argv[0] == "":
		return fmt.Errorf("process %s has an empty program name", p.Name)
	case p.Port < 0 || p.Port > 65535:
		return fmt.Errorf("process %s: invalid port %d: use 1 to 65535, or 0 for a process that does not listen", p.Name, p.Port)
	}

	if strings.ContainsRune(p.Shell+strings.Join(p.Argv, ""), 0) {
		return fmt.Errorf("process %s: a command cannot contain a NUL byte", p.Name)
	}

	_, limitsErr := parseLimits(p.Limits)
	if err := cmp.Or(p.Check.validate(), limitsErr, validateUser(p.User)); err != nil {
		return fmt.Errorf("process %s: %w", p.Name, err)
	}
	return p.validateEnv()
}

// validateEnv's errors contain no values, because they may be secret.
func (p *Process) validateEnv() error {
	for i, entry := range p.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return fmt.Errorf("process %s: entry %d of the environment has no name: use NAME=value", p.Name, i+1)
		}
		if strings.ContainsRune(entry, 0) {
			return fmt.Errorf("process %s: the variable %q contains a NUL byte", p.Name, name)
		}
	}
	return nil
}

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
			return fmt.Errorf("duplicate process name %s: give each its own name", p.Name)
		}
		names[p.Name] = true
		if other := ports[p.Port]; p.Port != 0 && other != "" {
			return fmt.Errorf("processes %s and %s have the same port %d: give each its own", other, p.Name, p.Port)
		}
		ports[p.Port] = p.Name
	}

	return nil
}

func validName(name string) bool {
	isOther := func(c rune) bool { return !isNameCharacter(c) && c != '-' }
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, isOther)
}

func isNameCharacter(c rune) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
