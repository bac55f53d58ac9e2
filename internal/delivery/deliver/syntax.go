package deliver

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// isFieldValue reports whether a header can carry s byte for byte: no control
// byte but the tab, and valid UTF-8 beyond ASCII, since servers that decode
// header values refuse the whole request otherwise.
func isFieldValue(s string) bool { return httpguts.ValidHeaderFieldValue(s) && utf8.ValidString(s) }

// hasControl reports whether s has a control byte.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// isHostName reports whether s may be the name of a host.
func isHostName(host string) bool {
	for i := range len(host) {
		c := host[i] | 0x20
		if (c < 'a' || c > 'z') && (host[i] < '0' || host[i] > '9') && strings.IndexByte(".-_", host[i]) < 0 {
			return false
		}
	}
	return true
}

// isPlainName reports whether s is a name as types and error codes have it, and so
// may be shown.
func isPlainName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && strings.IndexByte("._:$-", s[i]) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 100
}
