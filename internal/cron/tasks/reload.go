package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/internal/observe/event"
)

var errStarting = errors.New("the environment is starting")

var errStopped = errors.New("the environment is stopping")

// Start starts the scheduler and the elector, and keeps looking for an undecided registry. It may wait a second for a
// registry table.
func (m *Manager) Start(ctx context.Context) {
	m.registry.awaitTable(ctx)
	m.started.Store(true)
	m.work.Go(func() { m.election.run(m.run) })
	if s := m.scheduling(); s != nil {
		m.runSchedule(s)
	}
	if m.registry.undecided.Load() {
		m.work.Go(m.seekRegistry)
	}
}

func (m *Manager) runSchedule(s *schedule) {
	m.work.Go(func() {
		if m.opts.Registry.Broker == nil { // deliveries must not wait for the network
			m.warnPausesUnread(s.pauses.refresh(m.run))
		}
		s.scheduler.Run(m.run)
	})
	m.work.Go(func() { s.pauses.follow(m.run) })
	m.work.Go(func() { m.file.watch(m.run, m.reloadChanged) })
}

func (m *Manager) reloadChanged() {
	if err := m.Reload(); err != nil && m.run.Err() == nil {
		event.Deploy.Log(m.log, slog.LevelError, "periodic tasks not reloaded", "err", err)
	}
}

// Reload reads the file again. If that fails, the previous tasks continue.
func (m *Manager) Reload() error {
	if !m.started.Load() {
		return errStarting
	}
	return m.withChangeLock(m.run, func(context.Context) error {
		if m.current.Load() == nil {
			return errors.New("no periodic tasks to reload")
		}
		return m.reload()
	})
}

// Refresh applies the current file. dir, which may be "", is the app's directory and may contain a new file.
func (m *Manager) Refresh(ctx context.Context, dir string) error {
	return m.withChangeLock(ctx, func(ctx context.Context) error {
		if dir != "" && !m.opts.Required && (m.current.Load() == nil || m.file.path() == "") {
			path := filepath.Join(dir, "cron.yaml")
			if stamp(path) == "" {
				path = ""
			}
			m.file.setPath(path)
		}
		return m.refresh(ctx)
	})
}

// Adopt applies the tasks of a new app version. path may be "".
func (m *Manager) Adopt(ctx context.Context, path string) error {
	return m.withChangeLock(ctx, func(ctx context.Context) error {
		m.file.setPath(path)
		return m.refresh(ctx)
	})
}

// withChangeLock calls do with a context that shutdown also cancels.
func (m *Manager) withChangeLock(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-m.opts.Stopping:
		case <-m.run.Done():
		case <-stopped:
		}
		cancel()
	}()

	select {
	case <-m.changing:
		defer func() { m.changing <- struct{}{} }()
	case <-ctx.Done():
		return errStopped
	}
	return do(ctx)
}

func (m *Manager) refresh(ctx context.Context) error {
	switch {
	case m.scheduling() != nil:
		return m.reload()
	case m.file.path() != "":
		return m.startTasks(ctx)
	default:
		m.current.Store(nil)
		return nil
	}
}

func (m *Manager) reload() (err error) {
	defer func() { call(m.opts.Observers.Reloaded, err) }()
	file, err := m.file.reread(m.opts.Required)
	if err != nil {
		return fmt.Errorf("the current tasks stay in force: %w", err)
	}
	if file.Path != "" && file.stamp == "" {
		m.log.Warn("task file removed, no periodic task is scheduled", "file", file.Path,
			"hint", "restore the file: it is read within seconds")
	}
	return m.apply(m.current.Load(), file)
}

func (m *Manager) apply(s *schedule, file File) error {
	m.file.set(file)
	if s.scheduler == nil {
		return fmt.Errorf("%w: %s", ErrNotScheduled, s.off)
	}
	s.scheduler.Reload(m.opts.withKnownQueues(file.Tasks))
	return nil
}

func (m *Manager) startTasks(ctx context.Context) (err error) {
	defer func() { call(m.opts.Observers.Reloaded, err) }()
	file, err := Open(m.file.path(), m.log)
	if err != nil {
		return err
	}

	s, err := m.newSchedule(ctx, nil) // earlier runs are not caught up
	m.registry.awaitTable(ctx)
	switch {
	case m.stopping(): // ctx is canceled slightly later
		return errStopped
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}

	m.current.Store(s)
	if err := m.apply(s, file); err != nil {
		return err
	}
	m.runSchedule(s)
	return nil
}

// withKnownQueues moves tasks of missing embedded queues to the first queue, because embedded queues are created only
// at startup. file may be nil.
func (o *Options) withKnownQueues(file *periodic.File) *periodic.File {
	if file == nil {
		return nil
	}
	here := *file
	here.Tasks = slices.Clone(file.Tasks)
	for i := range here.Tasks {
		if t := &here.Tasks[i]; o.isMissing(t.Queue) {
			o.Log.Warn("queue of a task did not exist at startup, its runs go to the first queue",
				"component", "periodic", "task", t.Name, "queue", t.Queue, "used", o.Registry.Queue,
				"hint", "restart the environment to create it")
			t.Queue = ""
		}
	}
	return &here
}

func (o *Options) isMissing(queue string) bool {
	return queue != "" && o.Registry.Broker != nil && !o.HasWorker(queue)
}

const (
	firstSeekPause   = time.Second
	longestSeekPause = 30 * time.Second
)

func (m *Manager) seekRegistry() {
	for pause := firstSeekPause; m.registry.undecided.Load(); pause = min(2*pause, longestSeekPause) {
		select {
		case <-time.After(pause):
		case <-m.run.Done():
			return
		}
		err := m.withChangeLock(m.run, m.startIfDecided)
		if err != nil && !errors.Is(err, ErrNotScheduled) && m.run.Err() == nil {
			m.log.Error("periodic tasks not started", "err", err)
		}
	}
}

func (m *Manager) startIfDecided(ctx context.Context) error {
	err := m.election.rejoin(ctx)
	if err != nil || m.registry.undecided.Load() {
		return err
	}
	return m.refresh(ctx)
}
