package config

import (
	"slices"
	"strings"
)

// Group is the block that an option belongs to in documentation and help.
type Group string

// The groups, in the order in which they are shown.
const (
	GroupQueue    Group = "Queue"
	GroupDelivery Group = "Delivery"
	GroupTimeouts Group = "Timeouts"
	GroupRetries  Group = "Retries"
	GroupApp      Group = "App"
	GroupEmbedded Group = "Embedded queue"
	GroupConsole  Group = "Console"
	GroupOutput   Group = "Output"
	GroupPeriodic Group = "Periodic tasks"
	GroupStop     Group = "Stop"
)

// Option is one row of the table that flags, variables, keys, documentation
// and completion are made of.
type Option struct {
	// Name is the flag without its dashes, in kebab case.
	Name string
	// Group is where the option is shown.
	Group Group
	// Help is one sentence.
	Help string
	// Key is the key in tendril.yaml; "" for --config, which cannot be in the
	// file that it names.
	Key string
	// Variable is the environment variable, TENDRIL_ and the name.
	Variable string
	// Beanstalk is the option's name in the namespace
	// aws:elasticbeanstalk:sqsd; "" where Elastic Beanstalk has none.
	Beanstalk string
	// DaemonKey is the key in aws-sqsd's own settings file; "" where it has none.
	DaemonKey string
	// Aliases are other names of the flag, as Workerless has them.
	Aliases []string
	// OtherVariables are variables of other programs that count too, the first
	// one set wins; Variable overrides them all.
	OtherVariables []string
	// Kind says how a value is written.
	Kind Kind
	// Default is the value without any setting, as it would be written; "" when
	// it is not a fixed one, and DefaultNote says what it is.
	Default, DefaultNote string
	// Example is a value to show where there is no fixed default; else "".
	Example string
	// Allowed says in words what the option takes.
	Allowed string
	// Choices are the words that a Choice takes, for completion; else nil.
	Choices []string
	// Serve tells that the option also means something to tendril serve.
	Serve bool

	// beanstalkAliases are other spellings of Beanstalk found in the wild.
	beanstalkAliases []string
	// cloneVariables are those of aws-sqsd's clones: read, with a warning.
	cloneVariables []string
	value          value
}

// Options returns the table of every option of this release, in the order of
// the groups. The slice is the caller's.
func Options() []Option {
	all := slices.Concat(
		queueOptions(), deliveryOptions(), timeoutOptions(), retryOptions(), appOptions(),
		embeddedOptions(), periodicOptions(), consoleOptions(), outputOptions(), stopOptions(),
	)
	for i := range all {
		o := &all[i]
		if o.Name != "config" {
			o.Key = strings.ReplaceAll(o.Name, "-", "_")
		}
		o.Variable = "TENDRIL_" + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
		o.Kind, o.Allowed, o.Choices = o.value.kind, o.value.allowed, o.value.choices
	}
	return all
}

// Lookup finds an option by any of its names: flag (with or without dashes in
// front), key, variable, Elastic Beanstalk name, alias, or key of aws-sqsd.
func Lookup(name string) (Option, bool) {
	name = strings.TrimLeft(name, "-")
	for _, o := range Options() {
		if slices.Contains(o.names(), name) {
			return o, true
		}
	}
	return Option{}, false
}

// names are all the names by which a person may call the option.
func (o *Option) names() []string {
	names := append([]string{o.Name, o.Variable}, o.Aliases...)
	names = append(names, o.OtherVariables...)
	for _, n := range []string{o.Key, o.Beanstalk, o.DaemonKey} {
		if n != "" {
			names = append(names, n)
		}
	}
	if o.Beanstalk != "" {
		names = append(names, variablePrefix+o.Beanstalk)
	}
	return append(names, o.beanstalkAliases...)
}

// example is a value that the option takes.
func (o *Option) example() string {
	if o.Example != "" {
		return o.Example
	}
	return o.Default
}

// defaultText is the default for people.
func (o *Option) defaultText() string {
	switch {
	case o.Default == "":
		return o.DefaultNote
	case o.DefaultNote == "":
		return o.Default
	default:
		return o.Default + ", " + o.DefaultNote
	}
}
