package deploy

import (
	"context"
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
)

const rolloutTick = 2 * time.Second

func awaitRollout(ctx context.Context, c *base.CLI, client *api.Client, number int) error {
	reported := ""
	for {
		versions, err := client.Versions(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(versions, func(v api.AppVersion) bool { return v.Number == number })
		if i < 0 {
			return base.Conflictf("version %d was replaced by a later deployment", number).Hint("'tendril versions' lists the versions")
		}
		all, err := client.Instances(ctx)
		if err != nil {
			return err
		}
		text, unreachable := all.Rollout(number)
		switch versions[i].State {
		case api.VersionFailed:
			return base.Conflictf("version %d was rolled back on all instances: %s", number, base.Plain(versions[i].Error)).
				Hint("fix the problem and deploy again; 'tendril instances' shows when all have returned")
		case api.VersionDeploying:
			if text != reported {
				c.PrintErrln(base.Plain(text))
				reported = text
			}
		default:
			for _, name := range unreachable {
				c.PrintErrf("%s is unreachable: it deploys version %d once it reaches the registry\n", base.Plain(name), number)
			}
			return nil
		}

		select {
		case <-ctx.Done():
			return base.Interrupted("interrupted; the deployment continues",
				"'tendril versions' shows its state, 'tendril deploy --abort' ends it")
		case <-time.After(rolloutTick):
		}
	}
}
