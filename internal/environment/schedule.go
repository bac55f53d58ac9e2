package environment

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/tasks"
	"tendril/internal/instances"
)

type schedule struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	work     *pipelines
	observe  *observer
	instance *instance

	file     tasks.File
	tasks    *tasks.Manager   // nil before build and without workers
	election *tasks.Election  // of the leader, which also leads the fleet
	wall     func() time.Time // for tests; nil means the system clock
	revision func() int64
	announce func() string
}

func (s *schedule) read(context.Context) (err error) {
	if err := s.opts.Validate(); err != nil {
		return err
	}
	s.file, err = tasks.Open(s.opts.CronFile(), s.opts.log("periodic"))
	return err
}

func (s *schedule) build(ctx context.Context) error {
	set, home := s.settings.now(), s.queues.home()
	remote, _ := home.source.(*aws.Queue)
	registry := tasks.RegistryOptions{
		Queue: home.name, QueueURL: home.url, SQS: s.queues.sqs, Home: remote, Local: set.Leader == config.LeaderLocal,
		Token:    cmp.Or(set.RegistryToken, tasks.SharedToken(s.opts.stateFolder(), home.url)),
		Insecure: set.RegistryInsecure,
		Table:    set.RegistryTable, Region: set.Region, Create: set.RegistryCreate,
		Tags: aws.Tags(set.Name), SDK: s.opts.Logger.SDK,
	}
	if home.embedded {
		registry.Broker = s.queues.broker
	}
	telemetry := s.observe.telemetry
	opts := tasks.Options{
		File: s.file, Required: set.Cron != "", Registry: registry, Lease: set.Lease, Address: s.instance.public,
		Watch: s.watch, Revision: s.revision, Announce: s.announce,
		HasWorker: func(queue string) bool { return s.queues.named(queue) != nil },
		Observers: tasks.Observers{Scheduler: *telemetry.Periodic(), Leader: *telemetry.Leader(),
			Reloaded: telemetry.Reloaded},
		Stopping: s.life.draining, Wall: s.wall, Log: s.opts.Logger.Logger,
	}
	if s.work.pauses != nil {
		opts.Pauses = s.work.pauses
		opts.HistoryFile = filepath.Join(set.DataDir, tasks.HistoryFile)
	}

	s.tasks = tasks.New(opts)
	s.life.runUntilStop("the task history", s.tasks.KeepHistory) // until the workers have stopped
	s.election = s.tasks.Election()
	return s.tasks.Open(ctx, set.PeriodicTrust == config.TrustRegistry)
}

// watch returns the interval at which this instance reads another leader's lease; 0 means the default. A longer
// interval saves money on DynamoDB where noticing a new leader is not urgent.
func (s *schedule) watch() time.Duration {
	set := s.settings.now()
	if set.RegistryTable == "" || set.FleetKey != "" || mayScaleInstances(set) || s.tasks.Any() || set.RegistryLostAfter > 0 {
		return 0
	}
	return instances.FreshFor
}

func (s *schedule) run(ctx context.Context) error {
	s.tasks.Start(ctx)
	s.life.onStop("the periodic tasks", s.tasks.Stop)
	return nil
}

func (s *schedule) running() *tasks.Manager {
	if !s.life.running() {
		return nil
	}
	return s.tasks
}

func (s *schedule) any() bool {
	m := s.running()
	return m != nil && m.Any()
}

func (s *schedule) leads() bool {
	m := s.running()
	return m != nil && m.Leading()
}

func (s *schedule) adoptTasks(ctx context.Context, b *bundle.Bundle) {
	if b == nil || s.settings.now().Cron != "" {
		return
	}
	if err := s.tasks.Adopt(ctx, b.Cron); err != nil && !errors.Is(err, tasks.ErrNotScheduled) && !s.life.stopping() {
		s.opts.log("periodic").Error("tasks of the new version not applied", "err", err)
	}
}

// claimCommands always succeeds without a shared registry.
func (s *schedule) claimCommands(ctx context.Context, version string) (app.CommandClaim, error) {
	claim, err := tasks.AcquireVersion(ctx, s.tasks, version)
	switch {
	case errors.Is(err, tasks.ErrNoRegistry):
		if s.settings.now().Leader != config.LeaderLocal {
			s.opts.log("app").Warn("leader_only commands run on every instance",
				"hint", "give all instances the same --registry-table so that only the leader runs them, or --leader "+
					"local")
		}
		return soleClaim{ctx}, nil
	case err != nil:
		return nil, err
	case claim == nil:
		return nil, nil // not a nil *leader.Work in the interface
	}
	return claim, nil
}

type soleClaim struct{ ctx context.Context }

func (s soleClaim) Context() context.Context { return s.ctx }

func (s soleClaim) Finish(context.Context, bool) error { return nil }

func (s *schedule) console() *console.TaskOptions {
	started := func(do func(m *tasks.Manager) error) error {
		if m := s.running(); m != nil {
			return do(m)
		}
		return errStarting
	}
	return &console.TaskOptions{
		Any: func() bool { return s.opts.CronFile() != "" || s.any() },
		Status: func() api.TasksStatus {
			if m := s.running(); m != nil {
				return m.Status()
			}
			return api.TasksStatus{File: s.opts.CronFile(), Off: errStarting.Error()}
		},
		History: func(name string) []api.TaskRun {
			if m := s.running(); m != nil {
				return m.History(name)
			}
			return nil
		},
		Run: func(ctx context.Context, name string) (run api.TaskRun, err error) {
			err = started(func(m *tasks.Manager) (err error) { run, err = m.Run(ctx, name); return err })
			return run, err
		},
		Pause: func(ctx context.Context, name, reason, by string) error {
			return started(func(m *tasks.Manager) error { return m.Pause(ctx, name, reason, by) })
		},
		Resume: func(ctx context.Context, name string) error {
			return started(func(m *tasks.Manager) error { return m.Resume(ctx, name) })
		},
	}
}

var errNoQueueServer = errors.New("the queue server does not respond")

func (s *schedule) leases(ctx context.Context) (instances.Store, error) {
	leases, _, err := s.election.Leases(ctx)
	if err == nil && leases == nil {
		err = errNoQueueServer
	}
	return leases, err
}
