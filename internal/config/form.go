package config

import (
	"slices"
	"strings"
)

// Blocks returns the sections of Elastic Beanstalk's configuration page, in page order.
func Blocks() []string { return []string{"Queue", "Messages", "Advanced options"} }

// Topics returns the groups of all options, in table order.
func Topics() (topics []string) {
	for _, o := range Options() {
		if !slices.Contains(topics, o.Group) {
			topics = append(topics, o.Group)
		}
	}
	return topics
}

// Essential reports whether most users set the option.
func (o *Option) Essential() bool { return o.essential }

// Block returns one of [Blocks], or "" for options that only tendril has.
func (o *Option) Block() string { return o.block }

// Label returns the display name, from Elastic Beanstalk's configuration page if possible.
func (o *Option) Label() string {
	if o.label != "" {
		return o.label
	}

	name := o.Name
	if o.Name == queuesKey {
		name = o.Key
	}

	words := strings.Split(name, "-")
	for i, w := range words {
		if capitals := strings.ToUpper(w); slices.Contains(capitalised, capitals) {
			words[i] = capitals
		} else if i == 0 {
			words[i] = capitals[:1] + w[1:]
		}
	}

	return strings.Join(words, " ")
}

var capitalised = []string{"HTTP", "MIME", "URL", "SQS", "SNS", "S3", "TLS", "ID", "AWS"}

// Unit returns "seconds", "bytes", "messages per second", or "" for numbers without a unit.
func (o *Option) Unit() string {
	switch o.Kind() {
	case kindDuration:
		return "seconds"
	case kindSize:
		return "bytes"
	case kindRate:
		return "messages per second"
	}
	return ""
}

// Values of [Option.Guard].
const (
	GuardCode   = "code"   // the option decides which programs run, which files are read, or where messages go
	GuardAccess = "access" // the option decides who can call tendril
)

// Guard returns why changing the option is security-sensitive: GuardCode, GuardAccess or "".
func (o *Option) Guard() string {
	switch {
	case o.IsSecret(), o.isSecretFile, o.Group == "Console",
		slices.Contains([]string{"listen", "credentials", "tls-cert", "tls-key"}, o.Name):
		return GuardAccess
	case o.Name == "filter": // a filter deletes messages, and its value may name a file
		return GuardCode
	case o.Live:
		return ""
	case o.Kind() == kindText, o.Kind() == kindList, o.Name == "allow-root", o.Name == "machine-sections":
		return GuardCode
	}
	return ""
}

// PerInstance returns why the registry cannot set the option for all instances, or "" if it can.
func (o *Option) PerInstance() string {
	switch {
	case o.IsSecret(), o.isSecretFile:
		return "the registry does not store secrets"
	case o.Guard() == GuardAccess:
		return "it controls access to an instance"
	case strings.HasPrefix(o.Name, "rollout-"), o.Name == "registry-lost-after", o.Key == "max":
	case o.Group == "Periodic tasks", o.Group == "Fleet", slices.Contains([]string{queuesKey, "queue", "queue-url", "backend", "region",
		"endpoint-url", "account-id", "name", "environment-name"}, o.Name):
		return "it determines the instance's queue, name or registry"
	case slices.Contains([]string{"config", "data-dir", "port", "target-ca", "target-cert", "target-key", "pid-file",
		"app-log-dir"}, o.Name):
		return "it is a place on the instance's machine"
	}
	return ""
}

func (o *Option) perInstanceProblem(where, name string) Problem {
	return Problem{Where: where, Option: name, Text: shown(name) + " cannot be set for all instances: " + o.PerInstance(),
		Hint: "set it in the settings file of each instance, with 'tendril config set --this'"}
}

// Lock returns why editing the settings file would not change an option whose value has this origin, or "".
func (o *Option) Lock(from Origin) string {
	switch {
	case o.Key == "":
		return "it names the settings file: start tendril with another --config"
	case from.Layer == FromRegistry:
		return "set for all instances, which overrides the settings file: 'tendril config unset " + o.Name + "' removes it"
	}
	if source := from.Overrides(FromRegistry); source != "" {
		return "set by " + source + ", which overrides the settings file: start tendril without it"
	}
	return ""
}
