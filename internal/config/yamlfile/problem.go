package yamlfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong, or worth knowing, about a file or a setting.
type Problem struct {
	// Where is the place to fix: see [Place]; or the name of a variable, or a flag with
	// its dashes; "" when no single place is to blame.
	Where string
	// Task is the periodic task concerned: its name, or "number 3" in the list where it
	// has none; "" when the problem is with no task.
	Task string
	// Option is the option or key concerned; "" when the problem is with the whole.
	Option string
	// Text says what is wrong.
	Text string
	// Hint says what to write instead; may be "".
	Hint string
}

// String returns "where: task name: text", without what is empty and the hint.
func (p Problem) String() string {
	text := p.Text
	if p.Task != "" {
		text = "task " + p.Task + ": " + text
	}
	if p.Where != "" {
		text = p.Where + ": " + text
	}
	return text
}

// Place is "file:line:column", "file:line" for column 0, or the file alone for line 0.
func Place(file string, line, column int) string {
	if line > 0 {
		file += ":" + strconv.Itoa(line)
	}
	if column > 0 {
		file += ":" + strconv.Itoa(column)
	}
	return file
}

// Join returns one line per problem, each followed by its hint on an indented line.
func Join(problems []Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
		if p.Hint != "" {
			lines[i] += "\n  " + p.Hint
		}
	}
	return strings.Join(lines, "\n")
}

// Short cuts text to the 80 characters that fit a message.
func Short(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}

// Shown makes a piece of a file fit a message: short, and in quotes where it is not one printable word.
func Shown(text string) string {
	text = Short(text)
	odd := func(r rune) bool { return r == ' ' || r == '\t' || r == utf8.RuneError || IsControl(r) }
	if text == "" || strings.ContainsFunc(text, odd) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// Printable makes text fit a message: its first line, short, and without control characters.
func Printable(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return Short(OneLine(text))
}

// OneLine puts ? in the place of control characters.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) || r == '\t' {
			return '?'
		}
		return r
	}, text)
}

// IsControl is true for what a terminal would act on; a tab is a blank.
func IsControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
