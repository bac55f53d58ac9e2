package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tendril/periodic"
)

// pauseTimeout limits the question which tasks are paused.
const pauseTimeout = 10 * time.Second

// pauses are the tasks that are paused, as far as known here.
type pauses struct {
	store    pauseStore // nil when pauses are this instance's own
	interval time.Duration

	mu      sync.Mutex
	reasons map[string]string // by task
}

// all returns why tasks are paused.
func (p *pauses) all() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.reasons)
}

// set tells the registry that a task is paused, or no longer is, and remembers the reason.
func (p *pauses) set(ctx context.Context, task, reason string, paused bool) error {
	if p.store != nil {
		if err := p.store.SetPaused(ctx, task, reason, paused); err != nil {
			return fmt.Errorf("telling the registry: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reasons = maps.Clone(p.reasons)
	if p.reasons == nil {
		p.reasons = map[string]string{}
	}
	delete(p.reasons, task)
	if paused {
		p.reasons[task] = reason
	}
	return nil
}

// read asks the registry which tasks are paused; when that cannot be known, none.
func (p *pauses) read(ctx context.Context, log *slog.Logger) (tasks []string) {
	if p.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	reasons, err := p.store.Paused(ctx)
	if err != nil {
		log.Warn("paused tasks not known", "err", err)
	}
	p.learn(reasons)
	return slices.Sorted(maps.Keys(reasons))
}

func (p *pauses) learn(reasons map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reasons = reasons
}

// follow applies the pauses that other instances make, until ctx is done.
func (p *pauses) follow(ctx context.Context, s *periodic.Scheduler) {
	if p.store == nil {
		return
	}
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reasons, err := p.store.Paused(ctx)
		if err != nil {
			continue // what is known stays in force
		}
		p.learn(reasons)
		for _, task := range s.Status() {
			_, paused := reasons[task.Task.Name]
			switch {
			case paused && !task.Paused:
				s.Pause(task.Task.Name)
			case !paused && task.Paused:
				s.Resume(task.Task.Name)
			}
		}
	}
}
