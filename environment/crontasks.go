package environment

import (
	"context"
	"errors"
	"fmt"

	"tendril/aws"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/tasks"
)

// CronFile is the path of the file of tasks; "" when there is none.
func (o *Options) CronFile() string {
	if o.Config.Cron != "" {
		return o.Config.Cron
	}
	if o.Bundle != nil {
		return o.Bundle.Cron
	}
	return ""
}

// readTasks reads the file of tasks before anything else starts, so that a bad file stops the
// start.
func (e *Environment) readTasks(context.Context) (err error) {
	e.cronFile, err = tasks.Open(e.CronFile(), e.Logger.With("component", "periodic"))
	return err
}

// buildTasks makes what enqueues the periodic tasks.
func (e *Environment) buildTasks(ctx context.Context) error {
	home := e.home()
	onSQS, _ := home.queue.Queue.(*aws.Queue)
	at := tasks.RegistryOptions{
		Queue: home.queue.name, QueueURL: home.queue.url, SQS: e.sqs, Home: onSQS, Local: e.s.Leader == config.LeaderLocal,
		Table: e.s.RegistryTable, Region: e.s.Region, Create: e.s.RegistryCreate, SDK: e.Logger.SDK,
	}
	if home.embedded {
		at.Broker = e.broker
	}
	e.tasks = tasks.New(tasks.Options{
		File: e.cronFile, Required: e.s.Cron != "", Registry: at, Lease: e.s.Lease, Address: e.address,
		HasWorker: func(queue string) bool { return e.lineOf(queue) != nil },
		Observers: tasks.Observers{Scheduler: *e.telemetry.Periodic(), Leader: *e.telemetry.Leader(),
			Reloaded: e.telemetry.Reloaded},
		Stopping: e.draining, Wall: e.wall, Log: e.Logger.Logger,
	})
	return e.tasks.Open(ctx, e.s.PeriodicTrust == config.TrustRegistry)
}

// runTasks lets the periodic tasks run.
func (e *Environment) runTasks(context.Context) error {
	e.tasks.Start()
	e.steps.push("the periodic tasks", func(ctx context.Context) error {
		if err := e.tasks.Stop(ctx); err != nil {
			return fmt.Errorf("enqueueing does not end: %w", cutBy(ctx))
		}
		return nil
	})
	return nil
}

// taskOptions is what the console may ask and do about periodic tasks; nil where it cannot have
// any.
func (e *Environment) taskOptions() *console.TaskOptions {
	if e.QueuesOnly {
		return nil
	}
	return &console.TaskOptions{
		Any: func() bool { return e.CronFile() != "" || e.running() && e.tasks.Any() },
		Status: func() console.TasksStatus {
			if !e.running() {
				return console.TasksStatus{File: e.CronFile(), Off: errStarting.Error()}
			}
			return e.tasks.Status()
		},
		Run: func(ctx context.Context, name string) (run console.TaskRun, err error) {
			if !e.running() {
				return run, errStarting
			}
			return e.tasks.Run(ctx, name)
		},
		Pause: func(ctx context.Context, name, reason string) error {
			if !e.running() {
				return errStarting
			}
			return e.tasks.Pause(ctx, name, reason)
		},
		Resume: func(ctx context.Context, name string) error {
			if !e.running() {
				return errStarting
			}
			return e.tasks.Resume(ctx, name)
		},
		History: func(name string) []console.TaskRun {
			if !e.running() {
				return nil
			}
			return e.tasks.History(name)
		},
		Reload: func() error {
			if !e.running() {
				return errStarting
			}
			return e.tasks.Reload()
		},
	}
}

// adoptTasks puts the periodic tasks of a new version in force, which were checked.
func (e *Environment) adoptTasks(ctx context.Context, b *bundle.Bundle) {
	if b == nil || e.s.Cron != "" {
		return
	}
	if err := e.tasks.Adopt(ctx, b.Cron); err != nil && !errors.Is(err, tasks.ErrNotScheduled) && !e.stopping() {
		e.Logger.Error("tasks of the new version not adopted", "component", "periodic", "err", err)
	}
}
