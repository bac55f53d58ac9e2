package tasks

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/cron/periodic"
)

// slowPauses returns the pauses stored a second earlier.
type slowPauses struct {
	mu     sync.Mutex
	stored map[string]string
}

func (p *slowPauses) SetPaused(_ context.Context, task, reason string, paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.stored, task)
	if paused {
		p.stored[task] = reason
	}
	return nil
}

func (p *slowPauses) Paused(context.Context) (map[string]string, error) {
	p.mu.Lock()
	read := maps.Clone(p.stored)
	p.mu.Unlock()
	time.Sleep(time.Second)
	return read, nil
}

func TestPauseIsNotUndoneByAnEarlierRead(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"during the first read": 500 * time.Millisecond,
		"during a later read": pauseInterval + 500*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &slowPauses{stored: map[string]string{"sweep": "paused before"}}
				m := New(Options{Registry: RegistryOptions{Queue: "jobs", QueueURL: onlyInstance.QueueURL, Local: true}})
				s, err := m.newSchedule(t.Context(), &periodic.File{Tasks: []periodic.Task{{Name: "tidy"}, {Name: "sweep"}}})
				if err != nil {
					t.Fatal(err)
				}
				s.pauses = &pauses{store: store, interval: pauseInterval, scheduler: s.scheduler}
				m.current.Store(s)
				m.started.Store(true)
				m.runSchedule(s)

				time.Sleep(at)
				if err := m.Pause(t.Context(), "tidy", "audit", "ann"); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				for range 10 {
					all := m.Status().Tasks
					if !all[0].Paused || all[0].PauseReason != "audit" || !all[1].Paused || all[1].PauseReason != "paused before" {
						t.Errorf("a pause is lost: %+v", all)
					}
					time.Sleep(time.Second)
				}
				if err := m.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestPausesStayAfterAnError(t *testing.T) {
	t.Parallel()
	s := periodic.New(&periodic.File{Tasks: []periodic.Task{{Name: "tidy"}}}, &Election{registry: &registryFinder{}}, nil,
		periodic.Options{})
	p := &pauses{store: fakePauses{"tidy": "audit"}, scheduler: s}
	if err := p.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.store = brokenPauses{}
	if err := p.refresh(t.Context()); err == nil || !s.Status()[0].Paused || p.all()["tidy"].Reason != "audit" {
		t.Errorf("%v; paused %v", err, p.all())
	}
}
