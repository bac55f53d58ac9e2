package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"tendril/app"
	"tendril/config"
	"tendril/leader"
	"tendril/periodic"
)

// tasks is the part that enqueues periodic tasks, on whichever instance leads.
type tasks struct {
	scheduler *periodic.Scheduler
	elector   *leader.Elector // nil when this instance is declared the only one
	pauses    pauses
	// pauseRhythm is how often to look for pauses by other instances.
	pauseRhythm time.Duration
	// off says why nothing is scheduled, "" when it is.
	off string

	mu sync.Mutex
	taskFile
	running map[string]int    // deliveries in work here, by task
	why     map[string]string // reasons of the pauses, by task
}

// taskFile is a file of tasks that was read.
type taskFile struct {
	path  string         // "" for none
	stamp string         // what the file was like
	read  *periodic.File // nil for none
}

// file is the path of the tasks in force.
func (t *tasks) file() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.path
}

// listed are the tasks of the file, scheduled or not.
func (t *tasks) listed() []periodic.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read.Tasks
}

// setListed notes what the file says now.
func (t *tasks) setListed(file *periodic.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = file
}

// setFile has the next reload read another file.
func (t *tasks) setFile(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.path = path
}

// look returns the path of the tasks in force, and notes what its file is like now; and
// whether that is news. A file that is being replaced may be away for a moment.
func (t *tasks) look() (path string, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := fileStamp(t.path)
	if news = now != "" && now != t.stamp; news {
		t.stamp = now
	}
	return t.path, news
}

// Begun notes that a run of a task is delivered now.
func (t *tasks) Begun(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[task]++
}

// Ended notes how the delivery of a run ended.
func (t *tasks) Ended(outcome periodic.Outcome) {
	t.mu.Lock()
	if t.running[outcome.Task]--; t.running[outcome.Task] == 0 {
		delete(t.running, outcome.Task)
	}
	t.mu.Unlock()
	t.scheduler.Outcome(outcome)
}

// taskRunning reports whether the previous run of a task is unfinished: the app
// works on it here, or its message still lies in an embedded queue. Of runs
// that other machines work on, nothing is known.
func (e *Environment) taskRunning(task periodic.Task) bool {
	t := e.cron.Load()
	t.mu.Lock()
	inWork := t.running[task.Name] > 0
	t.mu.Unlock()
	if inWork || e.broker == nil {
		return inWork
	}
	for _, run := range t.scheduler.History(task.Name) {
		if run.MessageID == "" {
			continue
		}
		_, err := e.broker.Message(context.Background(), cmp.Or(task.Queue, e.home().queue.name), run.MessageID)
		return err == nil
	}
	return false
}

// leaseName is the lease by which the instances of an environment agree on
// who enqueues periodic tasks, and sets the size of a fleet: those that share a queue
// share a leader.
func (e *Environment) leaseName() string { return "periodic:" + e.home().queue.name }

func (e *Environment) newElector(reg *registry) (*leader.Elector, error) {
	return leader.New(reg.leases,
		leader.Options{Name: e.leaseName(), Data: e.address, Lease: e.s.Lease, Events: e.leaderEvents()})
}

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

// tasksFile is the path of the file of tasks now: a version may have brought another.
func (e *Environment) tasksFile() string {
	if t := e.cron.Load(); t != nil {
		return t.file()
	}
	return e.CronFile()
}

