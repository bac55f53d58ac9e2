package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/cli/base"
)

// NewDeploy returns the command 'tendril deploy'.
func NewDeploy(c *base.CLI) *cobra.Command {
	var abort bool
	cmd := &cobra.Command{
		Use:   "deploy [DIR|ZIP]",
		Short: "Deploy a new version of the app without downtime",
		Long: `Replaces the running app with the one in DIR or in the archive ZIP. Hooks and build commands
run first; then the new version starts beside the previous one and gets the messages once it is
ready. The previous version finishes its work and stops. If the new version does not become
ready, the previous one keeps running and the exit status is 1. Without an argument, DIR is the
working folder if the environment was started in it and it says how to run the app; otherwise
the running app is deployed again.

--abort cancels the deployment in progress and waits until its processes and hooks have
exited; the previous version keeps serving. Once the new version has the messages, --abort only
stops the remaining hooks; 'tendril rollback' then restores the previous version, even before
that version has finished its work.

With a fleet key (--fleet-key-file of 'tendril up') the version is deployed to all instances of the
environment, according to --rollout-policy, and --abort returns all of them to the previous version.`,
		Example: "  tendril deploy examples/thumbnails\n  tendril deploy thumbnails-v2.zip\n  tendril deploy --abort",
		Args:    cobra.MaximumNArgs(1),
	}

	cmd.Flags().BoolVar(&abort, "abort", false, "Abort the deployment in progress.")
	f := base.AddOutput(cmd)
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if abort && len(args) > 0 {
			return base.Usagef("--abort takes no folder or archive").Hint("it aborts the deployment in progress")
		}
		return nil
	}
	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, args []string) (*base.Plan, error) {
		if abort {
			return planAbort(ctx, c, client, *f), nil
		}

		path := base.Argument(args)
		var err error
		if path == "" {
			if path, err = appInWorkingFolder(cmd, client.Instance.Folder); err != nil {
				return nil, err
			}
		}
		if path != "" {
			if path, err = inspectCandidate(c, path, client.Instance.AppliesMachine); err != nil {
				return nil, err
			}
		}

		return base.PlanOf(func() ([]string, error) {
			all, err := readyToDeploy(ctx, client)
			return []string{"deploy " + cmp.Or(path, "the app's folder as it is now") + replacedVersionText(all)}, err
		}, func() error {
			return deployAndFollow(ctx, c, client, *f, func(ctx context.Context) (api.DeployResult, error) {
				return client.Deploy(ctx, path)
			})
		}), nil
	})
}

// readyToDeploy also returns the latest versions.
func readyToDeploy(ctx context.Context, client *api.Client) ([]api.AppVersion, error) {
	all, err := client.LatestVersions(ctx)
	if err != nil {
		return nil, err
	}
	if v := versionInState(all, api.VersionDeploying); v != nil {
		return nil, base.Conflictf("version %d is being deployed to all instances", v.Number).
			Hint("wait until it is complete, or type 'tendril deploy --abort'")
	}
	st, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	if st.Deployment != nil && !st.Deployment.Over() {
		return nil, base.Conflictf("a deployment of %s is in progress", base.Plain(st.Deployment.To)).
			Hint("'tendril status' shows its progress")
	}
	return all, nil
}

func replacedVersionText(all []api.AppVersion) string {
	live := versionInState(all, api.VersionLive)
	if live == nil {
		return ""
	}
	return fmt.Sprintf(" in place of version %d, %s", live.Number, sourceText(live))
}

func versionInState(all []api.AppVersion, state string) *api.AppVersion {
	if i := slices.IndexFunc(all, func(v api.AppVersion) bool { return v.State == state }); i >= 0 {
		return &all[i]
	}
	return nil
}

// appInWorkingFolder returns "" unless the environment was started in the working folder and an app is there.
func appInWorkingFolder(cmd *cobra.Command, startedIn string) (string, error) {
	const here = "."
	if folder, err := filepath.Abs(here); err != nil || folder != startedIn || !bundle.MarksFolder(here) {
		return "", nil
	}
	b, err := base.OpenTrustedFolder(cmd)
	if err != nil || len(b.Processes) == 0 && b.Default == nil {
		return "", err
	}
	return here, nil
}

func planAbort(ctx context.Context, c *base.CLI, client *api.Client, f base.Format) *base.Plan {
	return base.PlanOf(func() ([]string, error) { return abortSteps(ctx, client) }, func() error {
		d, err := client.AbortDeploy(ctx)
		if err != nil {
			return err
		}
		return f.PrintDone(c, d, d.From, fmt.Sprintf("deployment of %s aborted; environment %q still runs %s", base.Plain(d.To),
			client.Instance.Environment, base.Plain(d.From)))
	})
}

