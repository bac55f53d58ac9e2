package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
)

func newVersions(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions",
		Short: "List the versions of the app: the one that serves, and those kept to go back to",
		Long: `Lists the versions that were deployed, the newest first. live is the one that serves; kept served
before, and 'tendril rollback' goes back to it; failed did not come up, and nothing of it was kept.
The copies of the last five archives are kept. A folder runs in place: its row stands for what was
deployed from it last.`,
		Args: cobra.NoArgs,
	}
	asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) ([]api.AppVersion, error) {
		return client.Versions(ctx)
	}, view[[]api.AppVersion]{func(all []api.AppVersion) error {
		if len(all) == 0 {
			fmt.Fprintln(c.err, "no version has served yet")
			return nil
		}
		rows := table{{"VERSION", "STATE", "SOURCE", "SIZE", "DEPLOYED", "BY"}}
		for i := range all {
			v := &all[i]
			rows = append(rows, []string{versionText(v), v.State, sourceText(v), bytesText(v.Size), since(v.DeployedAt) + " ago",
				v.By})
		}
		return c.printTable(rows)
	}, named(func(v *api.AppVersion) string { return strconv.Itoa(v.Number) })})
	return cmd
}

// versionText is the number of a version, and of the one that it is again.
func versionText(v *api.AppVersion) string {
	if v.Of != 0 {
		return fmt.Sprintf("%d (%d again)", v.Number, v.Of)
	}
	return strconv.Itoa(v.Number)
}

func sourceText(v *api.AppVersion) string {
	switch {
	case v.InPlace:
		return v.Source + " (in place, cannot be rolled back to)"
	case v.Folder == "" && v.State != api.VersionFailed: // a command
		return v.Source
	}
	return filepath.Base(v.Source)
}

func bytesText(n int64) string {
	if n == 0 {
		return "-"
	}
	return size(int(n))
}

func newRollback(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback [VERSION]",
		Short: "Go back to a version of the app that served before, without downtime",
		Long: `Deploys a version that served before, as 'tendril deploy' does: it starts beside the version that
serves, gets the messages once it is ready, and if it does not become ready, nothing changes and the
exit status is 1. VERSION is a number of 'tendril versions'; without it, the last version that served
before is used. It gets a new number. A version from a folder runs in place, as the folder is now.`,
		Example: "  tendril rollback\n  tendril rollback 12",
		Args:    cobra.MaximumNArgs(1),
	}
	addDataDir(cmd)
	f := addOutput(cmd)
	return changes(c, cmd, func(_ context.Context, cmd *cobra.Command, args []string) (plan, error) {
		number := 0
		if len(args) > 0 {
			var err error
			if number, err = strconv.Atoi(args[0]); err != nil || number < 1 {
				return plan{}, fail(exitUsage, fmt.Errorf("invalid version %q: use a number from 1", args[0]),
					"'tendril versions' lists them")
			}
		}
		client, err := c.dial(cmd)
		return plan{func(ctx context.Context) ([]string, error) {
			all, err := readyToDeploy(ctx, client)
			if err != nil {
				return nil, err
			}
			to, err := api.ChooseVersion(all, number)
			return []string{fmt.Sprintf("roll back to version %d, %s%s", to.Number, sourceText(&to), replacing(all))}, err
		}, func(ctx context.Context) error {
			return deployAndFollow(c, ctx, client, *f, func(ctx context.Context) (api.DeployResult, error) {
				return client.Rollback(ctx, number)
			})
		}}, err
	})
}

// scaleAnswer is what 'tendril scale' prints: what waits, the size wanted, and how that was decided.
type scaleAnswer struct {
	Backlog       int64 `json:"backlog"`
	OldestSeconds int64 `json:"oldestSeconds"`
	Desired       int   `json:"desired"`
	api.ScaleDecisions
}

