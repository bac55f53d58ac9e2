package base

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
)

// Instances are the flags that choose instances of an environment.
type Instances struct {
	name  string
	fleet bool
}

// AddInstance adds the flag --instance.
func AddInstance(cmd *cobra.Command) *Instances {
	f := &Instances{}
	cmd.Flags().StringVar(&f.name, "instance", "", "Name or ID of another instance to read from; 'tendril instances' lists them.")
	return f
}

// AddInstances adds the flags --instance and --fleet.
func AddInstances(cmd *cobra.Command) *Instances {
	f := AddInstance(cmd)
	cmd.Flags().BoolVar(&f.fleet, "fleet", false, "Read from all instances of the environment.")
	cmd.MarkFlagsMutuallyExclusive("instance", "fleet")
	return f
}

// Any reports whether one of the flags is set.
func (f *Instances) Any() bool { return f.name != "" || f.fleet }

// Client returns a client of the chosen instance, by default the answering one.
func (f *Instances) Client(ctx context.Context, c *api.Client) (*api.Client, error) {
	chosen, err := f.Choose(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.On(chosen[0].ID), nil
}

// Choose returns the chosen instances, by default the answering one.
func (f *Instances) Choose(ctx context.Context, c *api.Client) ([]api.KnownInstance, error) {
	if !f.Any() {
		return []api.KnownInstance{{This: true}}, nil
	}
	known, err := c.Instances(ctx)
	if err != nil {
		return nil, err
	}

	all := known.Readable()
	if !f.fleet {
		return chooseInstance(f.name, all)
	}
	if len(all) == 0 {
		return []api.KnownInstance{{This: true, Name: known.Instances[0].Name}}, nil
	}
	return all, nil
}

func chooseInstance(name string, all []api.KnownInstance) ([]api.KnownInstance, error) {
	var names []string
	var similar []api.KnownInstance
	for _, one := range all {
		if one.ID == name || one.Name == name {
			return []api.KnownInstance{one}, nil
		}
		names = append(names, one.Name)
		if strings.Contains(one.Name, name) {
			similar = append(similar, one)
		}
	}

	choices := "choose one of " + strings.Join(names, ", ")
	switch {
	case len(similar) == 1:
		return similar, nil
	case len(similar) > 1:
		return nil, Usagef("--instance %q is ambiguous", name).Hint(choices)
	case len(all) == 0:
		return nil, NotFoundf("instance %q not found: this instance knows no others", name).Hint("'tendril instances' shows why")
	}
	return nil, NotFoundf("instance %q not found", name).Hint(choices)
}

// PrintUnanswered prints why instances have not answered. If none has answered, it returns the first error.
func PrintUnanswered[T any](c *CLI, answers []api.FromInstance[T]) error {
	answered := slices.ContainsFunc(answers, func(a api.FromInstance[T]) bool { return a.Err == nil })
	if !answered {
		first := &answers[0]
		if why := first.Instance.NoDetails; why != "" {
			return Conflictf("no details of this instance: %s", why)
		}
		return first.Err
	}
	for i := range answers {
		if err := answers[i].Err; err != nil {
			c.PrintErrf("%s: %s\n", Plain(answers[i].Instance.Name), Plain(err.Error()))
		}
	}
	return nil
}
