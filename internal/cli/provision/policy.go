package provision

import (
	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/cron/tasks"
)

// IamPolicy returns the IAM policy that the settings need. If they need none, it prints a notice and returns nil.
func IamPolicy(c *base.CLI, cmd *cobra.Command, args []string, role string) (*cloud.Policy, error) {
	opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
	if opts.Config == nil { // the app is not needed
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
			c.PrintWarnings(yamlfile.Problem{Text: "the name of the dead-letter queue of " + q.Name + " is unknown here",
				Hint: "replace the placeholder with its name: " + cloud.UnknownDeadLetterQueue + q.Name})
		}
	}

	return policy, nil
}

// Roles for which a policy can be printed.
const (
	RoleRun     = "run"     // for the environment itself
	RoleOperate = "operate" // for people who run commands
)