func abortSteps(ctx context.Context, client *api.Client) ([]string, error) {
	all, err := client.Versions(ctx)
	if err != nil {
		return nil, err
	}
	if next := versionInState(all, api.VersionDeploying); next != nil {
		text := fmt.Sprintf("return all instances from version %d, %s", next.Number, sourceText(next))
		if live := versionInState(all, api.VersionLive); live != nil {
			text += fmt.Sprintf(" to version %d, %s", live.Number, sourceText(live))
		}
		return []string{text}, nil
	}

	st, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	if st.Deployment == nil || st.Deployment.Over() {
		return nil, base.Conflictf("no deployment is in progress").Hint("'tendril status' shows the last deployment")
	}
	return []string{"abort the deployment of " + base.Plain(st.Deployment.To)}, nil
}

func deployAndFollow(ctx context.Context, c *base.CLI, client *api.Client, f base.Format,
	begin func(context.Context) (api.DeployResult, error)) error {
	noteStarting(ctx, c, client)
	done, err := followDeployment(ctx, c, client, begin)
	if errors.Is(err, context.Canceled) {
		return base.Interrupted("interrupted; the deployment continues", "'tendril status' shows its progress")
	}
	if err != nil {
		printFailedStep(c, err)
		return err
	}

	name := client.Instance.Environment
	text := deployedText(name, &done)
	switch {
	case done.Rollout != 0:
		if err := awaitRollout(ctx, c, client, done.Rollout); err != nil {
			return err
		}
		text = fmt.Sprintf("environment %q now runs %s on all instances", name, base.Plain(done.To))
	case len(done.Later) > 0:
		text += "\n" + laterText(done.Later)
	}
	return f.PrintDone(c, done, done.To, text)
}

func inspectCandidate(c *base.CLI, path string, appliesMachine bool) (string, error) {
	b, err := c.OpenForInspection(path)
	if err != nil {
		return "", err
	}
	ofMachine := b.Machine.Sections
	if appliesMachine {
		ofMachine = b.Machine.NotUsed
	}
	c.PrintWarnings(base.BundleWarnings(b, slices.Concat(b.Unsupported, ofMachine))...)
	c.PrintWarnings(b.MissingPrograms("", appliesMachine)...)
	return filepath.Abs(path)
}

func printFailedStep(c *base.CLI, err error) {
	var refused *api.Error
	if !errors.As(err, &refused) || len(refused.Output) == 0 {
		return
	}
	c.PrintErrf("last output of %s:\n", base.Plain(refused.Step))
	for _, line := range refused.Output {
		c.PrintErrf("  | %s\n", base.Plain(line))
	}
}

func noteStarting(ctx context.Context, c *base.CLI, client *api.Client) {
	if st, err := client.Status(ctx); err == nil && st.State == api.StateStarting {
		c.PrintErrf("environment %q is still starting; the change begins once it has started\n", client.Instance.Environment)
	}
}

const deployTick = 200 * time.Millisecond

func followDeployment(ctx context.Context, c *base.CLI, client *api.Client,
	begin func(context.Context) (api.DeployResult, error)) (api.DeployResult, error) {
	before, err := client.Status(ctx)
	if err != nil {
		return api.DeployResult{}, err
	}

	var result api.DeployResult
	done := make(chan error, 1)
	go func() {
		var err error
		result, err = begin(ctx)
		done <- err
	}()

	tick := time.NewTicker(deployTick)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case err := <-done:
			return result, err
		case <-tick.C:
		}

		// The status only adds progress texts: begin returns the deployment's result and any error.
		now, err := client.Status(ctx)
		d := now.Deployment
		if err != nil || d == nil || d.Over() || before.Deployment != nil && d.Since.Equal(before.Deployment.Since) {
			continue
		}
		if text := StepText(d); text != reported {
			c.PrintErrln(text)
			reported = text
		}
	}
}

// StepText describes the current step of a deployment.
func StepText(d *api.Deployment) string {
	from, to := base.Plain(d.From), base.Plain(d.To)
	if from == "" {
		from = "the previous version"
	}

	switch d.State {
	case api.DeployPreparing:
		if d.Step != "" {
			return "preparing " + to + ": " + base.Plain(d.Step)
		}
		return "preparing " + to
	case api.DeployStarting:
		return "starting " + to + " beside " + from
	case api.DeployFinishing:
		text := to + " has the messages; " + from + " is finishing its work"
		if d.Step != "" {
			text += "; " + base.Plain(d.Step)
		}
		return text
	}

	return base.Plain(d.State) + " " + to
}

// NewReload returns the command 'tendril reload'.
func NewReload(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Apply changes to the settings and the app's folder",
		Long: `Applies changes to the settings and the app's folder, like the signal HUP, and restarts only
the affected parts. Paths, time limits, retries, concurrency and periodic tasks change at once;
other options change at the next start. Changes of cron.yaml and tendril.yaml do not restart the
app. Changed variables restart it; changes of its other files redeploy its folder. If the new
version does not become ready, the previous one keeps running (exit status 1). A file with a
mistake is rejected and changes nothing (exit status 2).`,
		Args: cobra.NoArgs,
	}

	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (*base.Plan, error) {
		return base.PlanOf(func() ([]string, error) { return reloadSteps(ctx, client) }, func() error {
			noteStarting(ctx, c, client)
			done, err := client.Reload(ctx)
			if err != nil {
				printFailedStep(c, err)
				return err
			}
			c.PrintErrln(reloadText(client.Instance.Environment, &done))
			return nil
		}), nil
	})
}

