package config

import (
	"fmt"
	"net/url"
	"strings"

	"tendril/yamlfile"
)

// Problem is one thing that is wrong, or worth knowing, about the settings.
type Problem = yamlfile.Problem

// Error holds everything that is wrong with the settings; it is never empty.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem, each followed by its hint on an indented
// line.
func (e *Error) Error() string { return yamlfile.Join(e.Problems) }

// refusal is the problem of a value that its option does not take.
func refusal(a assignment, err error) Problem {
	advice := ""
	if a.option.value.nearest != nil {
		advice = a.option.value.nearest(a.withUnit())
	}
	if advice == "" {
		advice = a.option.example()
	}
	text := shown(a.text)
	if a.option.secret {
		text = hidden
	}
	return Problem{
		Where:  a.origin.Where,
		Option: a.option.Name,
		Text:   fmt.Sprintf("%s%s %v; allowed: %s", a.shownName(), text, err, a.allowed()),
		Hint:   "write " + a.line(advice),
	}
}

// hidden stands for a secret value.
const hidden = "(hidden)"

// shownName is the option's name and a blank, or nothing where the place of the
// value says it already.
func (a assignment) shownName() string {
	switch {
	case a.origin.Layer == FromFile || a.origin.Layer == FromBundle:
		return a.name + " "
	case a.name == a.option.Name || a.name == a.option.Variable:
		return ""
	default:
		return a.option.Name + " "
	}
}

// shown makes a refused value fit for a message: short, on one line, without
// a password.
func shown(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		text = u.Redacted()
	} else if i := strings.LastIndexByte(text, '@'); i >= 0 && strings.Contains(text, "://") {
		text = "..." + text[i:] // no URL, and perhaps a password in it
	}
	return yamlfile.Shown(text)
}
