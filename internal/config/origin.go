package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Layer is a source of values. A higher layer overrides a lower one.
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

// ParseLayer is the inverse of String; it returns [Default] for unknown text.
func ParseLayer(text string) Layer { return Layer(max(slices.Index(layers(), text), 0)) }

// Origin is the place where a value was set.
type Origin struct {
	Layer Layer
	// Where is the place in the layer: "tendril.yaml:3", the name of a variable, a flag with its dashes, or the
	// bundle's folder. For a default it is "" or a short reason.
	Where string
}

// String returns the place, or "default" with the reason, if any.
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

// Setting is one layer's value of an option.
type Setting struct {
	Origin Origin
	// Value is in the option's normal form.
	Value string
}

// assignment is a value as written, not yet validated.
type assignment struct {
	option *Option
	origin Origin
	// name is the option's name in the source.
	name, text string
	// unit is the unit of a bare number, second or minute, in sources that write durations as bare numbers; 0 in
	// others.
	unit time.Duration
}

// bareUnit returns the unit of an option's bare numbers in a bundle or an aws-sqsd file; 0 if it is not a duration.
func bareUnit(o *Option, minutes bool) time.Duration {
	switch {
	case o.Kind() != kindDuration:
		return 0
	case minutes:
		return time.Minute
	}
	return time.Second
}

// withUnit returns the text in the notation of the other sources: bare minutes get their unit.
func (a assignment) withUnit() string {
	if a.unit == time.Minute && a.text != "" && strings.Trim(a.text, "0123456789") == "" {
		return a.text + "m"
	}
	return a.text
}

// bare formats a duration as a bare number of units, rounded up. Other values stay unchanged.
func (a assignment) bare(value string) string {
	if d, err := ParseDuration(value); a.unit > 0 && err == nil {
		return strconv.FormatInt(int64((d+a.unit-1)/a.unit), 10)
	}
	return value
}

// allowed describes the allowed values in the notation of this source.
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

// line returns the text that sets the option to value in this source.
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