func reloadSteps(ctx context.Context, client *api.Client) ([]string, error) {
	d, err := client.Describe(ctx)
	if err != nil {
		return nil, err
	}
	steps := []string{fmt.Sprintf("re-read the settings and the app's folder of environment %q", d.Environment)}
	for _, o := range d.Changes {
		when := "apply"
		if o.Restart {
			when = "apply at the next start:"
		}
		steps = append(steps, fmt.Sprintf("%s %s = %s (%s)", when, o.Name, cmp.Or(o.Value, "none"), base.OriginOf(o.OptionValue)))
	}
	return steps, nil
}

func reloadText(environment string, done *api.ReloadResult) string {
	var lines []string
	switch {
	case done.Deployed != nil:
		lines = append(lines, deployedText(environment, done.Deployed))
	case done.Unchanged != "":
		lines = append(lines, "nothing changed in "+base.Plain(done.Unchanged))
	case done.NotScheduled != "":
		lines = append(lines, fmt.Sprintf("%s of %s not scheduled: %s", base.Plural(done.Tasks, "periodic task"),
			base.Plain(done.File), base.Plain(done.NotScheduled)))
	case done.File != "":
		lines = append(lines, fmt.Sprintf("%s of %s in force", base.Plural(done.Tasks, "periodic task"), base.Plain(done.File)))
	case len(done.Settings)+len(done.Later) == 0:
		lines = append(lines, "nothing changed: the settings are the same")
	}

	if len(done.Settings) > 0 {
		lines = append(lines, "changed, in force now: "+base.Plain(strings.Join(done.Settings, ", ")))
	}

	if len(done.Later) > 0 {
		lines = append(lines, laterText(done.Later))
	}

	return strings.Join(lines, "\n")
}

func deployedText(environment string, done *api.DeployResult) string {
	took := time.Duration(done.DurationMS) * time.Millisecond
	if done.Of != 0 {
		return fmt.Sprintf("environment %q now runs %s, version %d again (took %s)", environment, base.Plain(done.To),
			done.Of, took)
	}
	return fmt.Sprintf("environment %q now runs %s (took %s)", environment, base.Plain(done.To), took)
}

func laterText(names []string) string {
	return "will change at the next start: " + base.Plain(strings.Join(names, ", "))
}

// NewDrain returns the command 'tendril drain'.
func NewDrain(c *base.CLI) *cobra.Command {
	wait := 60 * time.Second
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Finish the work in flight, then stop the environment",
		Long: `Asks the environment to stop receiving, finish the work in flight and stop, and waits until
it has stopped. The exit status is 3 if that takes longer than --wait while the drain continues,
or if work was returned to its queue after --shutdown-timeout.`,
		Args: cobra.NoArgs,
	}

	cmd.Flags().DurationVar(&wait, "wait", wait, "Maximum wait for the stop; 0 does not wait.")
	cmd.PreRunE = func(*cobra.Command, []string) error { return base.CheckWait(wait) }
	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (*base.Plan, error) {
		return base.PlanOf(func() ([]string, error) { return drainSteps(ctx, client) },
			func() error { return drainEnvironment(ctx, c, client, wait) }), nil
	})
}

func drainSteps(ctx context.Context, client *api.Client) ([]string, error) {
	st, err := client.Status(ctx)
	inWork, prefetched := 0, 0
	for i := range st.Workers {
		inWork += st.Workers[i].InWork
		prefetched += st.Workers[i].Prefetched
	}
	return []string{"finish " + base.Plural(inWork, "message") + " in flight, and return " + base.Plural(prefetched, "message"),
		fmt.Sprintf("stop environment %q, process %d", client.Instance.Environment, client.Instance.PID)}, err
}

func drainEnvironment(ctx context.Context, c *base.CLI, client *api.Client, wait time.Duration) error {
	until := time.Now().Add(wait)
	drained, err := client.Drain(ctx, wait)
	name := client.Instance.Environment
	var refusal *api.Error
	switch {
	case errors.As(err, &refusal) && refusal.Late:
		awaitExit(ctx, client.Instance.PID, until)
		return base.Fail(base.ExitLate, fmt.Errorf("draining environment %q: %w", name, err))
	case err != nil:
		return fmt.Errorf("draining environment %q: %w", name, err)
	case wait == 0:
		c.PrintErrf("environment %q is draining and will stop\n", name)
		return nil
	case !drained || !awaitExit(ctx, client.Instance.PID, until):
		return base.Fail(base.ExitLate, fmt.Errorf("environment %q has not stopped within %s", name, wait),
			"the drain continues; 'tendril status' shows its progress")
	}

	c.PrintErrf("environment %q has drained and stopped\n", name)
	return nil
}

func awaitExit(ctx context.Context, pid int, until time.Time) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for api.ProcessAlive(pid) {
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
