package terminal

import (
	"fmt"
	"strings"
)

const shellSafe = "_-./:@%+,"

// ShellWord quotes text as one word for bash, zsh or ksh, so that suggested commands are safe to run. A word that
// starts with "-" may be read as an option unless it follows "--".
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
