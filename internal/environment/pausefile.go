package environment

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"sync"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/internal/host/datadir"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
)

const pausedFile = "paused.json"

const pausedText = "paused"

type storedPauses struct {
	Queues map[string]instances.Pause `json:"queues,omitempty"`
	Tasks  map[string]string          `json:"tasks,omitempty"`
}

// pauseFile stores paused queues and tasks. A pause takes effect only once it is written.
type pauseFile struct {
	path string

	mu     sync.Mutex
	stored storedPauses
}

func (q *queues) ownsDataDir() bool { return q.settings.now().Console != config.Off || q.broker != nil }

func (p *pipelines) openPauses(file *periodic.File) error {
	if !p.queues.ownsDataDir() {
		return nil
	}
	s := p.settings.now()
	var queues []string
	for _, set := range s.Queues {
		queues = append(queues, set.Name)
	}
	path := filepath.Join(s.DataDir, pausedFile)
	p.pauses = readOrPauseAll(path, queues, tasksOfPauseFile(s, file), p.opts.Logger.Logger)
	return nil
}

func tasksOfPauseFile(s *config.Settings, file *periodic.File) (names []string) {
	if file == nil || s.Leader != config.LeaderLocal || !s.AnyOnSQS() {
		return nil
	}
	for _, t := range file.Tasks {
		names = append(names, t.Name)
	}
	return names
}

func (p *pipelines) restorePauses(context.Context) error {
	if p.pauses != nil {
		p.pauses.restore(p.all, p.opts.Logger.Logger)
	}
	return nil
}

// readOrPauseAll pauses everything if the file is unreadable, so that nothing paused resumes by itself.
func readOrPauseAll(path string, queues, tasks []string, log *slog.Logger) *pauseFile {
	f := &pauseFile{path: path}
	err := f.read()
	if err == nil {
		return f
	}
	const reason = pausedFile + " is unreadable"
	f.stored = storedPauses{}
	for _, name := range queues {
		setOrDelete(&f.stored.Queues, name, newPause(reason, ""), true)
	}
	for _, name := range tasks {
		setOrDelete(&f.stored.Tasks, name, reason, true)
	}

	const hint = "type 'tendril queues resume', which rewrites the file"
	log = log.With("component", "worker", "file", path, "err", err)
	if len(tasks) == 0 {
		log.Error("pauses not read, all queues are paused", "hint", hint)
		return f
	}
	log.Error("pauses not read, all queues and tasks are paused",
		"hint", hint+", and 'tendril tasks resume NAME' for each task")
	return f
}

func (p *pauseFile) read() error {
	err := datadir.ReadJSON(p.path, &p.stored)
	for name, pause := range p.stored.Queues {
		if pause.At.IsZero() { // written by an earlier version
			pause.At = thisSecond()
			p.stored.Queues[name] = pause
		}
	}
	return err
}

func (p *pauseFile) change(alter func(*storedPauses)) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	after := storedPauses{maps.Clone(p.stored.Queues), maps.Clone(p.stored.Tasks)}
	alter(&after)
	if maps.Equal(p.stored.Queues, after.Queues) && maps.Equal(p.stored.Tasks, after.Tasks) {
		return nil
	}

	if err := datadir.ReplaceJSON(p.path, after); err != nil {
		return api.NewError(http.StatusInsufficientStorage, "nothing was paused or resumed: writing "+p.path+": "+err.Error(),
			"free some space on that disk; the signal USR1 pauses all queues until the process exits")
	}
	p.stored = after
	return nil
}

func setOrDelete[P any](pauses *map[string]P, name string, pause P, paused bool) {
	delete(*pauses, name)
	if !paused {
		return
	}
	if *pauses == nil {
		*pauses = map[string]P{}
	}
	(*pauses)[name] = pause
}

func (p *pauseFile) setQueues(lines []*pipeline, pause instances.Pause) error {
	return p.change(func(s *storedPauses) {
		for _, l := range lines {
			setOrDelete(&s.Queues, l.queue.name, pause, pause != instances.Pause{})
		}
	})
}

func (p *pauseFile) SetPaused(_ context.Context, task, reason string, paused bool) error {
	return p.change(func(s *storedPauses) { setOrDelete(&s.Tasks, task, reason, paused) })
}

func (p *pauseFile) Paused(context.Context) (map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.stored.Tasks), nil
}

func (p *pauseFile) restore(lines []*pipeline, log *slog.Logger) {
	for _, l := range lines {
		if pause, paused := p.stored.Queues[l.queue.name]; paused {
			l.setPause(byThis, pause)
			event.Pause.Log(log, slog.LevelWarn, "queue still paused", "component", "worker", "queue", l.queue.name,
				"by", pause.By, "since", pause.At, "reason", cmp.Or(pause.Reason, pausedText),
				"hint", "type 'tendril queues resume "+l.queue.name+"'")
		}
	}
}
