package config

import (
	"slices"
	"strings"
)

// Change is the result of [Changed].
type Change struct {
	Settings *Settings
	// Live lists changes that take effect at run time, Later those that need a restart. A change to a single queue is
	// listed as "NAME of QUEUE".
	Live, Later []string

	loaded *Config
}

// Explain describes all options after the change, given their descriptions before it.
func (c *Change) Explain(before []Explanation) []Explanation {
	if c.loaded == nil {
		return before
	}

	now := c.loaded.ExplainAll()
	waits := func(name string) bool { return slices.Contains(c.Later, name) }
	for i := range now {
		e, was := &now[i], before[i]
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

func (c *Change) explainQueues(before, now []QueueExplanation, waits func(string) bool) []QueueExplanation {
	sameName := func(a, b QueueExplanation) bool { return a.Name == b.Name }
	if !slices.EqualFunc(before, now, sameName) {
		return before
	}

	for i := range now {
		var inForce []QueueSetting
		for _, o := range queueTable(&QueueSettings{}, c.loaded.options) {
			from := &now[i]
			if waits(optionForAllQueues(o.Key)) || waits(changeOfQueue(optionForQueue(o.Key), now[i].Name)) {
				from = &before[i]
			}
			if s, found := from.setting(o.Key); found {
				inForce = append(inForce, s)
			}
		}
		now[i].Settings = inForce
	}
	return now
}

func (q *QueueExplanation) setting(key string) (s QueueSetting, found bool) {
	i := slices.IndexFunc(q.Settings, func(s QueueSetting) bool { return s.Key == key })
	if i < 0 {
		return QueueSetting{}, false
	}
	return q.Settings[i], true
}

func optionForQueue(key string) string { return strings.ReplaceAll(key, "_", "-") }

func optionForAllQueues(key string) string {
	switch key {
	case "name", "url", "arn", "weight":
		return "queues"
	case "max":
		return "http-connections"
	}
	return optionForQueue(key)
}

func changeOfQueue(option, queue string) string { return option + ofOneQueue + queue }

// Pending returns the new value of an entry in Live or Later.
func (c *Change) Pending(name string) Setting {
	option, queue, ofOne := strings.Cut(name, ofOneQueue)
	if !ofOne {
		if e, err := c.loaded.Explain(option); err == nil {
			return Setting{Origin: e.From, Value: e.Value}
		}
		return Setting{}
	}

	i := slices.IndexFunc(c.loaded.Queues, func(q QueueSettings) bool { return q.Name == queue })
	if i < 0 {
		return Setting{}
	}
	q := c.loaded.explainQueue(i)
	s, _ := q.setting(strings.ReplaceAll(option, "-", "_"))
	return Setting{Origin: s.From, Value: s.Value}
}

// Changed compares the settings in force with a newly loaded configuration.
func Changed(inForce *Settings, loaded *Config) Change {
	now := *inForce
	now.Queues = slices.Clone(inForce.Queues)
	c := Change{Settings: &now, loaded: loaded}

	var queues []queueComparison
	same := sameQueues(now.Queues, loaded.Queues)
	if same {
		for i := range now.Queues {
			queues = append(queues, compareQueue(&now.Queues[i], &loaded.Queues[i]))
		}
	}

	for i, o := range table(&now) {
		listed := c.updateOption(o, loaded.options[i], o.Name)
		for _, q := range queues {
			switch {
			case !o.PerQueue:
			case listed:
				c.updateOption(q.now[i], q.loaded[i], "")
			default:
				c.updateOption(q.now[i], q.loaded[i], changeOfQueue(o.Name, q.queue.Name))
			}
		}
	}

	for _, q := range queues {
		q.queue.PerQueue = q.settings.PerQueue
	}

	if same {
		c.compareConcurrency(&loaded.Settings)
	}

	return c
}

// updateOption applies a live option, and lists a changed one under name unless that is "".
func (c *Change) updateOption(now, loaded *Option, name string) (changed bool) {
	value := loaded.value.get()
	if now.Name == "config" || now.value.get() == value { // config is the file's path, not a setting
		return false
	}
	applied := now.Live && now.value.assign(value) == nil
	switch {
	case name == "":
	case applied:
		c.Live = append(c.Live, name)
	default:
		c.Later = append(c.Later, name)
	}
	return true
}

// RestartApp moves the options that a restart of the app applies from Later to Live, and returns them.
func (c *Change) RestartApp() (names []string) {
	for i, o := range table(c.Settings) {
		at := slices.Index(c.Later, o.Name)
		if o.AppRestart && at >= 0 && o.value.assign(c.loaded.options[i].value.get()) == nil {
			c.Later = slices.Delete(c.Later, at, at+1)
			names = append(names, o.Name)
		}
	}
	c.Live = append(c.Live, names...)
	return names
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

func (c *Change) compareConcurrency(loaded *Settings) {
	for i := range c.Settings.Queues {
		q := &c.Settings.Queues[i]
		if q.Max != loaded.Queues[i].Max {
			c.Later = append(c.Later, changeOfQueue("max", q.Name))
		}
		if q.Max == 0 {
			q.Concurrency = c.Settings.HTTPConnections
		}
	}
}

func sameQueues(a, b []QueueSettings) bool {
	return slices.EqualFunc(a, b, func(a, b QueueSettings) bool { return a.reference() == b.reference() })
}
