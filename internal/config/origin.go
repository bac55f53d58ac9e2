package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/internal/config/yamlfile"
)

// Layer is a kind of source. A higher layer overrides lower ones.
type Layer int

// The layers, from weakest to strongest.
const (
	Default Layer = iota
	FromBundle
	fromFile
	FromRegistry
	fromEnvironment
	fromFlag
)

func layers() []string {
	return []string{"default", "bundle", "file", "registry", "environment", "flag"}
}

func (l Layer) String() string { return layers()[l] }

// ParseLayer is the inverse of [Layer.String]. It returns [Default] for unknown text.
func ParseLayer(text string) Layer { return Layer(max(slices.Index(layers(), text), 0)) }

// Origin is the place where a value was set.
type Origin struct {
	Layer Layer
	// Where is a position such as "tendril.yaml:3", a registry revision, a variable, a flag with its dashes, the
	// bundle's folder, a short reason for a default, or "".
	Where string
}

func inFile(file string, line int) Origin { return Origin{fromFile, yamlfile.Place(file, line, 0)} }

// String returns Where, or "default" with the reason, if any.
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

// Overrides returns "the variable NAME" or "the flag --NAME", or "" if the origin does not override layer.
func (o Origin) Overrides(layer Layer) string {
	switch {
	case o.Layer <= layer:
		return ""
	case o.Layer == fromEnvironment:
		return "the variable " + o.Where
	}
	return "the flag " + o.Where
}

// Setting is an option's value in one layer.
type Setting struct {
	Origin Origin
	Value  string
}

type assignment struct {
	option     *Option
	origin     Origin
	name, text string
	// unit is time.Second or time.Minute for a duration written as a plain number, otherwise 0.
	unit time.Duration
}

func defaultUnit(o *Option, minutes bool) time.Duration {
	switch {
	case o.Kind() != kindDuration:
		return 0
	case minutes:
		return time.Minute
	}
	return time.Second
}

func (a assignment) withUnit() string {
	if a.unit == time.Minute && a.text != "" && strings.Trim(a.text, "0123456789") == "" {
		return a.text + "m"
	}
	return a.text
}

// inUnit returns a duration as a number, rounded up. It returns other values unchanged.
func inUnit(value string, unit time.Duration) string {
	if d, err := ParseDuration(value); unit > 0 && err == nil {
		return strconv.FormatInt(int64((d+unit-1)/unit), 10)
	}
	return value
}

// allowedInUnit returns text such as "0 to 43200 seconds, or unset".
func (a assignment) allowedInUnit() string {
	if a.unit == 0 {
		return a.option.AllowedText()
	}

	unit := " seconds"
	if a.unit == time.Minute {
		unit = " minutes"
	}
	v := &a.option.value
	return inUnit(v.low, a.unit) + " to " + inUnit(v.high, a.unit) + unit +
		strings.TrimPrefix(v.allowed, v.low+" to "+v.high)
}

func (a assignment) line(value string) string {
	value = inUnit(value, a.unit)
	switch a.origin.Layer {
	case fromFlag:
		return "--" + a.name + "=" + value
	case fromEnvironment:
		return a.name + "=" + value
	default:
		return a.name + ": " + value
	}
}
