package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/console"
)

// controlCommands act on the running environment as a whole: deploy, reload, drain, status and health.
type controlCommands struct{ *cli }

func (c controlCommands) newDeploy() *cobra.Command {
	var abort bool
	cmd := &cobra.Command{
		Use:   "deploy [DIR|ZIP]",
		Short: "Deploy a new version of the app without downtime",
		Long: `Replaces the running app by the one in DIR or in the archive ZIP. Hooks and build commands
run first; then the new version starts beside the old one and gets the messages once it is
ready, and the old one finishes its work and stops. If the new version does not become
ready, the old one keeps running and the exit status is 1. Without an argument, DIR is the
working folder if the environment was started in it and it says how to run the app; else
what runs now is deployed again.

--abort ends the deployment that is in progress. It waits until what was started for it is
gone; the previous version is still serving. Once the new version has the messages, use
'tendril rollback' instead.`,
		Example: "  tendril deploy examples/thumbnails\n  tendril deploy thumbnails-v2.zip\n  tendril deploy --abort",
		Args:    cobra.MaximumNArgs(1),
	}
	addDataDir(cmd)
	cmd.Flags().BoolVar(&abort, "abort", false, "End the deployment that is in progress.")
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if abort && len(args) > 0 {
			return fail(exitUsage, errors.New("--abort takes no folder or archive"), "it ends what is in progress")
		}
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		defer client.Close()
		if abort {
			return c.abortDeploy(ctx, client, *f)
		}
		path := argument(args)
		if len(args) == 0 {
			if path, err = c.ownFolder(cmd, client.Instance.Folder); err != nil {
				return err
			}
		}
		if path, err = c.candidate(path, client.Instance.AppliesMachine); err != nil {
			return err
		}
		return c.deploy(ctx, client, *f, func(ctx context.Context) (console.DeployResult, error) {
			return client.Deploy(ctx, path)
		})
	})
	return cmd
}

// ownFolder is the working folder where an environment was started in it and it says how to run an app; else "".
func (c controlCommands) ownFolder(cmd *cobra.Command, started string) (string, error) {
	const here = "."
	if folder, err := filepath.Abs(here); err != nil || folder != started || !bundle.MarksFolder(here) {
		return "", nil
	}
	b, err := c.foundFolder(cmd)
	if err != nil || len(b.Processes) == 0 && b.Default == nil {
		return "", err
	}
	return here, nil
}

func (c controlCommands) abortDeploy(ctx context.Context, client *console.Client, f format) error {
	d, err := client.AbortDeploy(ctx)
	switch {
	case err != nil:
		return err
	case f == asJSON:
		return c.printJSON(d)
	}
	fmt.Fprintf(c.err, "the deployment of %s was aborted; environment %q still runs %s\n", plain(d.To),
		client.Instance.Environment, plain(d.From))
	return nil
}

// deploy begins a deployment, tells what happens until it is over, and prints the result.
func (c controlCommands) deploy(ctx context.Context, client *console.Client, f format,
	begin func(context.Context) (console.DeployResult, error)) error {
	done, err := c.follow(ctx, client, begin)
	switch {
	case err != nil && errors.Is(err, context.Canceled):
		return fail(exitSignal+int(syscall.SIGINT), errors.New("interrupted; the deployment goes on"),
			"'tendril status' shows it")
	case err != nil:
		return c.refusal(err)
	case f == asJSON:
		return c.printJSON(done)
	}
	fmt.Fprintln(c.err, deployedText(client.Instance.Environment, &done))
	if len(done.Later) > 0 {
		fmt.Fprintln(c.err, laterText(done.Later))
	}
	return nil
}

// candidate reads what is to be deployed, so that a mistake in it is told before
// anything is begun, and returns its absolute path; "" for what runs now. appliesMachine says whether the environment
// applies the sections that change the machine.
func (c controlCommands) candidate(path string, appliesMachine bool) (string, error) {
	if path == "" {
		return "", nil
	}
	b, done, err := c.lookInto(path)
	defer done()
	if err != nil {
		return "", err
	}
	ofMachine := b.Machine.Sections
	if appliesMachine {
		ofMachine = b.Machine.NotUsed
	}
	c.warn(bundleWarnings(b, slices.Concat(b.Unsupported, ofMachine))...)
	return filepath.Abs(path)
}

// refusal prints what the failing step wrote, and returns the error.
func (c controlCommands) refusal(err error) error {
	var refused *console.Error
	if errors.As(err, &refused) && len(refused.Output) > 0 {
		fmt.Fprintf(c.err, "%s wrote last:\n", plain(refused.Step))
		for _, line := range refused.Output {
			fmt.Fprintf(c.err, "  | %s\n", plain(line))
		}
	}
	return err
}

