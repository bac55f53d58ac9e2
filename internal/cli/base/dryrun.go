package base

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const (
	// DryRunFlag is the name of the flag that has a command print its steps instead of taking them.
	DryRunFlag = "dry-run"
	// Unchanged is the last line of a dry run.
	Unchanged = "nothing was changed: --dry-run"
)

// Plan is what a changing verb is about to do, once it knows that it can.
type Plan struct {
	// Would returns the steps in words that follow "would", such as "pause queue jobs". It is asked in a dry run only,
	// changes nothing, and fails where do would, as far as that can be known.
	Would func(context.Context) ([]string, error)
	Do    func(context.Context) error
}

// Step is the text of the only step of a plan.
func Step(format string, args ...any) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return []string{fmt.Sprintf(format, args...)}, nil }
}

// Changes makes a command that changes something: find looks at what there is to do, and changes nothing. With
// --dry-run its steps are printed in place of being done.
func Changes(c *CLI, cmd *cobra.Command,
	find func(ctx context.Context, cmd *cobra.Command, args []string) (Plan, error)) *cobra.Command {
	AddDryRun(cmd)
	cmd.RunE = Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		p, err := find(ctx, cmd, args)
		switch {
		case err != nil:
			return err
		case !IsDryRun(cmd):
			return p.Do(ctx)
		}
		steps, err := p.Would(ctx)
		if err != nil {
			return err
		}
		return formatOf(cmd).printSteps(c, steps)
	})
	return cmd
}

// AddDryRun gives a command the flag alone, where it has a way of its own to show what it would do.
func AddDryRun(cmd *cobra.Command) {
	cmd.Flags().Bool(DryRunFlag, false, "Print what would be done, and change nothing.")
}

// IsDryRun reports whether --dry-run is set.
func IsDryRun(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup(DryRunFlag)
	return f != nil && f.Value.String() == "true"
}

// plannedSteps is what a dry run prints for programs.
type plannedSteps struct {
	DryRun bool     `json:"dry_run"`
	Would  []string `json:"would"`
}

func (f Format) printSteps(c *CLI, steps []string) error {
	return f.Print(c, plannedSteps{true, append([]string{}, steps...)}, steps, func() error {
		for _, step := range steps {
			if _, err := c.Println("would " + Plain(step)); err != nil {
				return err
			}
		}
		c.PrintErrln(Unchanged)
		return nil
	})
}

// PlanOf returns a plan of which would tells the steps, and do takes them.
func PlanOf(would func(context.Context) ([]string, error), do func(context.Context) error) Plan {
	return Plan{would, do}
}
