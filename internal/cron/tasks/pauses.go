package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/cron/periodic"
)

const pauseTimeout = 10 * time.Second

type pauses struct {
	store    PauseStore    // may be nil
	interval time.Duration // for reading the other instances' pauses; 0 if there are no other instances

	setting sync.Mutex
	reasons atomic.Pointer[map[string]string] // by task; nil before the first pause
}

// all returns the reasons for pauses by task. The map is never modified.
func (p *pauses) all() map[string]string {
	if reasons := p.reasons.Load(); reasons != nil {
		return *reasons
	}
	return nil
}

func (p *pauses) set(ctx context.Context, task, reason string, paused bool) error {
	if p.store != nil {
		if err := p.store.SetPaused(ctx, task, reason, paused); err != nil {
			return fmt.Errorf("keeping the pause: %w", err)
		}
	}
	p.setting.Lock()
	defer p.setting.Unlock()
	reasons := map[string]string{}
	maps.Copy(reasons, p.all())
	delete(reasons, task)
	if paused {
		reasons[task] = reason
	}
	p.reasons.Store(&reasons)
	return nil
}

// read returns the paused tasks, or nil if they are unknown.
func (p *pauses) read(ctx context.Context, log *slog.Logger) (tasks []string) {
	if p.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	reasons, err := p.store.Paused(ctx)
	if err != nil {
		log.Warn("paused tasks not read", "err", err)
	}
	p.reasons.Store(&reasons)
	return slices.Sorted(maps.Keys(reasons))
}

// follow applies the pauses that other instances make, until ctx is done.
func (p *pauses) follow(ctx context.Context, s *periodic.Scheduler) {
	if p.store == nil || p.interval == 0 {
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
			continue // keeps the known pauses
		}

		p.reasons.Store(&reasons)
		for _, task := range s.Status() {
			if _, paused := reasons[task.Task.Name]; paused && !task.Paused {
				s.Pause(task.Task.Name)
			} else if !paused && task.Paused {
				s.Resume(task.Task.Name)
			}
		}
	}
}
