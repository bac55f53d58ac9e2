package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tendril/health"
)

func (c *cli) newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show how the environment does, in one word with its causes",
		Long: `Shows the environment's health in the words of Elastic Beanstalk: Ok, Info,
Warning, Degraded, Severe, Pending or No Data, and why. The exit status is that of a
check in a monitoring system: 0 for Ok and Info, 1 for Warning, 2 for Degraded and
Severe, 3 for what is not known; 6 when no environment runs.`,
		Args: cobra.NoArgs,
	}
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		report, err := client.Health(ctx)
		if err != nil {
			return err
		}
		if *f == asJSON {
			err = c.printJSON(report)
		} else {
			_, err = fmt.Fprintln(c.out, reportText(&report))
		}
		if code := report.Status.ExitCode(); err == nil && code != exitOK {
			return fail(code, fmt.Errorf("environment %q is %s", client.Instance.Environment, report.Status))
		}
		return err
	})
	return cmd
}

// reportText is a status in one word with its colour, and a line for each cause.
func reportText(r *health.Report) string {
	text := fmt.Sprintf("%s (%s)", r.Status, r.Color)
	if !r.Since.IsZero() {
		text += " for " + since(r.Since)
	}
	for _, cause := range r.Causes {
		text += "\n        " + plain(cause, false)
	}
	return text
}
