package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"tendril/config"
	"tendril/leader"
	"tendril/periodic"
)

// tasks is the part that enqueues periodic tasks, on whichever instance leads.
type tasks struct {
	file      string // the cron.yaml
	scheduler *periodic.Scheduler
	elector   *leader.Elector // nil when this instance is declared the only one
	pauses    pauses
	// off says why nothing is scheduled, "" when it is.
	off string

	mu      sync.Mutex
	running map[string]int    // deliveries in work here, by task
	why     map[string]string // reasons of the pauses, by task
}

func (t *tasks) begun(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[task]++
}

func (t *tasks) ended(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[task]--; t.running[task] == 0 {
		delete(t.running, task)
	}
}

// taskRunning reports whether the previous run of a task is unfinished: the app
// works on it here, or its message still lies in an embedded queue. Of runs
// that other machines work on, nothing is known.
func (e *Environment) taskRunning(task string) bool {
	t := e.tasks
	t.mu.Lock()
	inWork := t.running[task] > 0
	t.mu.Unlock()
	if inWork || e.broker == nil {
		return inWork
	}
	for _, run := range t.scheduler.History(task) {
		if run.MessageID == "" {
			continue
		}
		_, err := e.broker.Message(context.Background(), e.taskQueue(task), run.MessageID)
		return err == nil
	}
	return false
}

// taskQueue is the name of the queue that a task is enqueued on.
func (e *Environment) taskQueue(task string) string {
	all, _ := e.tasks.scheduler.Status()
	for _, t := range all {
		if t.Task.Name == task && t.Task.Queue != "" {
			return t.Task.Queue
		}
	}
	return e.work.queue.name
}

// leaseName is the lease by which the instances of an environment agree on
// who enqueues periodic tasks: those that share a queue share a leader.
func (e *Environment) leaseName() string { return "periodic:" + e.work.queue.name }

// cronFile is the path of the file of tasks; "" when there is none.
func (e *Environment) cronFile() string {
	if e.s.Cron != "" {
		return e.s.Cron
	}
	if e.Bundle != nil {
		return e.Bundle.Cron
	}
	return ""
}

// ReadTasks reads a cron.yaml from disk, bounded. The error is a
// [*periodic.Error] when the file is wrong.
func ReadTasks(path string) (*periodic.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the periodic tasks: %w", err)
	}
	defer f.Close()
	data := make([]byte, periodic.MaxFile+1)
	n, err := readFull(f, data)
	if err != nil {
		return nil, fmt.Errorf("reading the periodic tasks: %s: %w", path, err)
	}
	return periodic.ParseFile(path, data[:n])
}

// buildTasks reads the file of tasks and makes the scheduler and the elector.
// It comes before the app starts, so that a bad file stops the start.
func (e *Environment) buildTasks(ctx context.Context) error {
	path := e.cronFile()
	if path == "" {
		return nil
	}
	file, err := ReadTasks(path)
	if err != nil {
		return err
	}
	for _, w := range file.Warnings {
		e.report.note(slog.LevelWarn, "periodic", w.String(), slog.String("hint", w.Hint))
	}
	e.tasks = &tasks{file: path, running: map[string]int{}, why: map[string]string{}}
	reg, err := e.openRegistry(ctx)
	if err != nil {
		return err
	}
	if reg == nil {
		e.tasks.off = "no leader can be elected: give --registry-table NAME (and --registry-create to make it), or --leader local when this is the only instance"
		e.report.note(slog.LevelWarn, "periodic", fmt.Sprintf("the %d periodic tasks of %s are not scheduled: %s", len(file.Tasks), path, e.tasks.off))
		return nil
	}
	e.tasks.pauses = reg.pauses
	var lead periodic.Leadership = alone{make(chan struct{})}
	if e.s.Leader == config.LeaderElect {
		if e.tasks.elector, err = leader.New(reg.leases, leader.Options{
			Name: e.leaseName(), Data: e.address, Lease: e.s.Lease, Events: e.leaderEvents(),
		}); err != nil {
			return err
		}
		lead = e.tasks.elector
	}
	e.tasks.scheduler = periodic.New(file, lead, reg.runs(lead), periodic.Options{
		Queue: e.work.queue.name, Running: e.taskRunning, Paused: e.pausedAtStart(ctx, reg.pauses), Events: e.taskEvents(),
	})
	return nil
}

