package terminal

import (
	"fmt"
	"strings"
)

// shellSafe are the characters, beside letters and digits, that mean nothing to a shell.
const shellSafe = "_-./:@%+,"

// ShellWord returns text as one word of bash, zsh or ksh, so that a command which is shown to a person can be typed
// with text that others wrote. What cannot be seen, line ends included, is escaped as in [Plain]. A word that begins
// with "-" is still an option of a program: put it behind "--".
func ShellWord(text string) string {
	isSafe := func(r rune) bool {
		return r < 0x80 && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(shellSafe, r))
	}

	if text != "" && strings.TrimFunc(text, isSafe) == "" {
		return text
	}
	if Plain(text, false) == text {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}

	var b strings.Builder
	b.WriteString("$'")
	for _, char := range strings.SplitAfter(text, "") {
		switch {
		case char == `\` || char == `'`:
			b.WriteString(`\` + char)
		case char == "\n":
			b.WriteString(`\n`)
		case char == "\r":
			b.WriteString(`\r`)
		case Plain(char, false) == char:
			b.WriteString(char)
		default:
			for i := range len(char) {
				fmt.Fprintf(&b, `\%03o`, char[i])
			}
		}
	}
	b.WriteString("'")
	return b.String()
}
