package config

import (
	"slices"
	"strings"
)

// Blocks returns the sections of Elastic Beanstalk's configuration page, in page order.
func Blocks() []string { return []string{"Queue", "Messages", "Advanced options"} }

// Topics returns the groups of all options, in the order of the table.
func Topics() (topics []string) {
	for _, o := range Options() {
		if !slices.Contains(topics, o.Group) {
			topics = append(topics, o.Group)
		}
	}
	return topics
}

// Essential reports whether most users need the option.
func (o *Option) Essential() bool { return o.essential }

// Block returns the option's section, one of [Blocks]; "" for tendril's own options.
func (o *Option) Block() string { return o.block }

// Label returns the option's name for display, if possible in the words of the configuration page.
func (o *Option) Label() string {
	if o.label != "" {
		return o.label
	}

	name := o.Name
	if o.Name == queuesKey { // or a key that only queues have
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

// Unit returns the unit of a bare number: "seconds", "bytes", "messages per second" or "".
func (o *Option) Unit() string {
	_, unit, _ := strings.Cut(unitNote(o.Kind()), " is ")
	return unit
}

// The values of [Option.Guard].
const (
	GuardCode   = "code"   // which programs run, which files are read, and where messages go
	GuardAccess = "access" // who may call tendril
)

// Guard returns the further consequences of changing the option: GuardCode, GuardAccess or "".
func (o *Option) Guard() string {
	switch {
	case o.IsSecret(), o.isSecretFile, o.Group == "Console",
		slices.Contains([]string{"listen", "credentials", "tls-cert", "tls-key"}, o.Name):
		return GuardAccess
	case o.Name == "filter": // it decides which messages are deleted, and may name a file
		return GuardCode
	case o.Live:
		return ""
	case o.Kind() == kindText, o.Kind() == kindList, o.Name == "allow-root", o.Name == "machine-sections":
		return GuardCode
	}
	return ""
}

// Lock explains why changing the settings file has no effect on an option with this origin; may be "".
func (o *Option) Lock(from Origin) string {
	switch {
	case o.Key == "":
		return "it names the settings file: start tendril with another --config"
	case from.Layer == fromFlag:
		return "set by the flag " + from.Where + ", which overrides the settings file: start tendril without it"
	case from.Layer == fromEnvironment:
		return "set by the variable " + from.Where + ", which overrides the settings file: start tendril without it"
	}
	return ""
}
