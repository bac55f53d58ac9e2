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

func isHostName(host string) bool {
	for i := range len(host) {
		c := host[i] | 0x20
		if (c < 'a' || c > 'z') && (host[i] < '0' || host[i] > '9') && strings.IndexByte(".-_", host[i]) < 0 {
			return false
		}
	}
	return true
}

// isPlainName reports whether s looks like a type name or error code, which is safe to display.
func isPlainName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && strings.IndexByte("._:$-", s[i]) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 100
}
