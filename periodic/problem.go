package periodic

import "tendril/yamlfile"

// Problem is one thing that is wrong, or worth knowing, about a cron.yaml.
type Problem = yamlfile.Problem

// Error holds everything that is wrong with a file; it is never empty.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem, each followed by its hint on an indented
// line.
func (e *Error) Error() string { return yamlfile.Join(e.Problems) }
