package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

// Problem is an error or a warning about the settings.
type Problem = yamlfile.Problem

// Error holds every problem with the settings; it is never empty.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string { return yamlfile.Join(e.Problems) }

func refusal(a assignment, err error) Problem {
	advice := ""
	if a.option.value.nearest != nil {
		advice = a.option.value.nearest(a.withUnit())
	}
	if advice == "" {
		advice = a.option.example()
	}
	if a.unit == 0 {
		advice = a.option.human(advice)
	}

	text := shown(a.text)
	if a.option.IsSecret() {
		text = hidden
	}

	hint := "write " + a.line(advice)
	if a.origin.Layer == FromRegistry {
		hint += ", with 'tendril config set' on a running instance, or on one of the previous version if none starts"
	} else {
		hint += a.option.value.alternative
	}

	return Problem{
		Where:  a.origin.Where,
		Option: a.option.Name,
		Text:   fmt.Sprintf("%s%s %v; allowed: %s", a.shownName(), text, err, a.allowedInUnit()),
		Hint:   hint,
	}
}

const hidden = "(hidden)"

// WithoutQuery hides the query string of a path or URL, because it may contain a secret.
func WithoutQuery(url string) string {
	if path, query, _ := strings.Cut(url, "?"); query != "" {
		return path + "?" + hidden
	}
	return url
}

// shownName returns "" if Where already contains the option's name.
func (a assignment) shownName() string {
	switch {
	case FromBundle <= a.origin.Layer && a.origin.Layer <= FromRegistry:
		return a.name + " "
	case a.name == a.option.Name || a.name == a.option.Variable:
		return ""
	default:
		return a.option.Name + " "
	}
}

// shown shortens a rejected value to one line without a password or a query.
func shown(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		text = u.Redacted()
	} else if i := strings.LastIndexByte(text, '@'); i >= 0 && strings.Contains(text, "://") {
		text = "..." + text[i:] // not a valid URL, but possibly with a password
	}
	return yamlfile.Shown(text)
}

// Nearest returns up to three known names similar to name, closest first, ignoring case and the difference between
// dashes and underscores.
func Nearest(name string, known []string) []string {
	const longest = 64 // longer than every known name; editDistance takes quadratic time
	name = fold(name)
	if len(name) > longest {
		return nil
	}
	away := func(known string) int { return editDistance(name, fold(known)) }
	bound := max(1, len(name)/3)
	near := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return away(k) > bound })
	slices.SortStableFunc(near, func(a, b string) int { return away(a) - away(b) })
	return near[:min(len(near), 3)]
}

func nearestOne(name string, known []string) string {
	if names := Nearest(name, known); len(names) > 0 {
		return names[0]
	}
	return ""
}

func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

func editDistance(a, b string) int {
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}

	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}

		before, last, row = last, row, before
	}

	return last[len(b)]
}
