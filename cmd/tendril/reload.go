package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/console"
)

func (c *cli) newReload() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Put in force what changed in the app's folder",
		Long: `Makes the running environment put in force what changed in its settings and in the
app's folder since they were read, as the signal HUP does, and restarts nothing that
no change touches. When nothing or cron.yaml alone changed, the periodic tasks are
read again; a file with a mistake is refused (exit status 2), and what is in force
stays. What a delivery is (paths, time limits, retries, concurrency) changes while it
runs; variables of the app start it anew, anything else is a deployment of the folder,
both beside the version that runs: when the new one does not come up, the old one
works on, and the exit status is 1.`,
		Args: cobra.NoArgs,
	}
	addDataDir(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		defer client.Close()
		done, err := client.Reload(ctx)
		var refused *console.Error
		switch {
		case errors.As(err, &refused):
			return c.refusal(refused)
		case err != nil:
			return err
		}
		fmt.Fprintln(c.err, reloadText(client.Instance.Environment, &done))
		return nil
	})
	return cmd
}

// reloadText says what a reload did.
func reloadText(environment string, done *console.ReloadResult) string {
	var lines []string
	switch {
	case done.Deployed != nil:
		lines = append(lines, deployedText(environment, done.Deployed))
	case done.Unchanged != "":
		lines = append(lines, "nothing changed in "+plain(done.Unchanged, false))
	case done.NotScheduled != "":
		lines = append(lines,
			fmt.Sprintf("%s of %s not scheduled: %s", plural(done.Tasks, "periodic task"), plain(done.File, false),
				plain(done.NotScheduled, false)))
	case done.File != "":
		lines = append(lines, fmt.Sprintf("%s of %s in force", plural(done.Tasks, "periodic task"), plain(done.File, false)))
	case len(done.Settings)+len(done.Later) == 0:
		lines = append(lines, "the new settings leave everything as it was")
	}
	if len(done.Settings) > 0 {
		lines = append(lines, "changed, and in force now: "+plain(strings.Join(done.Settings, ", "), false))
	}
	if len(done.Later) > 0 {
		lines = append(lines, laterText(done.Later))
	}
	return strings.Join(lines, "\n")
}

// deployedText says what runs after a deployment.
func deployedText(environment string, done *console.DeployResult) string {
	took := time.Duration(done.DurationMS) * time.Millisecond
	return fmt.Sprintf("environment %q runs %s now, after %s", environment, plain(done.To, false), took)
}

// laterText says which settings wait for the next start.
func laterText(names []string) string {
	return "changed, for the next start: " + plain(strings.Join(names, ", "), false)
}
