package queue

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxPath is the maximum length in bytes of an encoded path and query.
const MaxPath = 2048

var errTooLong = fmt.Errorf("it is longer than %d bytes", MaxPath)

const maxNestedEscapes = 5

// ParsePath validates an untrusted path and optional query, such as a periodic task's url, and returns the request
// target. The path starts with one slash and has no fragment, double slash, backslash, dot-dot segment or control
// byte, even after repeated percent-decoding, so it cannot leave the configured host. The error does not repeat the
// path.
func ParsePath(raw string) (string, error) {
	switch {
	case len(raw) > MaxPath:
		return "", errTooLong
	case !strings.HasPrefix(raw, "/"):
		return "", errors.New("it does not start with a slash")
	case strings.Contains(raw, "#"):
		return "", errors.New("it has a fragment (#)")
	}

	path, query, hasQuery := strings.Cut(raw, "?")
	if hasControl(query) {
		return "", errors.New("its query has a control byte")
	}
	decoded, err := decodePath(path)
	if err != nil {
		return "", err
	}

	u := url.URL{Path: decoded, RawPath: path, RawQuery: escapeQuery(query), ForceQuery: hasQuery}
	target := u.RequestURI()
	if len(target) > MaxPath {
		return "", errTooLong
	}
	return target, nil
}

// decodePath decodes the path once, as servers do. Some servers decode repeatedly, so it also checks the results of
// further decoding.
func decodePath(path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return "", errors.New("it has an invalid percent-escape")
	}

	deeper := decoded
	for range maxNestedEscapes {
		if err := checkPath(deeper); err != nil {
			return "", fmt.Errorf("%w once decoded", err)
		}
		next, err := url.PathUnescape(deeper)
		if err != nil || next == deeper {
			return decoded, nil
		}
		deeper = next
	}
	return "", errors.New("its percent-escapes are nested too deep")
}

func checkPath(path string) error {
	switch {
	case hasControl(path):
		return errors.New("it has a control byte")
	case strings.Contains(path, "\\"):
		return errors.New("it has a backslash")
	case strings.Contains(path, "//"):
		return errors.New("it has two slashes in a row")
	}

	for segment := range strings.SplitSeq(path, "/") {
		// Some servers strip parameters from a segment before resolving it.
		name, _, _ := strings.Cut(segment, ";")
		if name == ".." {
			return errors.New("it has a dot-dot segment")
		}
	}
	return nil
}

// escapeQuery escapes only bytes that are invalid in a request line: only the app knows what the rest means.
func escapeQuery(query string) string {
	var b []byte
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			b = fmt.Appendf(b, "%%%02X", c)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}
