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
	Default Layer = iota
	FromBundle
	fromFile
	fromEnvironment
	fromFlag
)

func layers() []string { return []string{"default", "bundle", "file", "environment", "flag"} }

// String returns "default", "bundle", "file", "environment" or "flag".
func (l Layer) String() string { return layers()[l] }

// ParseLayer is the inverse of String; it returns [Default] for unknown text.
func ParseLayer(text string) Layer { return Layer(max(slices.Index(layers(), text), 0)) }

// Origin is the place where a value was set.
type Origin struct {
	Layer Layer
	// Where is "tendril.yaml:3", a variable, a flag with its dashes, the bundle's folder, or a short reason for a
	// default; may be "".
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
	Value  string
}

// assignment is a value as written, not yet validated.
type assignment struct {
	option     *Option
	origin     Origin
	name, text string
	// unit is second or minute in sources that write durations as bare numbers; 0 in others.
	unit time.Duration
}

// bareUnit returns the unit of bare numbers in a bundle or an aws-sqsd file; 0 if the option is not a duration.
func bareUnit(o *Option, minutes bool) time.Duration {
	switch {
	case o.Kind() != kindDuration:
		return 0
	case minutes:
		return time.Minute
	}
	return time.Second
}

// withUnit adds the unit to bare minutes.
func (a assignment) withUnit() string {
	if a.unit == time.Minute && a.text != "" && strings.Trim(a.text, "0123456789") == "" {
		return a.text + "m"
	}
	return a.text
}

// bare formats a duration as a bare number of units, rounded up.
func (a assignment) bare(value string) string {
	if d, err := ParseDuration(value); a.unit > 0 && err == nil {
		return strconv.FormatInt(int64((d+a.unit-1)/a.unit), 10)
	}
	return value
}

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
