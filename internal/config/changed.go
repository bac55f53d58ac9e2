package config

import (
	"slices"
	"strings"
)

// Change is the difference between two configurations.
type Change struct {
	// Settings are the previous ones, with the loaded values of options that can change at run time.
	Settings *Settings
	// Live names changed options that are applied in Settings, and Later those that need a restart, in table order. A
	// change for one queue only is "NAME of QUEUE".
	Live, Later []string

	loaded *Config
}

// Explain describes every option after the change, given the descriptions before it.
func (c *Change) Explain(before []Explanation) []Explanation {
	if c.loaded == nil {
		return before
	}

	now := c.loaded.ExplainAll()
	waits := func(name string) bool { return slices.Contains(c.Later, name) }
	for i := range now {
		e, was := &now[i], before[i] // both have one entry per row of the table
		queues := e.Queues
		if e.Option.Name == "config" || waits(e.Option.Name) {
			*e = was
		}
		if queues != nil {
			e.Queues = c.explainQueues(was.Queues, queues, waits)
		}
	}

	return now
}

// explainQueues keeps settings from before if they need a restart.
func (c *Change) explainQueues(before, now []QueueExplanation, waits func(string) bool) []QueueExplanation {
	names := func(a, b QueueExplanation) bool { return a.Name == b.Name && len(a.Settings) == len(b.Settings) }
	if !slices.EqualFunc(before, now, names) {
		return before // a change of the queues needs a restart
	}

	for i := range now {
		q := &now[i]
		for j := range q.Settings {
			key := q.Settings[j].Key
			if waits(ofAllQueues(key)) || waits(ofQueue(optionOf(key), q.Name)) {
				q.Settings[j] = before[i].Settings[j]
			}
		}
	}

	return now
}

func optionOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

// ofAllQueues returns the option for queues without this key.
func ofAllQueues(key string) string {
	switch key {
	case "name", "url", "arn", "weight":
		return "queues"
	case "max":
		return "http-connections"
	}
	return optionOf(key)
}

func ofQueue(option, queue string) string { return option + " of " + queue }

// Pending returns the loaded setting of a name in Live or Later.
func (c *Change) Pending(name string) Setting {
	option, queue, ofOne := strings.Cut(name, " of ")
	if !ofOne {
		if e, err := c.loaded.Explain(option); err == nil {
			return Setting{Origin: e.From, Value: e.Value}
		}
		return Setting{}
	}

	for i := range c.loaded.Queues {
		if c.loaded.Queues[i].Name != queue {
			continue
		}
		for _, s := range c.loaded.explainQueue(i).Settings {
			if optionOf(s.Key) == option {
				return Setting{Origin: s.From, Value: s.Value}
			}
		}
	}

	return Setting{}
}

// Changed compares the settings in force with a configuration loaded later.
func Changed(inForce *Settings, loaded *Config) Change {
	now := *inForce
	now.Queues = slices.Clone(inForce.Queues)
	c := Change{Settings: &now, loaded: loaded}

	var queues []queueComparison // empty if the queues differ, which needs a restart
	same := sameQueues(now.Queues, loaded.Queues)
	if same {
		for i := range now.Queues {
			queues = append(queues, compareQueue(&now.Queues[i], &loaded.Queues[i]))
		}
	}

	for i, o := range table(&now) {
		changed := c.take(o, loaded.options[i], o.Name)
		for _, q := range queues {
			name := ofQueue(o.Name, q.queue.Name)
			if changed {
				name = "" // already listed for all queues
			}
			if o.PerQueue {
				c.take(q.now[i], q.loaded[i], name)
			}
		}
	}

	for _, q := range queues {
		q.queue.PerQueue = q.settings.PerQueue
	}

	if same {
		c.compareConcurrency(inForce, &loaded.Settings)
	}

	return c
}

// take compares one option, applies its loaded value if it is live, and lists a non-empty name.
func (c *Change) take(now, loaded *Option, name string) (changed bool) {
	value := loaded.value.get()
	if now.Name == "config" || now.value.get() == value { // the file's path is not a setting
		return false
	}
	list := &c.Later
	if now.Live && now.value.set(value) == nil {
		list = &c.Live
	}
	if name != "" {
		*list = append(*list, name)
	}
	return true
}

type queueComparison struct {
	queue       *QueueSettings
	settings    *Settings
	now, loaded []*Option
}

func compareQueue(inForce, loaded *QueueSettings) queueComparison {
	settings := &Settings{PerQueue: inForce.PerQueue}
	return queueComparison{queue: inForce, settings: settings, now: table(settings),
		loaded: table(&Settings{PerQueue: loaded.PerQueue})}
}

// Queues without their own maximum follow the common one.
func (c *Change) compareConcurrency(inForce, loaded *Settings) {
	for i := range c.Settings.Queues {
		q := &c.Settings.Queues[i]
		if own := ownMax(inForce, i); own != ownMax(loaded, i) {
			c.Later = append(c.Later, ofQueue("max", q.Name))
		} else if own == 0 {
			q.Concurrency = c.Settings.HTTPConnections
		}
	}
}

func ownMax(s *Settings, queue int) int {
	if most := s.Queues[queue].Concurrency; most != s.HTTPConnections {
		return most
	}
	return 0
}

func sameQueues(a, b []QueueSettings) bool {
	return slices.EqualFunc(a, b, func(a, b QueueSettings) bool { return a.reference() == b.reference() })
}
