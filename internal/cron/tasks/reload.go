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

// errStarting is for what needs the tasks to run.
var errStarting = errors.New("the environment is starting")

// errStopped says that something was not begun since the environment stops.
var errStopped = errors.New("the environment stops")

// Start lets the scheduler and the elector run, and goes on looking for a registry that Open
// did not find out about. It waits up to a second, or until ctx is done, for a registry table that is being checked.
func (m *Manager) Start(ctx context.Context) {
	m.registry.await(ctx)
	m.started.Store(true)
	m.work.Go(func() { m.election.run(m.run) })
	if s := m.current.Load(); s != nil && s.scheduler != nil {
		m.schedule(s)
	}
	if m.registry.undecided.Load() {
		m.work.Go(m.seekRegistry)
	}
}

// schedule lets a scheduler run.
func (m *Manager) schedule(s *schedule) {
	m.work.Go(func() {
		if m.opts.Registry.Broker == nil { // elsewhere it may take a while, which deliveries do not wait for
			for _, name := range s.pauses.read(m.run, m.log) {
				_ = s.scheduler.Pause(name) // one that this file does not have
			}
		}
		s.scheduler.Run(m.run)
	})
	m.work.Go(func() { s.pauses.follow(m.run, s.scheduler) })
	m.work.Go(func() {
		m.file.watch(m.run, func() {
			if err := m.Reload(); err != nil && m.run.Err() == nil {
				event.Deploy.Log(m.log, slog.LevelError, "periodic tasks not reloaded", "err", err)
			}
		})
	})
}

// Reload reads the file of tasks again and puts it in force. On an error the old tasks stay.
func (m *Manager) Reload() error {
	if !m.started.Load() {
		return errStarting
	}
	return m.change(m.run, func(context.Context) error {
		if m.current.Load() == nil {
			return errors.New("there are no periodic tasks to reload")
		}
		return m.reload()
	})
}

// Refresh puts the file of tasks in force as it is now. dir is the app's folder, into which one
// may have come; "" for none.
func (m *Manager) Refresh(ctx context.Context, dir string) error {
	return m.change(ctx, func(ctx context.Context) error {
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

// Adopt puts the tasks of a new version of the app in force, whose file is at path, "" for none.
func (m *Manager) Adopt(ctx context.Context, path string) error {
	return m.change(ctx, func(ctx context.Context) error {
		m.file.setPath(path)
		return m.refresh(ctx)
	})
}

// change makes one change after the other. Its context ends with ctx, and when a stop begins.
func (m *Manager) change(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-m.opts.Stopping:
		case <-m.run.Done():
		case <-over:
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

// refresh reloads the tasks, or begins those of the file where none were scheduled before.
func (m *Manager) refresh(ctx context.Context) error {
	switch s := m.current.Load(); {
	case s != nil && s.scheduler != nil:
		return m.reload()
	case m.file.path() != "":
		return m.begin(ctx)
	default:
		m.current.Store(nil) // they were never scheduled, and are no more
		return nil
	}
}

func (m *Manager) reload() (err error) {
	defer func() { call(m.opts.Observers.Reloaded, err) }()
	file, err := m.file.reread(m.opts.Required)
	if err != nil {
		return fmt.Errorf("the tasks in force stay as they are: %w", err)
	}
	if file.Path != "" && file.stamp == "" {
		m.log.Warn("file of tasks is gone, no periodic task is scheduled", "file", file.Path,
			"hint", "restore the file: it is read within seconds")
	}
	m.file.set(file)
	s := m.current.Load()
	if s.scheduler == nil {
		return fmt.Errorf("%w: %s", ErrNotScheduled, s.off)
	}
	s.scheduler.Reload(m.opts.placed(file.Tasks))
	return nil
}

// begin schedules the tasks of the file, where none were scheduled before. It is given up when
// a stop begins.
func (m *Manager) begin(ctx context.Context) (err error) {
	defer func() { call(m.opts.Observers.Reloaded, err) }()
	file, err := Open(m.file.path(), m.log)
	if err != nil {
		return err
	}

	s, err := m.newSchedule(ctx, nil) // first without: what was due before now is not made up for
	m.registry.await(ctx)
	switch {
	case m.stopping(): // asked directly: ctx ends a moment after the stop began
		return errStopped
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}

	m.file.set(file)
	m.current.Store(s)
	if s.scheduler == nil {
		return fmt.Errorf("%w: %s", ErrNotScheduled, s.off)
	}
	s.scheduler.Reload(m.opts.placed(file.Tasks))
	m.schedule(s)
	return nil
}

// placed returns the tasks of a file, which may be nil, where those whose own queue nobody here works on go to the
// first queue. An embedded queue is made, and given a worker, at the start. A queue elsewhere may be another
// environment's, and is looked up again with each run.
func (o *Options) placed(file *periodic.File) *periodic.File {
	if file == nil {
		return nil
	}
	here := *file
	here.Tasks = slices.Clone(file.Tasks)
	for i := range here.Tasks {
		if t := &here.Tasks[i]; o.isMissing(t.Queue) {
			o.Log.Warn("the queue of a task did not exist at the start, its runs go to the first queue",
				"component", "periodic", "task", t.Name, "queue", t.Queue, "used", o.Registry.Queue,
				"hint", "restart the environment to make it")
			t.Queue = ""
		}
	}
	return &here
}

// isMissing reports whether a task's own queue, "" for none, is an embedded one that nobody here works on.
func (o *Options) isMissing(own string) bool {
	return own != "" && o.Registry.Broker != nil && !o.HasWorker(own)
}

// Pauses between two looks for a registry whose server did not tell.
const (
	firstSeekPause   = time.Second
	longestSeekPause = 30 * time.Second
)

// seekRegistry goes on looking for a registry until the server of the queue tells. Then the
// periodic tasks begin, if there is one.
func (m *Manager) seekRegistry() {
	for pause := firstSeekPause; m.registry.undecided.Load(); pause = min(2*pause, longestSeekPause) {
		select {
		case <-time.After(pause):
		case <-m.run.Done():
			return
		}
		err := m.change(m.run, func(ctx context.Context) error {
			err := m.election.rejoin(ctx)
			if err != nil || m.registry.undecided.Load() {
				return err
			}
			return m.refresh(ctx)
		})
		if err != nil && !errors.Is(err, ErrNotScheduled) && m.run.Err() == nil {
			m.log.Error("periodic tasks not started", "err", err)
		}
	}
}
