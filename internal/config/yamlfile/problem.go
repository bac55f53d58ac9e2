package yamlfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is an error or a warning about a file or a setting.
type Problem struct {
	// Where is the result of [Place], an environment variable, or a flag with its dashes; may be "".
	Where  string
	Task   string
	Option string
	Text   string
	Hint   string
}

// String returns "where: task name: text", omitting empty parts and the hint.
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

// Place returns "file:line:column", omitting line and column if they are 0.
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

// Short truncates text to 80 characters.
func Short(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}

// Shown formats an excerpt of a file: shortened, quoted unless it is one printable word, and without a query, which may
// contain a secret.
func Shown(text string) string {
	if path, query, _ := strings.Cut(text, "?"); strings.Contains(query, "=") {
		text = path + "?(hidden)"
	}
	text = Short(text)
	odd := func(r rune) bool { return r == ' ' || r == '\t' || r == utf8.RuneError || IsControl(r) }
	if text == "" || strings.ContainsFunc(text, odd) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// Printable returns the first line of text, shortened and without control characters.
func Printable(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return Short(OneLine(text))
}

// OneLine replaces control characters and tabs with "?".
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) || r == '\t' {
			return '?'
		}
		return r
	}, text)
}

// IsControl reports whether r is an ASCII control character other than a tab.
func IsControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