const deployTick = 200 * time.Millisecond

// follow begins a deployment and tells what happens until it is over.
func (c controlCommands) follow(ctx context.Context, client *console.Client,
	begin func(context.Context) (console.DeployResult, error)) (console.DeployResult, error) {
	before, err := client.Status(ctx)
	if err != nil {
		return console.DeployResult{}, err
	}
	type outcome struct {
		result console.DeployResult
		err    error
	}
	over := make(chan outcome, 1)
	go func() {
		result, err := begin(ctx)
		over <- outcome{result, err}
	}()
	tick := time.NewTicker(deployTick)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case o := <-over:
			return o.result, o.err
		case <-tick.C:
			// A status that does not come is no reason to stop: the outcome will.
			now, err := client.Status(ctx)
			if err != nil || now.Deployment == nil || before.Deployment != nil &&
				now.Deployment.Since.Equal(before.Deployment.Since) {
				continue
			}
			if text := stepText(now.Deployment); text != reported && !now.Deployment.Over() {
				fmt.Fprintln(c.err, text)
				reported = text
			}
		}
	}
}

func stepText(d *console.Deployment) string {
	from, to := plain(d.From), plain(d.To)
	if from == "" {
		from = "the old version"
	}
	switch d.State {
	case console.DeployPreparing:
		if d.Step != "" {
			return "preparing " + to + ": " + plain(d.Step)
		}
		return "preparing " + to
	case console.DeployStarting:
		return "starting " + to + " beside " + from
	case console.DeployDraining:
		return to + " has the messages; " + from + " finishes"
	case console.DeployFinishing:
		text := from + " is gone"
		if d.Step != "" {
			text += "; " + plain(d.Step)
		}
		return text
	}
	return plain(d.State) + " " + to
}

func (c controlCommands) newReload() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Apply what changed in the settings and the app's folder",
		Long: `Applies what changed in the settings and the app's folder, as the signal HUP does, and
restarts only what a change affects. Paths, time limits, retries, concurrency and periodic
tasks change at once. Changed variables restart the app, and any other change deploys its
folder: if the new version does not become ready, the old one keeps running (exit status
1). A file with a mistake is refused and changes nothing (exit status 2).`,
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
		if err != nil {
			return c.refusal(err)
		}
		fmt.Fprintln(c.err, reloadText(client.Instance.Environment, &done))
		return nil
	})
	return cmd
}

func reloadText(environment string, done *console.ReloadResult) string {
	var lines []string
	switch {
	case done.Deployed != nil:
		lines = append(lines, deployedText(environment, done.Deployed))
	case done.Unchanged != "":
		lines = append(lines, "nothing changed in "+plain(done.Unchanged))
	case done.NotScheduled != "":
		lines = append(lines, fmt.Sprintf("%s of %s not scheduled: %s", plural(done.Tasks, "periodic task"),
			plain(done.File), plain(done.NotScheduled)))
	case done.File != "":
		lines = append(lines, fmt.Sprintf("%s of %s in force", plural(done.Tasks, "periodic task"), plain(done.File)))
	case len(done.Settings)+len(done.Later) == 0:
		lines = append(lines, "the new settings leave everything as it was")
	}
	if len(done.Settings) > 0 {
		lines = append(lines, "changed, and in force now: "+plain(strings.Join(done.Settings, ", ")))
	}
	if len(done.Later) > 0 {
		lines = append(lines, laterText(done.Later))
	}
	return strings.Join(lines, "\n")
}

func deployedText(environment string, done *console.DeployResult) string {
	took := time.Duration(done.DurationMS) * time.Millisecond
	if done.Of != 0 {
		return fmt.Sprintf("environment %q runs %s now, which is version %d again, after %s", environment, plain(done.To),
			done.Of, took)
	}
	return fmt.Sprintf("environment %q runs %s now, after %s", environment, plain(done.To), took)
}

func laterText(names []string) string {
	return "changed, for the next start: " + plain(strings.Join(names, ", "))
}

func (c controlCommands) newDrain() *cobra.Command {
	wait := 60 * time.Second
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Finish what is in flight, then stop the environment",
		Long: `Asks the environment to stop receiving, finish the work in flight and stop, and waits until
it has stopped. The exit status is 3 if that takes longer than --wait, while the drain goes
on, or if the environment's --shutdown-timeout returned work to its queue.`,
		Args: cobra.NoArgs,
	}
	addDataDir(cmd)
	cmd.Flags().DurationVar(&wait, "wait", wait, "Longest wait for the end; 0 returns at once.")
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if wait < 0 {
			return fail(exitUsage, fmt.Errorf("--wait %s is out of range", wait), "use 0s or more")
		}
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
	})
	return cmd
}

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
