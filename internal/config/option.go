package config

import (
	"slices"
	"strings"

	"tendril/internal/bundle"
)

// Option is one row of the table that flags, variables, keys, documentation and completion are made of.
type Option struct {
	// Name is the flag without its dashes, in kebab case.
	Name string
	// Group is the block that the option belongs to in the documentation.
	Group string
	// Help is one sentence of at most 90 characters; Detail is what else to know, for
	// the documentation and tendril explain, "" for nothing.
	Help, Detail string
	// Key is the key in tendril.yaml; "" for --config, which cannot be in the file that it names.
	Key string
	// Variable is the environment variable, TENDRIL_ and the name.
	Variable string
	// Beanstalk is the option's name in Elastic Beanstalk, in Namespace; both are "" where it has none.
	Beanstalk, Namespace string
	// DaemonKey is the key in aws-sqsd's own settings file; "" where it has none.
	DaemonKey string
	// Aliases are other names of the flag, as Workerless has them.
	Aliases []string
	// OtherVariables are variables of other programs that count too, the first
	// one set wins; Variable overrides them all.
	OtherVariables []string
	// Default is the value without any setting, as it would be written; "" when
	// it is not a fixed one, and DefaultNote says what it is.
	Default, DefaultNote string
	// Example is a value to show where there is no fixed default; else "".
	Example string
	// Serve is true if tendril serve has the option too.
	Serve bool
	// PerQueue is true if the option may also be set for one queue, in the list of maps below the key queues.
	PerQueue bool
	// Live is true if a change takes effect while tendril runs, after a reload or
	// with a deployment; else at its next start.
	Live bool

	// secretFile is the field for the path of a file that holds the value of a secret option; nil for options that are
	// not secret.
	secretFile *string
	// isSecretFile is true if the option names such a file.
	isSecretFile bool
	// essential is true if most environments set the option sooner or later.
	essential bool
	// block and label are the option's block and name on the configuration page of worker environments in Elastic
	// Beanstalk; "" if it isn't there.
	block, label string
	// list is true if a YAML list is the same as its items with commas between.
	list bool
	// beanstalkAliases are other spellings of Beanstalk found in the wild.
	beanstalkAliases []string
	// beanstalkMinutes is true if a bare number is minutes under the name Beanstalk.
	beanstalkMinutes bool
	// properties are environment properties of a bundle that count too.
	properties []string
	// cloneVariables are variables of aws-sqsd's clones: read, with a warning.
	cloneVariables []string
	value          value
}

// find returns the row with any of an option's names; nil if there isn't one.
func find(rows []*Option, name string) *Option {
	name = strings.TrimLeft(name, "-")
	for _, o := range rows {
		if slices.Contains(o.names(), name) {
			return o
		}
	}
	return nil
}

// withKey returns the row of a key in tendril.yaml; nil if there isn't one.
func withKey(rows []*Option, key string) *Option {
	if i := slices.IndexFunc(rows, func(o *Option) bool { return o.Key == key }); i >= 0 && key != "" {
		return rows[i]
	}
	return nil
}

// Kind says in a word how a value is written: duration, integer, size, switch, choice, rate, number, list or text.
func (o *Option) Kind() string { return o.value.kind }

// Allowed says in words what the option takes.
func (o *Option) Allowed() string { return o.value.allowed }

// IsSwitch reports whether the option is true or false.
func (o *Option) IsSwitch() bool { return o.value.kind == kindSwitch }

// IsSecret reports whether the value is never shown.
func (o *Option) IsSecret() bool { return o.secretFile != nil }

// Choices are the words that a choice takes, for completion; else nil.
func (o *Option) Choices() []string { return o.value.choices }