func newScale(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Show the size wanted, and the last decisions about it",
		Long: `Shows how many replicas of the app, or instances, are wanted, and the last decisions, the newest first,
with what each was made by. Where nothing is scaled, the decisions are advice for an external scaler.`,
		Args: cobra.NoArgs,
	}
	var environment string
	asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (answer scaleAnswer, err error) {
		environment = client.Instance.Environment
		now, err := client.Scale(ctx)
		if err != nil {
			return answer, err
		}
		answer.Backlog, answer.OldestSeconds, answer.Desired = now.Backlog, now.OldestSeconds, now.Desired
		answer.ScaleDecisions, err = client.ScaleDecisions(ctx)
		return answer, err
	}, view[scaleAnswer]{func(a scaleAnswer) error {
		what := "wanted"
		if a.Advice {
			what = "advised; nothing is scaled"
		}
		fmt.Fprintf(c.out, "%d %s, %s waiting\n", a.Desired, what, plural(int(a.Backlog), "message"))
		if len(a.Decisions) == 0 {
			return nil
		}
		rows := table{{"WHEN", "FROM", "TO", "RULE", "BACKLOG", "OLDEST", "BUSY", "CPU", "WHY"}}
		for i := range a.Decisions {
			d := &a.Decisions[i]
			why := d.Why
			if d.NotApplied != "" {
				why += "; not applied: " + d.NotApplied
			}
			row := []string{since(d.Until) + " ago", strconv.Itoa(d.From), strconv.Itoa(d.Desired), d.Rule}
			rows = append(rows, append(append(row, inputTexts(d.Inputs)...), why))
		}
		return c.printTable(rows)
	}, func(scaleAnswer) []string { return []string{environment} }})
	return cmd
}

// inputTexts are backlog, age, busy slots and CPU.
func inputTexts(in *api.ScaleInputs) []string {
	if in == nil {
		return []string{"-", "-", "-", "-"}
	}
	text := func(v *float64, unit string) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.0f%s", *v, unit)
	}
	return []string{text(in.Backlog, ""), text(in.OldestSeconds, "s"), text(in.BusyPercent, "%"), text(in.CPUPercent, "%")}
}

func newInstances(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "instances",
		Short: "List the instances of the environment that are known, and which one leads",
		Long: `Lists this instance, the one that leads as its lease says, and the members of an Auto Scaling group.
What is not known of another instance is left out, and a line below says why.`,
		Args: cobra.NoArgs,
	}
	asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (api.Instances, error) {
		return client.Instances(ctx)
	}, view[api.Instances]{func(all api.Instances) error {
		rows := table{{"INSTANCE", "KNOWN FROM", "STATE", "LEADS", "IN FLIGHT", "VERSION", "STARTED"}}
		for i := range all.Instances {
			one := &all.Instances[i]
			rows = append(rows, []string{one.Name, one.Source, instanceState(one), leadsText(one), inFlightText(one),
				one.Version, since(one.StartedAt)})
		}
		if err := c.printTable(rows); err != nil {
			return err
		}
		for _, note := range all.Notes {
			fmt.Fprintln(c.err, plain(note))
		}
		return nil
	}, func(all api.Instances) []string {
		return named(func(one *api.KnownInstance) string { return one.Name })(all.Instances)
	}})
	return cmd
}

func instanceState(one *api.KnownInstance) string {
	var words []string
	if one.State != "" {
		words = append(words, one.State)
	}
	if one.Unhealthy {
		words = append(words, "unhealthy")
	}
	if one.Protected != nil && *one.Protected {
		words = append(words, "protected")
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func leadsText(one *api.KnownInstance) string {
	if !one.Leads {
		return "-"
	}
	return fmt.Sprintf("term %d, seen %s ago", one.Term, seconds(one.LeaseAgeSeconds))
}

func inFlightText(one *api.KnownInstance) string {
	if one.InFlight == nil {
		return "-"
	}
	return strconv.Itoa(*one.InFlight)
}
