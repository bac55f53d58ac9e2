package api

// The ways in which a change of an option takes effect.
const (
	EffectReload  = "reload"  // while the environment runs, when the change is saved
	EffectRestart = "restart" // at the next start
)

// Configuration is every option of the environment and the file that changes are written to.
type Configuration struct {
	// File is the path of the settings file; Exists is whether it is there. Hash is that of its content, which a change
	// must name as its base.
	File   string `json:"file"`
	Exists bool   `json:"exists"`
	Hash   string `json:"hash"`
	// Blocks are those of the configuration page of Elastic Beanstalk, Topics those of all options, in their order.
	Blocks []string `json:"blocks"`
	Topics []string `json:"topics"`
	// Options are all options, in the order of docs/options.md.
	Options []ConfigOption `json:"options"`
	// Queues hold the settings of each queue, none where only queues are served.
	Queues []ConfigQueue `json:"queues"`
	// Changes are what the files say by now and the process does not follow yet; Problem is why they cannot be read.
	Changes []OptionChange `json:"changes,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

// ConfigOption is one option in force, and how it is changed.
type ConfigOption struct {
	DescribedOption
	// Block is one of [Configuration].Blocks, "" for an option that is not on that page; Topic one of its Topics.
	Block string `json:"block,omitempty"`
	Topic string `json:"topic"`
	// Label is the name for people, Key the one in the settings file, "" where it cannot be in there.
	Label string `json:"label"`
	Key   string `json:"key,omitempty"`
	// Help is one sentence, Detail what else to know, "" for nothing.
	Help   string `json:"help"`
	Detail string `json:"detail,omitempty"`
	// Type is duration, integer, size, switch, choice, rate, number, list or text; Unit what a bare number counts, "" for
	// none.
	Type string `json:"type"`
	Unit string `json:"unit,omitempty"`
	// Default is the value without a setting, with words where it is not a fixed one. Allowed says what the option
	// takes, Choices are the words of a choice.
	Default string   `json:"default"`
	Allowed string   `json:"allowed"`
	Choices []string `json:"choices,omitempty"`
	// Hidden is whether the value, or a part of it, is not shown.
	Hidden bool `json:"hidden,omitempty"`
	// Scope is the scope that a change of it needs. Effect is one of the Effect constants. Locked says why the settings
	// file cannot change the option; "" where it can.
	Scope  string `json:"scope"`
	Effect string `json:"effect"`
	Locked string `json:"locked,omitempty"`
}

// ConfigQueue is the settings of one queue.
type ConfigQueue struct {
	Name string `json:"name"`
	// Settings have the names that a change gives them, such as "http-path of payments"; those that the settings file
	// cannot change for this queue alone are Locked.
	Settings []ConfigOption `json:"settings"`
}

// Option returns the option of that name, or the setting of one queue; nil for none.
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

// SettingsChange is a change of the settings file.
type SettingsChange struct {
	// Set holds a text for each option to set, nil for one to remove from the file. An option may have any of its
	// names; "http-path of payments" is one of a queue.
	Set map[string]*string `json:"set"`
	// Base is the hash of the file that the change is meant for. A preview needs none.
	Base string `json:"base,omitempty"`
}

// SettingsPreview is what a change of the settings file does, or has done.
type SettingsPreview struct {
	File string `json:"file"`
	// Base is the hash of the file before the change, Hash the one after it.
	Base string `json:"base"`
	Hash string `json:"hash"`
	// Scope is the scope that the change needs.
	Scope string `json:"scope"`
	// Lines are the lines of the file that differ, in their order.
	Lines []FileLine `json:"lines"`
	// Changes are the options whose value in force differs, and how each takes effect. After a change those that need no
	// restart are in force.
	Changes []OptionChange `json:"changes"`
	// Warnings are what is allowed and seldom meant.
	Warnings []Detail `json:"warnings,omitempty"`
}

// FileLine is a line that a change takes out of the settings file, or puts in.
type FileLine struct {
	// Line is the number from 1: in the new file where it is Added, else in the old one.
	Line  int    `json:"line"`
	Added bool   `json:"added"`
	Text  string `json:"text"`
}

// String returns the line with + or - before it.
func (l FileLine) String() string {
	if l.Added {
		return "+ " + l.Text
	}
	return "- " + l.Text
}
