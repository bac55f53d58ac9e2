package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tendril/console"
)

func (c *cli) newDrain() *cobra.Command {
	wait := 60 * time.Second
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Finish what is in flight, then stop the environment",
		Long: `Asks the running environment to stop receiving, to finish what is in flight, and
to end. Waits until it has ended. Exit status 3 when that takes longer than --wait:
the drain goes on then, up to the environment's --shutdown-timeout; and when work
was cut off there, which goes back to its queue.`,
		Args: cobra.NoArgs,
	}
	addDataDir(cmd)
	cmd.Flags().DurationVar(&wait, "wait", wait, "How long to wait for the end; 0 only asks for it.")
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if wait < 0 {
			return fail(exitUsage, fmt.Errorf("--wait %s is out of range", wait), "use 0s or more")
		}
		return c.drain(ctx, cmd, wait)
	})
	return cmd
}

func (c *cli) drain(ctx context.Context, cmd *cobra.Command, wait time.Duration) error {
	client, err := c.dial(cmd)
	if err != nil {
		return err
	}
	until := time.Now().Add(wait)
	drained, err := client.Drain(ctx, wait)
	name := client.Instance.Environment
	var refusal *console.Error
	switch {
	case errors.As(err, &refusal) && refusal.Late:
		ended(ctx, client.Instance.PID, until)
		return fail(exitLate, fmt.Errorf("draining environment %q: %w", name, err))
	case err != nil:
		return fmt.Errorf("draining environment %q: %w", name, err)
	case wait == 0:
		fmt.Fprintf(c.err, "environment %q drains and ends\n", name)
		return nil
	case !drained || !ended(ctx, client.Instance.PID, until):
		return fail(exitLate, fmt.Errorf("environment %q has not ended within %s", name, wait),
			"the drain goes on; 'tendril status' shows it")
	}
	fmt.Fprintf(c.err, "environment %q has drained and ended\n", name)
	return nil
}

// ended waits until a process is gone.
func ended(ctx context.Context, pid int, until time.Time) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for console.ProcessAlive(pid) {
		if time.Now().After(until) {
			return false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
