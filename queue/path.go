package queue

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxPath is the longest path, query included, that a POST may go to, in bytes
// on the wire.
const MaxPath = 2048

var errTooLong = fmt.Errorf("it is longer than %d bytes", MaxPath)

// maxDecoding is how often a path is decoded to see what it may come to mean.
const maxDecoding = 5

// ParsePath checks a path, with or without a query, that somebody else chose:
// a periodic task's url, or the path of the settings. It returns the request
// target as it goes on the wire. The path can choose a place on the configured
// host and nothing else: it begins with one slash, holds no second slash in a
// row, no backslash, no dot-dot segment and no control byte, also not when
// percent-escapes are decoded over and over, has no fragment, and is at most
// [MaxPath] bytes long. The error says which of these rules is broken; it does not
// repeat the path.
func ParsePath(raw string) (string, error) {
	switch {
	case len(raw) > MaxPath:
		return "", errTooLong
	case !strings.HasPrefix(raw, "/"):
		return "", errors.New("it does not begin with a slash")
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

// decodePath decodes the path once, as a server does, and checks it as written
// and at every depth of decoding that a careless server might reach.
func decodePath(path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return "", errors.New("it has a broken percent-escape")
	}

	deeper := decoded
	for range maxDecoding {
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
		// Some servers cut parameters off a segment before they resolve it.
		name, _, _ := strings.Cut(segment, ";")
		if name == ".." {
			return errors.New("it has a dot-dot segment")
		}
	}
	return nil
}

// escapeQuery escapes the bytes that may not stand in a request line and leaves
// all others as they are, because only the app knows what its query means.
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
