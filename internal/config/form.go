package config

import (
	"slices"
	"strings"
)

// Blocks are the blocks of the configuration page of worker environments in Elastic Beanstalk, in their order.
func Blocks() []string { return []string{"Queue", "Messages", "Advanced options"} }

// Topics are the groups of all options, in the order of the table.
func Topics() (topics []string) {
	for _, o := range Options() {
		if !slices.Contains(topics, o.Group) {
			topics = append(topics, o.Group)
		}
	}
	return topics
}

// Essential reports whether the option is one of the dozen that matter first.
func (o *Option) Essential() bool { return o.essential }

// Block is the block of the configuration page that has the option, one of [Blocks]; "" for an option of tendril's own.
func (o *Option) Block() string { return o.block }

// Label is the option's name for people, with the words of the configuration page where that has it.
func (o *Option) Label() string {
	if o.label != "" {
		return o.label
	}

	name := o.Name
	if o.Name == queuesKey { // or a key that only one queue has
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

// capitalised are the words that are written in capitals.
var capitalised = []string{"HTTP", "MIME", "URL", "SQS", "SNS", "S3", "TLS", "ID", "AWS"}

// Unit is what a bare number counts: "seconds", "bytes", "messages per second"; "" for values that are no such numbers.
func (o *Option) Unit() string {
	_, unit, _ := strings.Cut(unitNote(o.Kind()), " is ")
	return unit
}

// What an option decides beyond the work on messages, see [Option.Guard].
const (
	GuardCode   = "code"   // which programs run, which files are read, and where messages go
	GuardAccess = "access" // who may call tendril
)

// Guard says what a change of the option decides beyond how messages are worked on: GuardCode, GuardAccess, or "" for
// nothing.
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

// Lock says why a change of the settings file would have no effect on an option whose value has this origin; "" where
// it would have one.
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