// ReadTasks reads a cron.yaml from disk, bounded. The error is a
// [*periodic.Error] when the file is wrong.
func ReadTasks(path string) (*periodic.File, error) {
	f, err := openRegular(path)
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

// readTasks reads the file of tasks before anything else starts, so that a bad
// file stops the start.
func (e *Environment) readTasks(context.Context) (err error) {
	if path := e.CronFile(); path != "" {
		e.firstTasks, err = e.readTaskFile(path)
	}
	return err
}

func (e *Environment) readTaskFile(path string) (taskFile, error) {
	f := taskFile{path: path, stamp: fileStamp(path)}
	var err error
	if f.read, err = ReadTasks(path); err != nil {
		return taskFile{}, err
	}
	for _, w := range f.read.Warnings {
		var hint []slog.Attr
		if w.Hint != "" {
			hint = append(hint, slog.String("hint", w.Hint))
		}
		e.report.note(slog.LevelWarn, "periodic", w.String(), hint...)
	}
	return f, nil
}

// buildTasks makes the scheduler and the elector, where there are tasks, and opens the
// registry where messages of others' tasks are judged by it.
func (e *Environment) buildTasks(ctx context.Context) error {
	if e.firstTasks.read == nil {
		if e.s.PeriodicTrust == config.TrustRegistry {
			_, err := e.openRegistry(ctx)
			return err
		}
		return nil
	}
	t, err := e.newTasks(ctx, e.firstTasks)
	if err != nil {
		return err
	}
	e.cron.Store(t)
	return nil
}

// newTasks makes what enqueues the tasks of a file. Nothing runs yet.
func (e *Environment) newTasks(ctx context.Context, file taskFile) (*tasks, error) {
	t := &tasks{taskFile: file, running: map[string]int{}, why: map[string]string{}}
	reg, err := e.openRegistry(ctx)
	if err != nil {
		return nil, err
	}
	if reg == nil && e.seeking.Load() {
		t.off = "the server of the queue does not tell yet whether it keeps a registry; it is asked again"
		e.report.note(slog.LevelWarn, "periodic", fmt.Sprintf("the periodic tasks of %s wait: %s", file.path, t.off))
		return t, nil
	}
	if reg == nil {
		t.off = "no leader can be elected: give --registry-table NAME (and --registry-create to make it), or --leader " +
			"local when this is the only instance"
		e.report.note(slog.LevelWarn, "periodic",
			fmt.Sprintf("the periodic tasks of %s are not scheduled: %s", file.path, t.off))
		return t, nil
	}
	t.pauses, t.pauseRhythm = reg.pauses, reg.pauseRhythm
	var lead periodic.Leadership = alone{make(chan struct{})}
	if e.s.Leader == config.LeaderElect {
		if t.elector = e.fleet.leader(); t.elector == nil {
			if t.elector, err = e.newElector(reg); err != nil {
				return nil, err
			}
		}
		lead = t.elector
	}
	var paused []string
	if e.home().embedded {
		paused = e.pausedAtStart(ctx, t)
	}
	t.scheduler = periodic.New(file.read, lead, reg.runs(lead), periodic.Options{
		Queue: e.home().queue.name, Running: e.taskRunning, Paused: paused, Wall: e.wall, Events: e.taskEvents(),
	})
	return t, nil
}

// runTasks lets the scheduler run, where there is one.
func (e *Environment) runTasks(context.Context) error {
	if t := e.cron.Load(); t != nil && t.scheduler != nil {
		e.schedule(t)
	}
	return nil
}

// beginTasks schedules the tasks of a file, where none were scheduled before. It is given
// up when a stop begins.
func (e *Environment) beginTasks(ctx context.Context, path string) (err error) {
	defer func() { e.telemetry.Reloaded(err) }()
	ctx, cancel := e.untilDrain(ctx)
	defer cancel()
	file, err := e.readTaskFile(path)
	if err != nil {
		return err
	}
	if err := e.checkTaskQueues(file.read); err != nil {
		return err
	}
	tasks := file.read
	file.read = &periodic.File{} // first without: what was due before now is not made up for
	t, err := e.newTasks(ctx, file)
	if err != nil {
		return err
	}
	t.setListed(tasks)
	if e.stopping() { // asked directly: ctx ends a moment after the stop began
		return app.ErrStopped
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.cron.Store(t)
	if t.scheduler == nil {
		return fmt.Errorf("%w: %s", errNotScheduled, t.off)
	}
	t.scheduler.Reload(tasks)
	e.schedule(t)
	return nil
}

// untilDrain returns a context that ends with ctx, and when a stop begins.
func (e *Environment) untilDrain(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// schedule lets elector and scheduler run. At the stop, scheduling ends and the
// lease is given back before anything else.
func (e *Environment) schedule(t *tasks) {
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	n := 1
	go func() {
		if !e.home().embedded { // elsewhere it may take a while, which deliveries do not wait for
			for _, name := range e.pausedAtStart(run, t) {
				_ = t.scheduler.Pause(name) // one that this file does not have
			}
		}
		t.scheduler.Run(run)
		ended <- struct{}{}
	}()
	lease, release := context.WithCancel(context.Background())
	if t.elector != nil && t.elector != e.fleet.leader() { // a fleet lets its own run
		n++
		go func() { t.elector.Run(lease); ended <- struct{}{} }()
	}
	go watchPauses(run, t)
	go e.watchFile(run, t)
	e.steps.push("the periodic tasks", func(ctx context.Context) error {
		stop()
		release()
		for range n {
			select {
			case <-ended:
			case <-ctx.Done():
				return fmt.Errorf("enqueueing does not end: %w", cutBy(ctx))
			}
		}
		return nil
	})
}

// alone is the leadership of the only instance. Its term is 1 for ever.
type alone struct{ never chan struct{} }

func (alone) Term() (int64, bool) { return 1, true }

func (a alone) Changed() <-chan struct{} { return a.never }

// fileRhythm is how often the file of tasks is looked at for changes.
const fileRhythm = 2 * time.Second

// watchFile reloads the tasks when their file has changed.
func (e *Environment) watchFile(ctx context.Context, t *tasks) {
	tick := time.NewTicker(fileRhythm)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, news := t.look(); !news {
			continue
		}
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
	err := e.reloadTasks()
	e.telemetry.Reloaded(err)
	return err
}

func (e *Environment) reloadTasks() error {
	if !e.running() {
		return errStarting
	}
	t := e.cron.Load()
	if t == nil {
		return errors.New("there are no periodic tasks to reload")
	}
	file := &periodic.File{} // of a version that has none
	if path, _ := t.look(); path != "" {
		var err error
		file, err = ReadTasks(path)
		if e.s.Cron == "" && errors.Is(err, fs.ErrNotExist) { // taken out of the bundle's folder
			file, err = &periodic.File{}, nil
		}
		if err != nil {
			return fmt.Errorf("the tasks in force stay as they are: %w", err)
		}
	}
	if err := e.checkTaskQueues(file); err != nil {
		return fmt.Errorf("the tasks in force stay as they are: %w", err)
	}
	t.setListed(file)
	s, err := e.scheduler()
	if err != nil {
		return err
	}
	s.Reload(file)
	return nil
}

// checkTaskQueues refuses a task whose queue nobody here works on, as far as
// that can be known: on Amazon SQS it may be another environment's.
func (e *Environment) checkTaskQueues(file *periodic.File) error {
	for _, t := range file.Tasks {
		if t.Queue != "" && e.home().embedded && e.lineOf(t.Queue) == nil {
			return fmt.Errorf("task %s: the queue %s was not there at the start; start the environment again to have it made "+
				"and worked on", t.Name, t.Queue)
		}
	}
	return nil
}

func (e *Environment) leaderEvents() *leader.Events {
	note := func(level slog.Level, text string) { e.report.note(level, "leader", text) }
	counts := e.telemetry.Leader()
	return &leader.Events{
		Elected: func(x leader.Elected) { counts.Elected(x); note(slog.LevelInfo, x.String()) },
		Lost: func(x leader.Lost) {
			level := slog.LevelWarn
			if e.stopping() {
				level = slog.LevelInfo
			}
			note(level, x.String())
		},
		Following: func(x leader.Following) { note(slog.LevelInfo, x.String()) },
		Failed:    func(x leader.Failure) { counts.Failed(x); note(slog.LevelWarn, x.String()) },
	}
}

func (e *Environment) taskEvents() periodic.Events {
	note := func(level slog.Level, task, text string, attrs ...slog.Attr) {
		e.report.note(level, "periodic", text, append([]slog.Attr{slog.String("task", task)}, attrs...)...)
	}
	counts := e.telemetry.Periodic()
	return periodic.Events{
		Enqueued: func(f periodic.Enqueued) {
			counts.Enqueued(f)
			note(slog.LevelInfo, f.Task,
				fmt.Sprintf("task %s is enqueued for %s, %s late", f.Task, f.ScheduledAt.Format(time.RFC3339), short(f.Lateness)),
				slog.String("fire_id", f.ID), slog.String("queue", f.Queue), slog.String("message_id", f.MessageID),
				slog.Bool("resent", f.Resent))
		},
		Skipped: func(s periodic.Skipped) {
			counts.Skipped(s)
			level := slog.LevelWarn
			if s.Reason == periodic.ReasonPaused || s.Reason == periodic.ReasonAlready {
				level = slog.LevelDebug
			}
			note(level, s.Task, fmt.Sprintf("task %s: %d runs up to %s are left out: %s", s.Task, s.Count,
				s.To.Format(time.RFC3339), s.Reason), slog.String("reason", string(s.Reason)))
		},
		Failed: func(f periodic.Failed) {
			counts.Failed(f)
			note(slog.LevelWarn, f.Task, fmt.Sprintf("task %s: %v; again in %s", f.Task, f.Err, short(f.Retry)),
				slog.String("fire_id", f.ID))
		},
		Reloaded: func(r periodic.Reloaded) {
			note(slog.LevelInfo, "",
				fmt.Sprintf("%d periodic tasks: %d new, %d gone, %d changed", r.Tasks, r.Added, r.Removed, r.Changed))
		},
		ClockStepped: func(c periodic.ClockStepped) {
			note(slog.LevelWarn, "",
				fmt.Sprintf("the clock was set, or the machine stood still: %s", c.By.Round(time.Millisecond)))
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
