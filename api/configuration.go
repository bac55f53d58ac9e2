package api

import "time"

// The values of [ConfigOption].Effect: when a change takes effect.
const (
	EffectReload  = "reload"  // when saved
	EffectApp     = "app"     // after a restart of the app's processes
	EffectRestart = "restart" // after a restart of the environment
)

// Configuration holds all options of an environment.
type Configuration struct {
	// Shared is nil without a fleet key; changes are then made to the settings file.
	Shared *SharedSettings `json:"shared,omitempty"`
	File   string          `json:"file"`
	Exists bool            `json:"exists"`
	Hash   string          `json:"hash"`
	// Blocks are the sections of Elastic Beanstalk's configuration page. Topics are the groups of all options.
	Blocks  []string       `json:"blocks"`
	Topics  []string       `json:"topics"`
	Options []ConfigOption `json:"options"`
	Queues  []ConfigQueue  `json:"queues"`
	// Changes are options whose configured values are not in force. Problem is the reason these cannot be read, or "".
	Changes []OptionChange `json:"changes,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

// SharedSettings is the latest change of the settings for all instances.
type SharedSettings struct {
	Revision int64     `json:"revision"` // 0 before the first change
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// RolledBack names the instance that rejected the previous change, and why; "" unless this is a rollback.
	RolledBack string `json:"rolled_back,omitempty"`
	// InBatches means that instances of later batches still use the previous settings.
	InBatches bool `json:"in_batches,omitempty"`
}

// ConfigOption is an option with its value, documentation and editing rules.
type ConfigOption struct {
	DescribedOption
	// Block is one of [Configuration].Blocks, or ""; Topic is one of its Topics.
	Block string `json:"block,omitempty"`
	Topic string `json:"topic"`
	Label string `json:"label"`
	// Key is the name in the settings file; "" if not allowed there.
	Key    string `json:"key,omitempty"`
	Help   string `json:"help"`
	Detail string `json:"detail,omitempty"`
	// Type is duration, integer, size, switch, choice, rate, number, list or text. Unit is the unit of a number
	// without a suffix.
	Type string `json:"type"`
	Unit string `json:"unit,omitempty"`
	// Default is the default value or a description of it.
	Default string   `json:"default"`
	Allowed string   `json:"allowed"`
	Choices []string `json:"choices,omitempty"`
	// Hidden means that some of the value is redacted.
	Hidden bool `json:"hidden,omitempty"`
	// Scope is required to change the option.
	Scope  string `json:"scope"`
	Effect string `json:"effect"`
	// Locked is the reason that a [SettingsChange] cannot change the option, or "".
	Locked string `json:"locked,omitempty"`
	// Overridden is the variable or flag that overrides the shared settings on this instance; "" if absent, or
	// if the option cannot be shared.
	Overridden string `json:"overridden,omitempty"`
}

// ConfigQueue holds the settings of one queue.
type ConfigQueue struct {
	Name string `json:"name"`
	// Settings have names such as "http-path of payments", as in a [SettingsChange].
	Settings []ConfigOption `json:"settings"`
}

// Option returns an option or queue setting by name, or nil.
func (c *Configuration) Option(name string) *ConfigOption {
	for i := range c.Options {
		if c.Options[i].Name == name {
			return &c.Options[i]
		}
	}
	for i := range c.Queues {
		for j := range c.Queues[i].Settings {
			if c.Queues[i].Settings[j].Name == name {
				return &c.Queues[i].Settings[j]
			}
		}
	}
	return nil
}

// SettingsChange is a change of the shared settings, or of the settings file if there are no shared settings or This
// is set.
type SettingsChange struct {
	This bool `json:"this,omitempty"`
	// Set maps option names to new values; nil removes one. "http-path of payments" is a setting of one queue.
	Set map[string]*string `json:"set"`
	// Base is the hash of the settings that the change is based on. A preview does not need it.
	Base string `json:"base,omitempty"`
}

// SettingsPreview is the effect of a settings change.
type SettingsPreview struct {
	// File is the settings file, or the shared settings' revision.
	File     string `json:"file"`
	Revision int64  `json:"revision,omitempty"`
	// Hashes of the settings before and after the change.
	Base  string     `json:"base"`
	Hash  string     `json:"hash"`
	Scope string     `json:"scope"`
	Lines []FileLine `json:"lines"`
	// Changes are the options whose values change. Once the change is made, those without Restart are in force.
	Changes  []OptionChange `json:"changes"`
	Warnings []Detail       `json:"warnings,omitempty"`
}

// Changed returns the changed options in force, and those that take effect at the next start.
func (p *SettingsPreview) Changed() (now, later []string) {
	for _, o := range p.Changes {
		if o.Restart {
			later = append(later, o.Name)
		} else {
			now = append(now, o.Name)
		}
	}
	return now, later
}

// FileLine is a line added to or removed from the settings file.
type FileLine struct {
	// Line counts from 1, in the new file if Added, otherwise in the previous one.
	Line  int    `json:"line"`
	Added bool   `json:"added"`
	Text  string `json:"text"`
}

func (l FileLine) String() string {
	if l.Added {
		return "+ " + l.Text
	}
	return "- " + l.Text
}
