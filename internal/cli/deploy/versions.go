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
		Short: "List the versions of the app: the one that serves, and those kept to go back to",
		Long: `Lists the versions that were deployed, the newest first. live is the one that serves; kept served
before, and 'tendril rollback' goes back to it; failed did not come up, and nothing of it was kept.
The copies of the last five archives are kept. A folder runs in place: its row stands for what was
deployed from it last.`,
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
		return []string{versionText(v), v.State, sourceText(v), bytesText(v.Size), base.Since(v.DeployedAt) + " ago", v.By}
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
		return v.Source + " (in place, cannot be rolled back to)"
	case v.Folder == "" && v.State != api.VersionFailed:
		return v.Source
	}
	return filepath.Base(v.Source)
}

func bytesText(n int64) string {
	if n == 0 {
		return "-"
	}
	return base.Size(int(n))
}

// NewRollback returns the command 'tendril rollback'.
func NewRollback(c *base.CLI) *cobra.Command {
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

	base.AddDataDir(cmd)
	f := base.AddOutput(cmd)
	return base.Changes(c, cmd, func(_ context.Context, cmd *cobra.Command, args []string) (base.Plan, error) {
		number := 0
		if len(args) > 0 {
			var err error
			if number, err = strconv.Atoi(args[0]); err != nil || number < 1 {
				return base.Plan{}, base.Usagef("invalid version %q: use a number from 1", args[0]).
					Hint("'tendril versions' lists them")
			}
		}

		client, err := c.Dial(cmd)
		return base.PlanOf(func(ctx context.Context) ([]string, error) {
			all, err := readyToDeploy(ctx, client)
			if err != nil {
				return nil, err
			}
			to, err := api.ChooseVersion(all, number)
			return []string{fmt.Sprintf("roll back to version %d, %s%s", to.Number, sourceText(&to), replacing(all))}, err
		}, func(ctx context.Context) error {
			return deployAndFollow(ctx, c, client, *f, func(ctx context.Context) (api.DeployResult, error) {
				return client.Rollback(ctx, number)
			})
		}), err
	})
}
