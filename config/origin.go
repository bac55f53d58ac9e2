package config

import (
	"strconv"
	"time"
)

// Layer is one of the places that a value can be set in. A higher layer
// overrides a lower one.
type Layer int

// The layers, from the weakest to the strongest.
const (
	// Default: nobody set it.
	Default Layer = iota
	// FromBundle: the app's source bundle.
	FromBundle
	// FromFile: the settings file.
	FromFile
	// FromEnvironment: an environment variable.
	FromEnvironment
	// FromFlag: the command line.
	FromFlag
)

// String returns "default", "bundle", "file", "environment" or "flag".
func (l Layer) String() string {
	switch l {
	case FromBundle:
		return "bundle"
	case FromFile:
		return "file"
	case FromEnvironment:
		return "environment"
	case FromFlag:
		return "flag"
	default:
		return "default"
	}
}

// Origin says where a value was set.
type Origin struct {
	Layer Layer
	// Where is the place in the layer: "tendril.yaml:3", the name of a
	// variable, a flag with its dashes, the bundle's folder; for a default it
	// is "", or a few words on what it follows from.
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
	Origin
	// Value is in the option's usual form.
	Value string
}

// assignment is one value as somebody wrote it, not yet checked.
type assignment struct {
	option *Option
	origin Origin
	// name is the option's name as it was written there.
	name, text string
	// minutes tells that a bare number counts minutes there.
	minutes bool
}

// line returns what to write in this place to give the option a value.
func (a assignment) line(value string) string {
	if d, err := parseDuration(value); a.minutes && err == nil {
		value = strconv.FormatInt(int64((d+time.Minute-1)/time.Minute), 10)
	}
	switch a.origin.Layer {
	case FromFlag:
		return "--" + a.name + "=" + value
	case FromEnvironment:
		return a.name + "=" + value
	default:
		return a.name + ": " + value
	}
}
