package provision

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/cron/tasks"
)

// IamPolicy is the IAM policy that the settings need; nil where they need none, which is told.
func IamPolicy(c *base.CLI, cmd *cobra.Command, args []string, role string) (*cloud.Policy, error) {
	opts, err := base.PrepareApp(c, cmd, args, c.LookInto)
	if opts.Config == nil { // else there is only no app to run, which does not matter here
		return nil, err
	}

	use := &cloud.Use{Operate: role == RoleOperate}
	if path := opts.CronFile(); path != "" {
		file, err := tasks.Read(path)
		if err != nil {
			return nil, err
		}
		for _, t := range file.Tasks {
			use.TaskQueues = append(use.TaskQueues, t.Queue)
		}
	}

	policy := cloud.PolicyFor(opts.Config, use)
	if len(policy.Statement) == 0 {
		c.PrintErrln("these settings need no permissions on AWS")
		return nil, nil
	}

	for _, q := range opts.Config.Queues {
		if q.Backend == config.BackendSQS && !q.Managed {
			c.PrintWarnings(yamlfile.Problem{Text: "the dead-letter queue of " + q.Name + " is not known here",
				Hint: "write its name in place of " + cloud.UnknownDeadLetterQueue + q.Name})
		}
	}

	return policy, nil
}

// The roles of --iam.
const (
	RoleRun     = "run"     // the environment's
	RoleOperate = "operate" // that of whoever types commands about its queues
)
