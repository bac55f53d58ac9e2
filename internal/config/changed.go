package config

import (
	"slices"
	"strings"
)

// Change is what is different between two configurations.
type Change struct {
	// Settings are those in force from now on: the old ones, with the values of
	// the new ones where these can take effect while tendril runs.
	Settings *Settings
	// Live names the options that changed and are in Settings, Later those that take effect at the next start; both
	// in the order of the table, and with their queue where it is one queue's alone. Empty when nothing changed.
	Live, Later []string

	loaded *Config
}

// Explain tells about every option in force after the change, by what was in force before: of options that wait for
// the next start that holds still, of all others the configuration that was loaded.
func (c *Change) Explain(before []Explanation) []Explanation {
	if c.loaded == nil {
		return before
	}
	now := c.loaded.ExplainAll()
	waits := func(name string) bool { return slices.Contains(c.Later, name) }
	for i := range now {
		e, was := &now[i], before[i] // rows of one table
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

// explainQueues takes what waits for the next start from before, the rest from now.
func (c *Change) explainQueues(before, now []QueueExplanation, waits func(string) bool) []QueueExplanation {
	names := func(a, b QueueExplanation) bool { return a.Name == b.Name && len(a.Settings) == len(b.Settings) }
	if !slices.EqualFunc(before, now, names) {
		return before // only the next start takes other queues
	}
	for i := range now {
		q := &now[i]
		for j := range q.Settings {
			name := strings.ReplaceAll(q.Settings[j].Key, "_", "-")
			general := name
			switch name {
			case "max":
				general = "http-connections"
			case "url", "weight":
				general = "queues"
			}
			if waits(general) || waits(ofQueue(name, q.Name)) {
				q.Settings[j] = before[i].Settings[j]
			}
		}
	}
	return now
}

// ofQueue names an option of one queue in a [Change].
func ofQueue(option, queue string) string { return option + " of " + queue }

// Pending tells what the loaded configuration says of something in Live or Later: an option, or one of a queue.
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
			if strings.ReplaceAll(s.Key, "_", "-") == option {
				return Setting{Origin: s.From, Value: s.Value}
			}
		}
	}
	return Setting{}
}

// Changed compares what is in force with a configuration that was loaded since. Neither is changed.
func Changed(inForce *Settings, loaded *Config) Change {
	now := *inForce
	now.Queues = slices.Clone(inForce.Queues)
	c := Change{Settings: &now, loaded: loaded}
	same := sameQueues(now.Queues, loaded.Queues)
	for i := range loaded.options {
		o := &loaded.options[i]
		value := o.get(&loaded.Settings)
		differs := o.get(&now) != value
		switch {
		case !differs || o.Name == "config": // where the file lies is not a setting
		case o.Live && o.set(&now, value) == nil:
			c.Live = append(c.Live, o.Name)
		default:
			c.Later = append(c.Later, o.Name)
		}
		if o.PerQueue && same {
			c.inQueues(o, loaded, differs)
		}
	}
	if same {
		c.mostInWork(inForce, &loaded.Settings)
	}
	return c
}

// mostInWork compares the most deliveries in work of each queue. Those that have none of
// their own have what holds for all.
func (c *Change) mostInWork(inForce, loaded *Settings) {
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

// inQueues compares an option for each queue. reported tells that it changed for all.
func (c *Change) inQueues(o *Option, loaded *Config, reported bool) {
	for i := range c.Settings.Queues {
		old, loadedQueue := &c.Settings.Queues[i], &loaded.Queues[i]
		was, is := Settings{PerQueue: old.PerQueue}, Settings{PerQueue: loadedQueue.PerQueue}
		value := o.get(&is)
		if o.get(&was) == value {
			continue
		}
		name := ofQueue(o.Name, old.Name)
		if o.Live && o.set(&was, value) == nil {
			old.PerQueue = was.PerQueue
			if !reported {
				c.Live = append(c.Live, name)
			}
		} else if !reported {
			c.Later = append(c.Later, name)
		}
	}
}

func sameQueues(a, b []QueueSettings) bool {
	return slices.EqualFunc(a, b, func(a, b QueueSettings) bool { return a.reference() == b.reference() })
}
