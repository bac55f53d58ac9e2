package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Layer is one of the places that a value can be set in. A higher layer overrides a lower one.
type Layer int

// The layers, from the weakest to the strongest.
const (
	Default         Layer = iota // not set anywhere
	FromBundle                   // the app's source bundle
	fromFile                     // the settings file
	fromEnvironment              // an environment variable
	fromFlag                     // the command line
)

func layers() []string { return []string{"default", "bundle", "file", "environment", "flag"} }

// String returns "default", "bundle", "file", "environment" or "flag".
func (l Layer) String() string { return layers()[l] }

// ParseLayer is the opposite of String; another text is [Default].
func ParseLayer(text string) Layer { return Layer(max(slices.Index(layers(), text), 0)) }

// Origin says where a value was set.
type Origin struct {
	Layer Layer
	// Where is the place in the layer: "tendril.yaml:3", the name of a variable, a flag with its dashes, the
	// bundle's folder; for a default it is "", or a few words on what it follows from.
	Where string
}

// String returns the place, or "default".
func (o Origin) String() string {
	switch {
	case o.Layer != Default:
		return o.Where
	case o.Where == "":
		return "default"
	default:
		return "default: " + o.Where
	}
}

// Setting is one layer's value for one option.
type Setting struct {
	// Origin is where the layer sets it.
	Origin Origin
	// Value is in the option's usual form.
	Value string
}

// assignment is one value as it was written, not yet checked.
type assignment struct {
	option *Option
	origin Origin
	// name is the option's name as it was written there.
	name, text string
	// unit is what a bare number counts, second or minute, in a place where durations
	// are bare numbers; 0 where they carry units.
	unit time.Duration
}

// bareUnit is the unit of an option's bare numbers in a bundle and in aws-sqsd's file; 0 for what is not a duration.
func bareUnit(o *Option, minutes bool) time.Duration {
	switch {
	case o.Kind() != kindDuration:
		return 0
	case minutes:
		return time.Minute
	}
	return time.Second
}

// withUnit is the text as every other place has it: bare minutes carry their unit.
func (a assignment) withUnit() string {
	if a.unit == time.Minute && a.text != "" && strings.Trim(a.text, "0123456789") == "" {
		return a.text + "m"
	}
	return a.text
}

// bare is a number of units for a duration, rounded up; other values stay as they are.
func (a assignment) bare(value string) string {
	if d, err := ParseDuration(value); a.unit > 0 && err == nil {
		return strconv.FormatInt(int64((d+a.unit-1)/a.unit), 10)
	}
	return value
}

// allowed says what the option takes, as it is written in this place.
func (a assignment) allowed() string {
	low, rest, found := strings.Cut(a.option.Allowed(), " to ")
	if a.unit == 0 || !found {
		return a.option.AllowedText()
	}
	high, rest, more := strings.Cut(rest, ",")
	if more {
		rest = "," + rest
	}
	units := " seconds"
	if a.unit == time.Minute {
		units = " minutes"
	}
	return a.bare(low) + " to " + a.bare(high) + units + rest
}

// line returns what to write in this place to give the option a value.
func (a assignment) line(value string) string {
	value = a.bare(value)
	switch a.origin.Layer {
	case fromFlag:
		return "--" + a.name + "=" + value
	case fromEnvironment:
		return a.name + "=" + value
	default:
		return a.name + ": " + value
	}
}
