package config

import (
	"fmt"
	"slices"
)

// Change is what is different between two configurations.
type Change struct {
	// Settings are those in force from now on: the old ones, with the values of
	// the new ones where these can take effect while tendril runs.
	Settings *Settings
	// Live names the options that changed and are in Settings, Later those that take effect at the next start; both
	// in the order of the table, and with their queue where it is one queue's alone. Empty when nothing changed.
	Live, Later []string
}

// Changed compares what is in force with a configuration that was loaded since. Neither is changed.
func Changed(inForce *Settings, loaded *Config) Change {
	now := *inForce
	now.Queues = slices.Clone(inForce.Queues)
	c := Change{Settings: &now}
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
			c.Later = append(c.Later, "max of "+q.Name)
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
		name := fmt.Sprintf("%s of %s", o.Name, old.Name)
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
