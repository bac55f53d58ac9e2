package deploy

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
)

// NewVersions returns the command 'tendril versions'.
func NewVersions(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions",
		Short: "List the versions of the app: the live one, and those kept for rollback",
		Long: `Lists deployed versions, newest first:

  live    serving now
  kept    served before; 'tendril rollback' restores it
  failed  never became ready; not kept

The last five archives are kept. A folder runs in place, so its row shows its most recent deployment.

With a fleet key, these are the versions of all instances; "deploying" is the one that is being deployed.`,
		Args: cobra.NoArgs,
	}
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) ([]api.AppVersion, error) {
		return client.Versions(ctx)
	}, versionList.View(c))
	return cmd
}

var versionList = base.List[api.AppVersion]{
	Heading: []string{"VERSION", "STATE", "SOURCE", "SIZE", "DEPLOYED", "BY"},
	Name:    func(v *api.AppVersion) string { return strconv.Itoa(v.Number) },
	Empty:   "no version has served yet",
	Row: func(v *api.AppVersion) []string {
		size := "-"
		if v.Size != 0 {
			size = base.Size(int(v.Size))
		}
		return []string{versionText(v), v.State, sourceText(v), size, base.Since(v.DeployedAt) + " ago", v.By}
	},
}

func versionText(v *api.AppVersion) string {
	if v.Of != 0 {
		return fmt.Sprintf("%d (%d again)", v.Number, v.Of)
	}
	return strconv.Itoa(v.Number)
}

func sourceText(v *api.AppVersion) string {
	switch {
	case v.InPlace:
		return v.Source + " (in place, no rollback)"
	case v.Folder == "" && v.State != api.VersionFailed:
		return v.Source
	}
	return filepath.Base(v.Source)
}

func versionArgument(args []string) (int, error) {
	if len(args) == 0 {
		return 0, nil // the default
	}
	number, err := strconv.Atoi(args[0])
	if err != nil || number < 1 {
		return 0, base.Usagef("invalid version %q: use a number from 1", args[0]).Hint("'tendril versions' lists them")
	}
	return number, nil
}

// NewRollback returns the command 'tendril rollback'.
func NewRollback(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback [VERSION]",
		Short: "Roll back to a previous version without downtime",
		Long: `Deploys a version that served before, like 'tendril deploy': it starts beside the current version and
gets the messages once it is ready. If it does not become ready, nothing changes and the exit status is
1. VERSION is a number from 'tendril versions'; the default is the last version that served before the
current one. It gets a new number. A version from a folder runs in place, with the folder's current
content.

With a fleet key, all instances go back at once. Deliveries pause until the restored version is
ready.`,
		Example: "  tendril rollback\n  tendril rollback 12",
		Args:    cobra.MaximumNArgs(1),
	}

	base.AddDataDir(cmd)
	f := base.AddOutput(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		number, err := versionArgument(args)
		if err != nil {
			return nil, err
		}
		client, err := c.Dial(cmd)
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) {
			all, err := readyToDeploy(ctx, client)
			if err != nil {
				return nil, err
			}
			to, err := api.ChooseVersion(all, number)
			return []string{fmt.Sprintf("roll back to version %d, %s%s", to.Number, sourceText(&to), replacedVersionText(all))}, err
		}, func() error {
			return deployAndFollow(ctx, c, client, *f, func(ctx context.Context) (api.DeployResult, error) {
				return client.Rollback(ctx, number)
			})
		}), nil
	})
}
