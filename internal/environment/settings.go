package environment

import (
	"slices"
	"sync/atomic"

	"tendril/internal/config"
)

// settings are the settings in force. Each change replaces the whole revision, so that a reader sees one of them and
// never a mixture.
type settings struct{ current atomic.Pointer[revision] }

// revision is the settings between two changes. It is never changed.
type revision struct {
	number int // 1 for the settings of the start
	all    *config.Settings
	// queues are the settings of the queues in all, followed by those of the queues that only periodic tasks name: these
	// have the first queue's settings, but their own name and weight.
	queues    []config.QueueSettings
	explained []config.Explanation // nil where nothing has been asked yet: see explanations
	loaded    *config.Config       // explains the first revision
}

func newSettings(cfg *config.Config) *settings {
	s := &settings{}
	s.current.Store(&revision{number: 1, all: &cfg.Settings, queues: slices.Clone(cfg.Queues), loaded: cfg})
	return s
}

// now returns the settings in force, which must not be changed.
func (s *settings) now() *config.Settings { return s.current.Load().all }

// queue returns the settings in force of one queue by its index, which must not be changed.
func (s *settings) queue(index int) *config.QueueSettings { return &s.current.Load().queues[index] }

// addTaskQueue adds a queue that only periodic tasks name, and returns its index. It is for the start.
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

// explanations tell about every option in force, and where it was set.
func (s *settings) explanations() []config.Explanation {
	r := s.current.Load()
	if r.explained != nil {
		return r.explained
	}
	return r.loaded.ExplainAll()
}

// change puts a change in force. Its caller holds the token of changes.
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
