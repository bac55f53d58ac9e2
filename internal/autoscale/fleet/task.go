package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/aws"
)

// agentVariable is where Amazon ECS tells its containers of their agent.
//
// Source: Amazon ECS Developer Guide, "Task scale-in protection endpoint".
const agentVariable = "ECS_AGENT_URI"

// agentTimeout bounds a call of the agent, which is on the same machine.
const agentTimeout = 3 * time.Second

// InTask reports whether this process runs in a task of Amazon ECS.
func InTask() bool { return os.Getenv(agentVariable) != "" }

// ProtectTask keeps the task of Amazon ECS that this process is in from being stopped by scale-in or a
// deployment while long work runs. Call end when the work is over: it takes the protection away, and waits for
// that no longer than its context. protected is told as [Options].Protected is. The error says that the agent's address
// is not valid.
func ProtectTask(work func() autoscale.Work, timing Timing, log *slog.Logger, protected func(on bool)) (
	end func(context.Context) error, err error) {
	task, err := aws.NewECSTask(os.Getenv(agentVariable))
	if err != nil {
		return nil, fmt.Errorf("protecting this task: %w", err)
	}
	keep, stop := context.WithCancel(context.Background())
	protector := &autoscale.Protector{
		Guard: task, Work: work, Protection: autoscale.Protection{After: timing.ProtectAfter}, Interval: timing.Look,
		CallTimeout: agentTimeout, Renew: aws.TaskProtection / 2,
		Events: withProtection(autoscale.LogEvents(log, "tasks"), protected),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); protector.Run(keep) }()
	return func(ctx context.Context) error {
		stop()
		select {
		case <-ended:
		case <-ctx.Done(): // it ends with the task
		}
		return nil
	}, nil
}
