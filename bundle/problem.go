package bundle

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong in one line of the bundle.
type Problem struct {
	// File is the path as the bundle was opened with.
	File string
	// Line counts from 1; 0 when the file as a whole is meant.
	Line int
	// Text says what is wrong.
	Text string
	// Hint says what to write instead.
	Hint string
}

// String returns the problem as "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Error holds everything that is wrong in a bundle; it is never empty.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem and an indented line per hint.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
		if p.Hint != "" {
			b.WriteString("\n  " + p.Hint)
		}
	}
	return b.String()
}
