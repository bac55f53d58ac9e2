package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	store     PauseStore    // may be nil
	interval  time.Duration // between reads; 0 without other instances
	scheduler *periodic.Scheduler
	known     atomic.Pointer[map[string]pause]

	mu      sync.Mutex
	changes int
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

	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	known := map[string]pause{}
	maps.Copy(known, p.all())
	delete(known, task)
	if paused {
		known[task] = why
	}
	p.apply(known)
	return nil
}

func (p *pauses) read(ctx context.Context) (map[string]pause, error) {
	if p.store == nil {
		return p.all(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	texts, err := p.store.Paused(ctx)
	return pausesOf(texts), err
}

// refresh repeats a read that may not include a concurrent change. After an error, the known pauses stay.
func (p *pauses) refresh(ctx context.Context) error {
	for applied := false; !applied; {
		p.mu.Lock()
		before := p.changes
		p.mu.Unlock()
		stored, err := p.read(ctx)
		if err != nil {
			return err
		}

		p.mu.Lock()
		if applied = p.changes == before; applied {
			p.apply(stored)
		}
		p.mu.Unlock()
	}
	return nil
}

func (p *pauses) follow(ctx context.Context) {
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
		_ = p.refresh(ctx)
	}
}

// The caller must hold mu.
func (p *pauses) apply(known map[string]pause) {
	p.known.Store(&known)
	for _, t := range p.scheduler.Status() {
		_, paused := known[t.Task.Name]
		_ = p.scheduler.SetPaused(t.Task.Name, paused)
	}
}
