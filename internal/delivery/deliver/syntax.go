package deliver

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// isFieldValue reports whether s can be sent unchanged. Servers that decode values reject invalid UTF-8.
func isFieldValue(s string) bool { return httpguts.ValidHeaderFieldValue(s) && utf8.ValidString(s) }

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isHostName(host string) bool { return hasOnlyLettersAnd(host, "0123456789.-_") }

// isPlainName reports whether s looks like a type name or error code, which is safe to display.
func isPlainName(s string) bool {
	return s != "" && len(s) <= 100 && hasOnlyLettersAnd(s, "0123456789._:$-")
}

// hasOnlyLettersAnd checks for letters in ASCII and the others.
func hasOnlyLettersAnd(s, others string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && !strings.ContainsRune(others, c)
	})
}
