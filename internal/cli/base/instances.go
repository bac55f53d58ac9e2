package base

import (
	"context"
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
	cmd.Flags().StringVar(&f.name, "instance", "", "Read from another instance, by its name or ID in 'tendril instances'.")
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
	switch {
	case f.fleet && len(all) > 0:
		return all, nil
	case f.fleet:
		return []api.KnownInstance{{This: true, Name: known.Instances[0].Name}}, nil
	}

	var names []string
	var found []api.KnownInstance
	for _, one := range all {
		names = append(names, one.Name)
		if one.ID == f.name || one.Name == f.name {
			return []api.KnownInstance{one}, nil
		}
		if strings.Contains(one.Name, f.name) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return found, nil
	case len(found) > 1:
		return nil, Usagef("--instance %q is ambiguous", f.name).Hint("choose one of " + strings.Join(names, ", "))
	case len(names) == 0:
		return nil, NotFoundf("instance %q not found: this instance knows no others", f.name).Hint("'tendril instances' says why")
	}
	return nil, NotFoundf("instance %q not found", f.name).Hint("choose one of " + strings.Join(names, ", "))
}

// Report prints why instances have not answered. If none has answered, it returns the first error.
func Report[T any](c *CLI, answers []api.FromInstance[T]) error {
	failed := 0
	for i := range answers {
		if answers[i].Err != nil {
			failed++
		}
	}
	if failed == len(answers) {
		return answers[0].Err
	}
	for i := range answers {
		if err := answers[i].Err; err != nil {
			c.PrintErrf("%s: %s\n", Plain(answers[i].Instance.Name), Plain(err.Error()))
		}
	}
	return nil
}
