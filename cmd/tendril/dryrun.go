package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const (
	dryRunFlag = "dry-run"
	unchanged  = "nothing was changed: --dry-run"
)

// plan is what a changing verb is about to do, once it knows that it can.
type plan struct {
	// would returns the steps in words that follow "would", such as "pause queue jobs". It is asked in a dry run only,
	// changes nothing, and fails where do would, as far as that can be known.
	would func(context.Context) ([]string, error)
	do    func(context.Context) error
}

// step is the text of the only step of a plan.
func step(format string, args ...any) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return []string{fmt.Sprintf(format, args...)}, nil }
}

// changes makes a command that changes something: find looks at what there is to do, and changes nothing. With
// --dry-run its steps are printed in place of being done.
func changes(c *cli, cmd *cobra.Command,
	find func(ctx context.Context, cmd *cobra.Command, args []string) (plan, error)) *cobra.Command {
	addDryRun(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		p, err := find(ctx, cmd, args)
		switch {
		case err != nil:
			return err
		case !isDryRun(cmd):
			return p.do(ctx)
		}
		steps, err := p.would(ctx)
		if err != nil {
			return err
		}
		return formatOf(cmd).printSteps(c, steps)
	})
	return cmd
}

// addDryRun gives a command the flag alone, where it has a way of its own to show what it would do.
func addDryRun(cmd *cobra.Command) {
	cmd.Flags().Bool(dryRunFlag, false, "Print what would be done, and change nothing.")
}

func isDryRun(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup(dryRunFlag)
	return f != nil && f.Value.String() == "true"
}

// plannedSteps is what a dry run prints for programs.
type plannedSteps struct {
	DryRun bool     `json:"dry_run"`
	Would  []string `json:"would"`
}

func (f format) printSteps(c *cli, steps []string) error {
	return f.print(c, plannedSteps{true, append([]string{}, steps...)}, steps, func() error {
		for _, step := range steps {
			if _, err := fmt.Fprintln(c.out, "would "+plain(step)); err != nil {
				return err
			}
		}
		fmt.Fprintln(c.err, unchanged)
		return nil
	})
}
