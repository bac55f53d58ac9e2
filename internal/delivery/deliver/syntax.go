package deliver

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// isFieldValue also rejects invalid UTF-8, because some servers reject it.
func isFieldValue(s string) bool { return httpguts.ValidHeaderFieldValue(s) && utf8.ValidString(s) }

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isHostName(host string) bool { return hasOnlyLettersAnd(host, "0123456789.-_") }

// isPlainName accepts type names and error codes, which are safe to display.
func isPlainName(s string) bool {
	return s != "" && len(s) <= 100 && hasOnlyLettersAnd(s, "0123456789._:$-")
}

func hasOnlyLettersAnd(s, others string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && !strings.ContainsRune(others, c)
	})
}
