package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

// System runs programs on the machine.
type System interface {
	// Run returns the standard output of a quiet call, or an error if the exit status is not 0.
	Run(ctx context.Context, c *Call) (output string, err error)
	// Has reports whether a program is in PATH or, for an absolute path, whether the file exists.
	Has(program string) bool
}

// Call is one execution of a program. Exactly one of Argv and Shell is set.
type Call struct {
	Argv  []string
	Shell string
	Dir   string
	// Env is the complete environment if HasEnv is true; otherwise it is added to the deployment's.
	Env    []string
	HasEnv bool
	// Quiet means that the call is a query, whose output is returned instead of logged.
	Quiet bool
}

// Outcome is the result of a step.
type Outcome string

// The outcomes of steps.
const (
	Changed   Outcome = "changed"
	unchanged Outcome = "unchanged"
	skipped   Outcome = "skipped" // the command's test failed
	ignored   Outcome = "failed, its errors are ignored"
)

func changedIf(is bool) Outcome {
	if is {
		return Changed
	}
	return unchanged
}

// Applier applies the machine steps of a bundle. It is not safe for concurrent use.
type Applier struct {
	system      System
	changed     []string // titles of steps
	files       []string // paths with their own step, which sets the permissions
	aptUpdated  bool
	unitsLoaded int // the number of changed steps at the last daemon-reload
}

// NewApplier returns an [Applier] for the steps of one bundle.
func NewApplier(system System, steps []Step) *Applier {
	a := &Applier{system: system}
	for i := range steps {
		if steps[i].Section == "files" {
			a.files = append(a.files, steps[i].Name)
		}
	}
	return a
}

// Apply applies a step.
func (a *Applier) Apply(ctx context.Context, s *Step) (Outcome, error) {
	outcome, err := s.apply(ctx, a)
	if err == nil && outcome != unchanged && outcome != skipped {
		a.changed = append(a.changed, s.Title())
	}
	return outcome, err
}

func (a *Applier) run(ctx context.Context, argv ...string) error {
	if _, err := a.system.Run(ctx, &Call{Argv: argv}); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv[:min(len(argv), 3)], " "), err)
	}
	return nil
}

func (a *Applier) query(ctx context.Context, argv ...string) (output string, ok bool) {
	output, err := a.system.Run(ctx, &Call{Argv: argv, Quiet: true})
	return strings.TrimSpace(output), err == nil
}

func (a *Applier) command(ctx context.Context, c *bundle.Command) (Outcome, error) {
	call := Call{Argv: c.Argv, Shell: c.Shell, Dir: c.FolderOf("/"), Env: c.Env, HasEnv: len(c.Env) > 0}
	if c.Test != "" {
		test := call
		test.Argv, test.Shell = nil, c.Test
		if _, err := a.system.Run(ctx, &test); err != nil {
			return skipped, ctx.Err()
		}
	}
	_, err := a.system.Run(ctx, &call)
	if err != nil && c.IgnoreErrors && ctx.Err() == nil {
		return ignored, nil
	}
	return Changed, err
}

func (a *Applier) group(ctx context.Context, g *bundle.Group) (Outcome, error) {
	if entry, ok := a.query(ctx, "getent", "group", g.Name); ok {
		if current := idOf(entry); g.GID != "" && g.GID != current {
			return unchanged, fmt.Errorf("group %s exists with GID %s, not %s", g.Name, current, g.GID)
		}
		return unchanged, nil
	}
	argv := []string{"groupadd", "-r"}
	if g.GID != "" {
		argv = append(argv, "-g", g.GID)
	}
	return Changed, a.run(ctx, append(argv, g.Name)...)
}

func (a *Applier) user(ctx context.Context, u *bundle.User) (Outcome, error) {
	if entry, ok := a.query(ctx, "getent", "passwd", u.Name); ok {
		if current := idOf(entry); u.UID != "" && u.UID != current {
			return unchanged, fmt.Errorf("user %s exists with UID %s, not %s", u.Name, current, u.UID)
		}
		return a.joinGroups(ctx, u)
	}

	argv := []string{"useradd", "-M", "-r", "--shell", a.noLogin()}
	for _, option := range []struct{ name, value string }{{"-d", u.Home}, {"-u", u.UID},
		{"-G", strings.Join(u.Groups, ",")}} {
		if option.value != "" {
			argv = append(argv, option.name, option.value)
		}
	}

	return Changed, a.run(ctx, append(argv, u.Name)...)
}

func (a *Applier) joinGroups(ctx context.Context, u *bundle.User) (Outcome, error) {
	in, _ := a.query(ctx, "id", "-Gn", u.Name)
	missing := slices.DeleteFunc(slices.Clone(u.Groups), func(group string) bool {
		return slices.Contains(strings.Fields(in), group)
	})
	if len(missing) == 0 {
		return unchanged, nil
	}
	return Changed, a.run(ctx, "usermod", "-a", "-G", strings.Join(missing, ","), u.Name)
}

func (a *Applier) noLogin() string {
	for _, path := range []string{"/sbin/nologin", "/usr/sbin/nologin"} {
		if a.system.Has(path) {
			return path
		}
	}
	return "/bin/false"
}

func idOf(entry string) string {
	if fields := strings.Split(entry, ":"); len(fields) > 2 {
		return fields[2]
	}
	return ""
}
