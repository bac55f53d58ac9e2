package machine

import (
	"context"
	"fmt"
	"strings"

	"tendril/internal/bundle"
)

// Step is one thing that is done to the machine.
type Step struct {
	// Section is the key of the configuration file: "packages", "groups" and so on.
	Section string
	// Name is the key below it, of packages with the manager in front: "yum gcc".
	Name string
	// Text says what is to be, for people; "" where the name says all. It holds no contents, which may be secret.
	Text string
	bundle.Place

	apply func(ctx context.Context, a *Applier) (Outcome, error)
}

// Title names the step among those of a bundle.
func (s *Step) Title() string { return s.Section + " " + s.Name }

// Plan returns the steps for a bundle in their order: the configuration files by name, and in each the sections in
// the order of cfn-init.
func Plan(m *bundle.Machine) (steps []Step) {
	for i := range m.Configs {
		c := &m.Configs[i]
		for _, p := range c.Packages {
			steps = append(steps, Step{"packages", p.Manager + " " + p.Name, strings.Join(p.Versions, ", "), p.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.install(ctx, &p) }})
		}
		for _, g := range c.Groups {
			steps = append(steps, Step{"groups", g.Name, numbered("gid", g.GID), g.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.group(ctx, &g) }})
		}
		for _, u := range c.Users {
			steps = append(steps, Step{"users", u.Name, numbered("uid", u.UID), u.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.user(ctx, &u) }})
		}
		for _, s := range c.Sources {
			steps = append(steps, Step{"sources", s.Dir, "from " + s.URL, s.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.source(ctx, &s) }})
		}
		for _, f := range c.Files {
			a := fileText(&f)
			steps = append(steps, Step{"files", f.Path, a, f.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.file(ctx, &f) }})
		}
		for _, cmd := range c.Commands {
			steps = append(steps, Step{"commands", cmd.Name, cmd.Text(), bundle.Place{File: cmd.File, Line: cmd.Line},
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.command(ctx, &cmd) }})
		}
		for _, s := range c.Services {
			steps = append(steps, Step{"services", s.Name, serviceText(&s), s.Place,
				func(ctx context.Context, a *Applier) (Outcome, error) { return a.service(ctx, &s) }})
		}
	}
	return steps
}

func numbered(what, number string) string {
	if number == "" {
		return ""
	}
	return what + " " + number
}

func fileText(f *bundle.MachineFile) string {
	var parts []string
	switch {
	case f.IsLink:
		parts = append(parts, "link to "+f.Content)
	case f.Source != "":
		parts = append(parts, "from "+f.Source)
	default:
		parts = append(parts, fmt.Sprintf("%d bytes", len(f.Content)))
	}
	if f.HasMode && !f.IsLink {
		parts = append(parts, fmt.Sprintf("mode %04o", modeBits(f.Mode)))
	}
	if f.Owner != "" || f.Group != "" {
		parts = append(parts, strings.TrimSuffix("owner "+f.Owner+":"+f.Group, ":"))
	}
	return strings.Join(parts, ", ")
}

func serviceText(s *bundle.Service) string {
	var parts []string
	say := func(is *bool, yes, no string) {
		switch {
		case is == nil:
		case *is:
			parts = append(parts, yes)
		default:
			parts = append(parts, no)
		}
	}
	say(s.Enabled, "enabled", "disabled")
	say(s.Running, "running", "stopped")
	if len(s.RestartFor) > 0 {
		parts = append(parts, "restarted for "+strings.Join(s.RestartFor, ", "))
	}
	return strings.Join(parts, ", ")
}
