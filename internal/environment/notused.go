package environment

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"tendril/internal/app"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/cron/tasks"
)

// NotUsed lists the parts of the bundle that these options ignore, each with its reason and an alternative.
func NotUsed(opts *Options) []bundle.Finding {
	b := opts.Bundle
	if b == nil {
		return nil
	}
	found := slices.Concat(b.Unsupported, opts.Config.NotUsed)
	found = slices.DeleteFunc(found, func(f bundle.Finding) bool {
		return f.File == bundle.RequirementsFile && b.RequirementsInstalled(opts.searchPath())
	})
	if opts.AppliesMachine() {
		found = append(found, b.Machine.NotUsed...)
	} else {
		found = append(found, b.Machine.Sections...)
	}
	found = append(found, opts.unrunSteps()...)

	for _, p := range b.Environment() {
		if what := opts.Withheld(p); what != "" {
			found = append(found, b.Finding(p.File, p.Line, what))
		}
	}
	for _, link := range b.Links {
		if what := opts.brokenLink(link); what != "" {
			found = append(found, b.Finding(link.File, link.Line, what))
		}
	}

	slices.SortStableFunc(found, func(a, b bundle.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return found
}

// AppliesMachine reports whether the bundle's machine sections are applied.
func (o *Options) AppliesMachine() bool {
	return o.Bundle != nil && len(o.Command) == 0 && o.HasApp() && o.Config.MachineSections == config.MachineApply
}

func refuseMachine(b *bundle.Bundle) error {
	if err := b.Machine.Err(); err != nil || len(b.Machine.Configs) == 0 || os.Geteuid() == 0 {
		return err
	}
	return errors.New("--machine-sections=apply changes the machine, which requires root: run tendril as root, or " +
		"remove the option")
}

// MissingPrograms lists programs that the bundle runs but this machine lacks.
func (o *Options) MissingPrograms() []bundle.Problem {
	if o.Bundle == nil || len(o.Command) > 0 || !o.HasApp() {
		return nil
	}
	return o.Bundle.MissingPrograms(o.searchPath(), o.AppliesMachine() && os.Geteuid() == 0)
}

func (o *Options) searchPath() string {
	for _, entry := range app.Environ(o.AppEnv, o.Bundle, func(bundle.Link) string { return "" }, 0, app.Queue{}) {
		if value, found := strings.CutPrefix(entry, "PATH="); found {
			return value
		}
	}
	return ""
}

func (o *Options) unrunSteps() (found []bundle.Finding) {
	why := ": the app is not started here"
	switch {
	case len(o.Command) > 0:
		why = ": a command was given in place of the bundle; name the folder without a command to run the bundle"
	case o.HasApp():
		return nil
	}

	b := o.Bundle
	if len(b.Build) > 0 {
		found = append(found, bundle.Finding{File: "Buildfile", What: "not run" + why})
	}
	if len(b.ContainerCommands) > 0 {
		found = append(found, bundle.Finding{File: b.ContainerCommands[0].File, Line: b.ContainerCommands[0].Line,
			What: "the container commands are not run" + why})
	}
	if len(b.Hooks)+len(b.ConfigHooks) > 0 {
		found = append(found, bundle.Finding{File: ".platform", What: "the hooks are not run" + why})
	}

	var others []string
	for _, p := range b.Processes {
		if p.Name != bundle.MainProcess {
			others = append(others, p.Name)
		}
	}
	if len(others) > 0 {
		found = append(found, bundle.Finding{File: "Procfile", What: strings.Join(others, ", ") + " not run" + why})
	}
	return found
}

// Withheld explains why the app does not get an environment property of the bundle; "" if it gets the property, or if
// the variable is PORT or already set.
func (o *Options) Withheld(p bundle.Setting) string {
	option, isOption := config.Lookup(p.Option)
	switch {
	case p.Option == "PORT" || app.HasVariable(o.AppEnv, p.Option):
		return ""
	case o.passes(p.Option + "=" + p.Value):
		return ""
	case isOption && option.Variable == p.Option:
		return p.Option + " is a variable of tendril itself, neither read from a bundle nor given to the app: set it " +
			"in tendril's environment"
	}
	return p.Option + " has no effect: the app gets another value from tendril, or none"
}

// passes reports whether the app gets a NAME=value string unchanged.
func (o *Options) passes(variable string) bool {
	const anyValue = "-"
	q := app.Queue{Name: anyValue, URL: anyValue}
	if len(o.Config.Queues) > 0 && o.Config.Queues[0].Backend == config.BackendEmbedded {
		q.Endpoint = anyValue
	}
	return slices.Contains(app.Environ([]string{variable}, nil, nil, 0, q), variable)
}

func (o *Options) brokenLink(link bundle.Link) string {
	if app.HasVariable(o.AppEnv, link.Variable) {
		return ""
	}
	if slices.ContainsFunc(o.Bundle.Environment(), func(p bundle.Setting) bool { return p.Option == link.Variable }) {
		return "the link " + link.Variable + " has no effect: the environment property of that name takes precedence"
	}
	if o.LinkedQueue(link) == "" {
		return fmt.Sprintf("the queue of the environment %s is unknown here, so %s is not set: set it to the URL of "+
			"that queue in tendril's environment, or as an environment property",
			link.Environment, link.Variable)
	}
	return ""
}

// LinkedQueue returns the queue that a link in env.yaml refers to: the queue with the environment's name or, for this
// environment, the first; "" if unknown.
func (o *Options) LinkedQueue(link bundle.Link) string {
	var names []string
	for i := range o.Config.Queues {
		names = append(names, o.Config.Queues[i].Name)
	}
	if file := o.CronFile(); file != "" && o.Config.AnyEmbedded() {
		if cron, err := tasks.Read(file); err == nil {
			for i := range cron.Tasks {
				names = append(names, cron.Tasks[i].Queue)
			}
		}
	}
	return linkedQueue(&o.Config.Settings, names, link.Environment)
}
