package periodic

import (
	"net/url"
	"strings"
)

const (
	// maxPath bounds a task's url: 2 KiB.
	maxPath = 2048
	// maxDecoding is how many layers of percent-escapes are looked through.
	maxDecoding = 4
)

// pathProblem says why text is no path on the app: a task chooses a path, and
// can never choose a host. "" when it is one; a query is allowed.
func pathProblem(text string) string {
	switch {
	case len(text) > maxPath:
		return tooLong
	case !strings.HasPrefix(text, "/"):
		return "it does not begin with a slash"
	case strings.Contains(text, "#"):
		return "it has a fragment (#)"
	}
	path, query, _ := strings.Cut(text, "?")
	if hasControl(query) {
		return "its query has a control byte"
	}
	if written, err := url.PathUnescape(path); err == nil {
		u := url.URL{Path: written, RawPath: path}
		if len(u.EscapedPath())+escaped(query) > maxPath {
			return tooLong
		}
	}
	for range maxDecoding {
		if problem := segmentProblem(path); problem != "" {
			return problem
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			return "it has a broken percent-escape"
		}
		if decoded == path {
			return ""
		}
		path = decoded
	}
	return "its percent-escapes are nested too deep"
}

const tooLong = "it is longer than 2048 bytes"

// escaped is the length of a query with its mark on the wire, at most.
func escaped(query string) int {
	n := 1
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c > '~' || strings.IndexByte("\"<>\\^`{|}'", c) >= 0 {
			n += 2
		}
		n++
	}
	return n
}

func segmentProblem(path string) string {
	switch {
	case hasControl(path):
		return "it has a control byte"
	case strings.Contains(path, "\\"):
		return "it has a backslash"
	case strings.Contains(path, "//"):
		return "it has two slashes in a row"
	}
	for segment := range strings.SplitSeq(path, "/") {
		// Some servers cut parameters off a segment before they resolve it.
		if name, _, _ := strings.Cut(segment, ";"); name == ".." {
			return "it has a dot-dot segment"
		}
	}
	return ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}
