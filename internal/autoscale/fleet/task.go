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

// Source: Amazon ECS Developer Guide, "Amazon ECS task scale-in protection endpoint".
const agentVariable = "ECS_AGENT_URI"

const agentTimeout = 3 * time.Second

// InTask reports whether this process runs in an ECS task.
func InTask() bool { return os.Getenv(agentVariable) != "" }

// ProtectTask protects this process's ECS task from scale-in and deployments during long deliveries. end removes the
// protection, or returns when its context ends. protected is as in [Options]. An invalid agent address is an error.
func ProtectTask(work func() autoscale.Work, timing Timing, log *slog.Logger, protected func(on bool)) (
	end func(context.Context) error, err error) {
	task, err := aws.NewECSTask(os.Getenv(agentVariable))
	if err != nil {
		return nil, fmt.Errorf("protecting this task: %w", err)
	}

	keep, stop := context.WithCancel(context.Background())
	protector := &autoscale.Protector{
		Guard: task, Work: work, After: timing.ProtectAfter, Interval: timing.Look,
		CallTimeout: agentTimeout, Renew: aws.TaskProtection / 2,
		Events: withProtection(autoscale.LogEvents(log, "tasks"), protected),
	}

	ended := make(chan struct{})
	go func() { defer close(ended); protector.Run(keep) }()
	return func(ctx context.Context) error {
		stop()
		select {
		case <-ended:
		case <-ctx.Done(): // the protection ends with the task
		}
		return nil
	}, nil
}
