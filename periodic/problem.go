package periodic

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong, or worth knowing, about a cron.yaml.
type Problem struct {
	// Where is the place to mend, "cron.yaml:3", or the file alone.
	Where string
	// Task is the task concerned: its name, or "number 3" in the list where it has
	// none; "" when the problem is with no task.
	Task string
	// Option is the key concerned, such as "schedule"; "" when the problem is
	// with the whole file.
	Option string
	// Text says what is wrong.
	Text string
	// Hint says what to write instead; may be "".
	Hint string
}

// String returns "where: task name: text", without the hint.
func (p Problem) String() string {
	if p.Task != "" {
		return p.Where + ": task " + p.Task + ": " + p.Text
	}
	return p.Where + ": " + p.Text
}

// Error holds everything that is wrong with a file; it is never empty.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem, each followed by its hint on an indented
// line.
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

// shown makes a piece of the file fit for a message: short and on one line.
func shown(text string) string {
	text = cut(text)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == utf8.RuneError
	}) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// cut shortens what somebody else wrote to the 80 characters that fit a
// message.
func cut(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}
