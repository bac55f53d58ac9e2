package tasks

import (
	"context"
	"encoding/json"
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

type pause struct {
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

func (p pause) text() string {
	data, _ := json.Marshal(p)
	return string(data)
}

// pausesOf also accepts pauses of earlier versions, which stored only the reason.
func pausesOf(texts map[string]string) map[string]pause {
	all := map[string]pause{}
	for task, text := range texts {
		var one pause
		if json.Unmarshal([]byte(text), &one) != nil || one.At.IsZero() {
			one = pause{Reason: text}
		}
		all[task] = one
	}
	return all
}

type pauses struct {
	store    PauseStore    // may be nil
	interval time.Duration // between reads; 0 without other instances

	setting sync.Mutex
	known   atomic.Pointer[map[string]pause]
}

// all returns a map that is never modified.
func (p *pauses) all() map[string]pause {
	if known := p.known.Load(); known != nil {
		return *known
	}
	return nil
}

func (p *pauses) set(ctx context.Context, task string, why pause, paused bool) error {
	if p.store != nil {
		if err := p.store.SetPaused(ctx, task, why.text(), paused); err != nil {
			return fmt.Errorf("saving the pause: %w", err)
		}
	}
	p.setting.Lock()
	defer p.setting.Unlock()
	known := map[string]pause{}
	maps.Copy(known, p.all())
	delete(known, task)
	if paused {
		known[task] = why
	}
	p.known.Store(&known)
	return nil
}

func (p *pauses) read(ctx context.Context, log *slog.Logger) (tasks []string) {
	if p.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	texts, err := p.store.Paused(ctx)
	if err != nil {
		log.Warn("paused tasks not read", "err", err)
	}
	known := pausesOf(texts)
	p.known.Store(&known)
	return slices.Sorted(maps.Keys(known))
}

func (p *pauses) follow(ctx context.Context, s *periodic.Scheduler) {
	if p.store == nil || p.interval == 0 {
		return
	}

	tick := time.Tick(p.interval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if texts, err := p.store.Paused(ctx); err == nil { // otherwise, the known pauses stay
			known := pausesOf(texts)
			p.known.Store(&known)
			applyPauses(s, known)
		}
	}
}

func applyPauses(s *periodic.Scheduler, paused map[string]pause) {
	for _, task := range s.Status() {
		name := task.Task.Name
		_, pause := paused[name]
		switch {
		case pause && !task.Paused:
			s.Pause(name)
		case !pause && task.Paused:
			s.Resume(name)
		}
	}
}