// names are all the names by which a person may call the option.
func (o *Option) names() []string {
	names := append([]string{o.Name, o.Variable}, o.Aliases...)
	names = append(names, o.OtherVariables...)
	for _, n := range []string{o.Key, o.Beanstalk, o.DaemonKey} {
		if n != "" {
			names = append(names, n)
		}
	}
	if o.Namespace == bundle.NamespaceWorker {
		names = append(names, variablePrefix+o.Beanstalk)
	}
	return append(names, o.beanstalkAliases...)
}

// workerNames are the option's names in the namespace of the worker daemon,
// the usual one first; none where it has none there.
func (o *Option) workerNames() []string {
	if o.Namespace != bundle.NamespaceWorker {
		return nil
	}
	return append([]string{o.Beanstalk}, o.beanstalkAliases...)
}

// beanstalkText is the option's name in Elastic Beanstalk for people, with the
// namespace unless it is the worker daemon's.
func (o *Option) beanstalkText() string {
	switch {
	case o.Namespace == bundle.NamespaceWorker || o.Beanstalk == "":
		return o.Beanstalk
	case o.beanstalkMinutes:
		return o.Beanstalk + " in " + o.Namespace + ", where a bare number is minutes"
	default:
		return o.Beanstalk + " in " + o.Namespace
	}
}

func (o *Option) example() string {
	if o.Example != "" {
		return o.Example
	}
	return o.Default
}

// ExampleText is a value that the option takes, for people.
func (o *Option) ExampleText() string { return o.human(o.example()) }

// DefaultText is the default for people: the value, and words about it.
func (o *Option) DefaultText() string {
	switch value := o.human(o.Default); {
	case value == "":
		return o.DefaultNote
	case o.DefaultNote == "":
		return value
	default:
		return value + ", " + o.DefaultNote
	}
}

// AllowedText is [Option.Allowed] for people: durations are in the largest unit that leaves them whole.
func (o *Option) AllowedText() string { return o.human(o.Allowed()) }

func (o *Option) human(text string) string {
	if o.Kind() == kindDuration {
		return humanDurations(text)
	}
	return text
}

// variablePrefix begins the variables that carry an Elastic Beanstalk option name.
const variablePrefix = "TENDRIL_SQSD_"

// workerQueueURL is the option that says which queue the worker takes its messages from.
const workerQueueURL = "WorkerQueueURL"

func (o *Option) isBundled(s bundle.Setting) bool {
	if s.Namespace == bundle.NamespaceEnvironment {
		return slices.Contains(o.properties, s.Option)
	}
	return o.Beanstalk != "" && s.Namespace == o.Namespace &&
		(s.Option == o.Beanstalk || slices.Contains(o.beanstalkAliases, s.Option))
}

// Bundled returns the settings in force as a bundle would write them, for the options that Elastic Beanstalk has:
// durations are bare numbers. What is set for one queue counts for the first of several. Options without a value are
// left out.
func (s *Settings) Bundled() (list []bundle.Setting) {
	s.eachForeign(func(o *Option, value string) {
		if o.Beanstalk != "" {
			list = append(list, bundle.Setting{Namespace: o.Namespace, Option: o.Beanstalk, Value: value})
		}
	})
	return list
}

// Daemon returns the settings in force by their keys in the settings file of aws-sqsd, with durations in seconds.
// What is set for one queue counts for the first of several. Options without a value are left out.
func (s *Settings) Daemon() map[string]string {
	byKey := map[string]string{}
	s.eachForeign(func(o *Option, value string) {
		if o.DaemonKey != "" {
			byKey[o.DaemonKey] = value
		}
	})
	return byKey
}

// eachForeign calls do for each option that has a value, in the form of Elastic Beanstalk.
func (s *Settings) eachForeign(do func(o *Option, value string)) {
	first := *s
	if len(s.Queues) > 0 {
		first.PerQueue = s.Queues[0].PerQueue
		first.QueueURL = s.Queues[0].URL
	}
	for _, o := range table(&first) {
		if value := o.value.get(); value != "" && value != unset {
			do(o, assignment{option: o, unit: bareUnit(o, o.beanstalkMinutes)}.bare(value))
		}
	}
}
