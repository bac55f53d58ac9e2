package environment

import (
	"context"
	"fmt"
	"os"
	"time"

	"tendril/autoscale"
	"tendril/aws"
	"tendril/config"
)

// agentVariable is where Amazon ECS tells its containers of their agent.
const agentVariable = "ECS_AGENT_URI"

// agentPatience bounds a call of the agent, which is on the same machine.
const agentPatience = 3 * time.Second

// inTask reports whether this process runs in a task of Amazon ECS, and is to protect it.
func (e *Environment) inTask() bool {
	return e.s.ScaleInProtection != config.ProtectionOff && os.Getenv(agentVariable) != ""
}

// protectTask keeps the task of Amazon ECS that this is, if it is one, from being
// stopped by scale-in or a deployment while long work runs. It ends after the drain.
func (e *Environment) protectTask(context.Context) error {
	if !e.inTask() {
		return nil
	}
	task, err := aws.NewTask(os.Getenv(agentVariable))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	keep, end := context.WithCancel(context.Background())
	protector := &autoscale.Protector{
		Guard: task, Work: e.hand.work, Protection: autoscale.Protection{After: e.pace.protectAfter}, Interval: e.pace.look, CallTimeout: agentPatience, Renew: aws.TaskProtection / 2,
		Events: e.scaleEvents("task", "tasks"),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = protector.Run(keep) }()
	e.steps.push("the protection of the task", func(ctx context.Context) error {
		end()
		select {
		case <-ended:
		case <-ctx.Done(): // it ends with the task
		}
		return nil
	})
	return nil
}
