package config

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

// Option is one row of the option table.
type Option struct {
	// Name is the flag without dashes, in kebab case.
	Name  string
	Group string
	// Help is one sentence of at most 90 characters. Detail may be "".
	Help, Detail string
	// Key is used in tendril.yaml; "" for --config, because a file cannot name itself.
	Key                  string
	Variable             string
	Beanstalk, Namespace string
	// DaemonKey is the key in an aws-sqsd settings file, if any.
	DaemonKey string
	Aliases   []string
	// OtherVariables belong to other programs. The first one set wins, but tendril's own variables override it.
	OtherVariables []string
	// Default has the form of a settings file; "" if absent, or if it varies. DefaultNote explains it.
	Default, DefaultNote string
	Example              string
	// Serve options also exist for 'tendril serve'.
	Serve    bool
	PerQueue bool
	// Live options change while the environment runs; others need a restart.
	Live bool
	// AppRestart options need only a restart of the app if they are set for all instances.
	AppRestart bool

	secretFile   *string // nil unless the option is secret
	isSecretFile bool
	essential    bool
	block, label string // from Elastic Beanstalk's configuration page for worker environments
	// list options accept a YAML list instead of comma-separated text.
	list bool
	// beanstalkAliases are common misspellings of Beanstalk.
	beanstalkAliases []string
	// beanstalkMinutes means that a number without a unit is minutes in Elastic Beanstalk.
	beanstalkMinutes bool
	// properties are environment properties that also set the option.
	properties     []string
	cloneVariables []string
	value          value
}

func firstOption(rows []*Option, matches func(*Option) bool) *Option {
	if i := slices.IndexFunc(rows, matches); i >= 0 {
		return rows[i]
	}
	return nil
}

func findByName(rows []*Option, name string) *Option {
	name = strings.TrimLeft(name, "-")
	return firstOption(rows, func(o *Option) bool { return slices.Contains(o.names(), name) })
}

func findByKey(rows []*Option, key string) *Option {
	return firstOption(rows, func(o *Option) bool { return o.Key == key && key != "" })
}

// Kind returns duration, integer, size, switch, choice, rate, number, list or text.
func (o *Option) Kind() string { return o.value.kind }

// Allowed describes the allowed values.
func (o *Option) Allowed() string { return o.value.allowed }

// IsSwitch reports whether the option is a boolean.
func (o *Option) IsSwitch() bool { return o.value.kind == kindSwitch }

// IsSecret reports whether the value must not be displayed.
func (o *Option) IsSecret() bool { return o.secretFile != nil }

// Choices returns the allowed words of a choice; nil for other kinds.
func (o *Option) Choices() []string { return o.value.choices }

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

func (o *Option) workerNames() []string {
	if o.Namespace != bundle.NamespaceWorker {
		return nil
	}
	return append([]string{o.Beanstalk}, o.beanstalkAliases...)
}

func (o *Option) workerName() string {
	if o.Namespace != bundle.NamespaceWorker {
		return ""
	}
	return o.Beanstalk
}

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
	if o.value.sample != nil {
		return o.value.sample()
	}
	return cmp.Or(o.Example, o.Default)
}

// ExampleText returns a sample value for display.
func (o *Option) ExampleText() string { return o.human(o.example()) }

// DefaultText returns the default for display, followed by its note.
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

// AllowedText is [Option.Allowed] with each duration in the largest unit that divides it.
func (o *Option) AllowedText() string { return o.human(o.Allowed()) }

func (o *Option) human(text string) string {
	if o.Kind() == kindDuration {
		return humanDurations(text)
	}
	return text
}

const variablePrefix = "TENDRIL_SQSD_"

const workerQueueURL = "WorkerQueueURL"

func (o *Option) isSetBy(s bundle.Setting) bool {
	if s.Namespace == bundle.NamespaceEnvironment {
		return slices.Contains(o.properties, s.Option)
	}
	return o.Beanstalk != "" && s.Namespace == o.Namespace &&
		(s.Option == o.Beanstalk || slices.Contains(o.beanstalkAliases, s.Option))
}

// Bundled returns the settings that have an Elastic Beanstalk name and a value. Per-queue options are the first
// queue's.
func (s *Settings) Bundled() (list []bundle.Setting) {
	for o, value := range s.inForeignForm() {
		if o.Beanstalk != "" {
			list = append(list, bundle.Setting{Namespace: o.Namespace, Option: o.Beanstalk, Value: value})
		}
	}
	return list
}

// Daemon returns the settings by aws-sqsd key, with durations in seconds. Per-queue options are the first queue's.
func (s *Settings) Daemon() map[string]string {
	byKey := map[string]string{}
	for o, value := range s.inForeignForm() {
		if o.DaemonKey != "" {
			byKey[o.DaemonKey] = value
		}
	}
	return byKey
}

// inForeignForm yields the options that have a value, with durations as numbers.
func (s *Settings) inForeignForm() iter.Seq2[*Option, string] {
	first := *s
	if len(s.Queues) > 0 {
		first.PerQueue = s.Queues[0].PerQueue
		first.QueueURL = s.Queues[0].URL
	}
	return func(yield func(*Option, string) bool) {
		for _, o := range table(&first) {
			value := o.value.get()
			if value == "" || value == unset {
				continue
			}
			if !yield(o, inUnit(value, defaultUnit(o, o.beanstalkMinutes))) {
				return
			}
		}
	}
}
