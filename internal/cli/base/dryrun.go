package base

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tendril/api"
)

const (
	// DryRunFlag makes a command print its steps instead of executing them.
	DryRunFlag = "dry-run"
	// Unchanged is the last line of a dry run.
	Unchanged = "nothing was changed: --dry-run"
)

// Plan is a change that is ready to be executed.
type Plan struct {
	// Would returns the steps as phrases that follow "would", such as "pause queue jobs". It must not change anything.
	// It returns an error if Do is certain to fail.
	Would func() ([]string, error)
	Do    func() error
}

// Step returns the Would function of a plan with a single step.
func Step(format string, args ...any) func() ([]string, error) {
	return func() ([]string, error) { return []string{fmt.Sprintf(format, args...)}, nil }
}

// Changes implements a command that changes something. find prepares the plan without changing anything.
func Changes(c *CLI, cmd *cobra.Command,
	find func(ctx context.Context, args []string) (*Plan, error)) *cobra.Command {
	AddDryRun(cmd)
	cmd.RunE = Verb(func(ctx context.Context, args []string) error {
		p, err := find(ctx, args)
		switch {
		case err != nil:
			return err
		case !IsDryRun(cmd):
			return p.Do()
		}
		steps, err := p.Would()
		if err != nil {
			return err
		}
		return formatOf(cmd).printSteps(c, steps)
	})
	return cmd
}

// ChangesRunning implements a command that changes the running environment. find is as in [Changes].
func ChangesRunning(c *CLI, cmd *cobra.Command,
	find func(ctx context.Context, client *api.Client, args []string) (*Plan, error)) *cobra.Command {
	AddDataDir(cmd)
	return Changes(c, cmd, func(ctx context.Context, args []string) (*Plan, error) {
		client, err := c.Dial(cmd)
		if err != nil {
			return nil, err
		}
		return find(ctx, client, args)
	})
}

// AddDryRun adds the flag --dry-run to a command that prints its own preview.
func AddDryRun(cmd *cobra.Command) {
	cmd.Flags().Bool(DryRunFlag, false, "Print the steps without changing anything.")
}

// IsDryRun reports whether --dry-run is set.
func IsDryRun(cmd *cobra.Command) bool {
	dry, _ := cmd.Flags().GetBool(DryRunFlag) // false without the flag
	return dry
}

type plannedSteps struct {
	DryRun bool     `json:"dry_run"`
	Would  []string `json:"would"`
}

func (f Format) printSteps(c *CLI, steps []string) error {
	return f.Print(c, plannedSteps{DryRun: true, Would: append([]string{}, steps...)}, steps, func() error {
		for _, step := range steps {
			if _, err := c.Println("would " + Plain(step)); err != nil {
				return err
			}
		}
		c.PrintErrln(Unchanged)
		return nil
	})
}

// PlanOf returns a plan.
func PlanOf(would func() ([]string, error), do func() error) *Plan {
	return &Plan{would, do}
}
