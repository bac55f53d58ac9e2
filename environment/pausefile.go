package environment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"

	"tendril/config"
	"tendril/datadir"
)

// pausedFile holds the pauses that outlive a restart.
const pausedFile = "paused.json"

// pausedText is the reason of a pause without one.
const pausedText = "paused"

// storedPauses is the content of the file: the reasons by the name of the queue or the task.
type storedPauses struct {
	Queues map[string]string `json:"queues,omitempty"`
	Tasks  map[string]string `json:"tasks,omitempty"`
}

// pauseFile keeps pauses in the data directory.
type pauseFile struct {
	path string
	mu   sync.Mutex
}

// ownsDataDir reports whether this environment keeps files in its data directory.
func (q *queues) ownsDataDir() bool { return q.s.Console != config.Off || q.broker != nil }

// read returns the pauses in the file; none when it is missing.
func (f *pauseFile) read() (stored storedPauses, err error) {
	if err := datadir.CheckFile(f.path); err != nil {
		return stored, err
	}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return stored, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	return stored, err
}

// change lets alter change the pauses in the file. One that cannot be read is replaced.
func (f *pauseFile) change(alter func(*storedPauses)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, _ := f.read()
	after := storedPauses{maps.Clone(before.Queues), maps.Clone(before.Tasks)}
	alter(&after)
	if maps.Equal(before.Queues, after.Queues) && maps.Equal(before.Tasks, after.Tasks) {
		return nil
	}
	data, err := json.MarshalIndent(after, "", "  ")
	if err != nil {
		return err
	}
	return datadir.Replace(f.path, append(data, '\n'), 0o600)
}

// setPause adds or removes one pause.
func setPause(pauses *map[string]string, name, reason string, paused bool) {
	if delete(*pauses, name); !paused {
		return
	}
	if *pauses == nil {
		*pauses = map[string]string{}
	}
	(*pauses)[name] = reason
}

// SetPaused implements [tasks.PauseStore].
func (f *pauseFile) SetPaused(_ context.Context, task, reason string, paused bool) error {
	return f.change(func(s *storedPauses) { setPause(&s.Tasks, task, reason, paused) })
}

// Paused implements [tasks.PauseStore].
func (f *pauseFile) Paused(context.Context) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, err := f.read()
	return stored.Tasks, err
}

// keep writes down that a queue is paused, or no longer is; nil stands for a file that nobody keeps. The pause itself
// does not depend on the disk.
func (f *pauseFile) keep(queue, reason string, paused bool, log *slog.Logger) {
	if f == nil {
		return
	}
	if err := f.change(func(s *storedPauses) { setPause(&s.Queues, queue, reason, paused) }); err != nil {
		log.Warn("pause not written, a restart does not know it", "component", "worker", "queue", queue, "err", err)
	}
}

// restore pauses the queues that were paused when the environment ran last, and says so.
func (f *pauseFile) restore(lines []*pipeline, log *slog.Logger) {
	stored, err := f.read()
	if err != nil {
		log.Warn("pauses not read, every queue is received from", "component", "worker", "file", f.path, "err", err)
	}
	for _, l := range lines {
		if reason, paused := stored.Queues[l.name]; paused {
			l.worker.Pause(cmp.Or(reason, pausedText))
			log.Warn("queue is still paused", "component", "worker", "queue", l.name, "reason", cmp.Or(reason, pausedText),
				"hint", "type 'tendril queues resume "+l.name+"'")
		}
	}
}
