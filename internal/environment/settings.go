package environment

import (
	"slices"
	"sync/atomic"

	"tendril/internal/config"
)

// settings replaces the whole revision, so that readers never see a mix of old and new settings.
type settings struct{ current atomic.Pointer[revision] }

type revision struct {
	number int // 1 at startup
	all    *config.Settings
	// queues includes queues that only periodic tasks use. They have the first queue's settings except for name and
	// weight.
	queues    []config.QueueSettings
	explained []config.Explanation
	loaded    *config.Config
}

func newSettings(cfg *config.Config) *settings {
	s := &settings{}
	s.current.Store(&revision{number: 1, all: &cfg.Settings, queues: slices.Clone(cfg.Queues), loaded: cfg})
	return s
}

// now returns settings that must not be modified.
func (s *settings) now() *config.Settings { return s.current.Load().all }

// queue returns settings that must not be modified.
func (s *settings) queue(index int) *config.QueueSettings { return &s.current.Load().queues[index] }

func (s *settings) addTaskQueue(name string) (index int) {
	r := *s.current.Load()
	added := r.queues[0]
	added.Name = name
	for _, q := range r.queues {
		added.Weight = max(added.Weight, q.Weight)
	}
	r.queues = append(slices.Clone(r.queues), added)
	s.current.Store(&r)
	return len(r.queues) - 1
}

func (s *settings) explanations() []config.Explanation {
	r := s.current.Load()
	if r.explained != nil {
		return r.explained
	}
	return r.loaded.ExplainAll()
}

// The caller of change must hold the changing token.
func (s *settings) change(c *config.Change) {
	before := s.current.Load()
	after := &revision{number: before.number, all: before.all, queues: before.queues}
	after.explained = c.Explain(s.explanations())
	if len(c.Live) == 0 {
		s.current.Store(after)
		return
	}

	after.number++
	after.all = c.Settings
	after.queues = make([]config.QueueSettings, len(before.queues))
	for i, was := range before.queues {
		named := slices.IndexFunc(c.Settings.Queues, func(q config.QueueSettings) bool { return q.Name == was.Name })
		after.queues[i] = c.Settings.Queues[max(named, 0)]
		if named < 0 {
			after.queues[i].Name = was.Name
			after.queues[i].Weight = was.Weight
		}
	}
	s.current.Store(after)
}