// runTasks lets elector and scheduler run. At the stop, scheduling ends and the
// lease is given back before anything else.
func (e *Environment) runTasks(context.Context) error {
	t := e.tasks
	if t == nil || t.scheduler == nil {
		return nil
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	n := 1
	go func() { t.scheduler.Run(run); ended <- struct{}{} }()
	lease, release := context.WithCancel(context.Background())
	if t.elector != nil {
		n++
		go func() { t.elector.Run(lease); ended <- struct{}{} }()
	}
	go e.watchPauses(run)
	go e.watchFile(run)
	e.steps.push("the periodic tasks", func(context.Context) error {
		stop()
		release()
		for range n {
			<-ended
		}
		return nil
	})
	return nil
}

// alone is the leadership of the only instance. Its term is 1 for ever.
type alone struct{ never chan struct{} }

func (alone) Term() (int64, bool) { return 1, true }

func (a alone) Changed() <-chan struct{} { return a.never }

// fileRhythm is how often the file of tasks is looked at for changes.
const fileRhythm = 2 * time.Second

// watchFile reloads the tasks when their file has changed.
func (e *Environment) watchFile(ctx context.Context) {
	tick := time.NewTicker(fileRhythm)
	defer tick.Stop()
	last := fileStamp(e.tasks.file)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := fileStamp(e.tasks.file)
		if now == last || now == "" {
			continue // a file that is being replaced may be away for a moment
		}
		last = now
		if err := e.Reload(); err != nil {
			e.report.note(slog.LevelError, "periodic", err.Error())
		}
	}
}

// fileStamp changes when a file does; "" when it is not there.
func fileStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// Reload reads the file of tasks again and puts it in force. On an error the
// old tasks stay.
func (e *Environment) Reload() error {
	s, err := e.scheduler()
	if err != nil || e.cronFile() == "" {
		return errors.New("there are no periodic tasks to reload")
	}
	file, err := ReadTasks(e.tasks.file)
	if err != nil {
		return fmt.Errorf("the tasks in force stay as they are: %w", err)
	}
	s.Reload(file)
	return nil
}

func (e *Environment) leaderEvents() *leader.Events {
	note := func(level slog.Level, text string) { e.report.note(level, "leader", text) }
	return &leader.Events{
		Elected: func(x leader.Elected) { note(slog.LevelInfo, x.String()) },
		Lost: func(x leader.Lost) {
			level := slog.LevelWarn
			if e.stopping() {
				level = slog.LevelInfo
			}
			note(level, x.String())
		},
		Following: func(x leader.Following) { note(slog.LevelInfo, x.String()) },
		Failed:    func(x leader.Failure) { note(slog.LevelWarn, x.String()) },
	}
}

func (e *Environment) taskEvents() periodic.Events {
	note := func(level slog.Level, task, text string, attrs ...slog.Attr) {
		e.report.note(level, "periodic", text, append([]slog.Attr{slog.String("task", task)}, attrs...)...)
	}
	return periodic.Events{
		Fired: func(f periodic.Fired) {
			note(slog.LevelInfo, f.Task, fmt.Sprintf("task %s is enqueued for %s, %s late", f.Task, f.ScheduledAt.Format(time.RFC3339), short(f.Lateness)),
				slog.String("fire_id", f.ID), slog.String("queue", f.Queue), slog.String("message_id", f.MessageID), slog.Bool("resent", f.Resent))
		},
		Skipped: func(s periodic.Skipped) {
			level := slog.LevelWarn
			if s.Reason == periodic.ReasonPaused || s.Reason == periodic.ReasonAlready {
				level = slog.LevelDebug
			}
			note(level, s.Task, fmt.Sprintf("task %s: %d runs up to %s are left out: %s", s.Task, s.Count, s.To.Format(time.RFC3339), s.Reason), slog.String("reason", string(s.Reason)))
		},
		Failed: func(f periodic.Failed) {
			note(slog.LevelWarn, f.Task, fmt.Sprintf("task %s: %v; again in %s", f.Task, f.Err, short(f.Retry)), slog.String("fire_id", f.ID))
		},
		Reloaded: func(r periodic.Reloaded) {
			note(slog.LevelInfo, "", fmt.Sprintf("%d periodic tasks: %d new, %d gone, %d changed", r.Tasks, r.Added, r.Removed, r.Changed))
		},
		ClockStepped: func(c periodic.ClockStepped) {
			note(slog.LevelWarn, "", fmt.Sprintf("the clock was set, or the machine stood still: %s", c.By.Round(time.Millisecond)))
		},
		Held: func(h periodic.Held) {
			verb := "goes on"
			if h.Paused {
				verb = "is paused"
			}
			note(slog.LevelInfo, h.Task, fmt.Sprintf("task %s %s", h.Task, verb))
		},
	}
}
