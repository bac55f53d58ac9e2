package machine

import (
	"context"
	"fmt"
	"strings"

	"tendril/internal/bundle"
)

// Step is one change to the machine.
type Step struct {
	Section string
	// Name is the entry's key; a package's includes the manager: "yum gcc".
	Name string
	// Text describes the desired state, without the contents of files, which may be secret; may be "".
	Text  string
	Place bundle.Place

	apply func(ctx context.Context, a *Applier) (Outcome, error)
}

// Title identifies the step within a bundle.
func (s *Step) Title() string { return s.Section + " " + s.Name }

// Plan returns all steps: configuration files in name order, and the sections of each in cfn-init's order.
func Plan(m *bundle.Machine) (steps []Step) {
	for i := range m.Configs {
		c := &m.Configs[i]
		for _, p := range c.Packages {
			name := p.Manager + " " + p.Name
			steps = append(steps, Step{"packages", name, strings.Join(p.Versions, ", "), p.Place, applying(&p, (*Applier).install)})
		}

		for _, g := range c.Groups {
			steps = append(steps, Step{"groups", g.Name, numbered("gid", g.GID), g.Place, applying(&g, (*Applier).group)})
		}

		for _, u := range c.Users {
			steps = append(steps, Step{"users", u.Name, numbered("uid", u.UID), u.Place, applying(&u, (*Applier).user)})
		}

		for _, s := range c.Sources {
			steps = append(steps, Step{"sources", s.Dir, "from " + s.URL, s.Place, applying(&s, (*Applier).source)})
		}

		for _, f := range c.Files {
			steps = append(steps, Step{"files", f.Path, fileText(&f), f.Place, applying(&f, (*Applier).file)})
		}

		for _, command := range c.Commands {
			steps = append(steps, Step{"commands", command.Name, command.Text(), command.Place, applying(&command, (*Applier).command)})
		}

		for _, s := range c.Services {
			steps = append(steps, Step{"services", s.Name, serviceText(&s), s.Place, applying(&s, (*Applier).service)})
		}
	}

	return steps
}

func applying[T any](entry *T, apply func(*Applier, context.Context, *T) (Outcome, error)) func(context.Context, *Applier) (Outcome, error) {
	return func(ctx context.Context, a *Applier) (Outcome, error) { return apply(a, ctx, entry) }
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
