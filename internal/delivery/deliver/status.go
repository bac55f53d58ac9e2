package deliver

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	minStatus = 200
	maxStatus = 599
)

// StatusSet is a set of HTTP status codes from 200 to 599, comparable with ==. The zero value is empty.
type StatusSet [maxStatus + 1]bool

// ParseStatusSet parses a comma-separated list of codes ("200"), ranges ("202-204") and classes ("2xx").
func ParseStatusSet(list string) (StatusSet, error) {
	var s StatusSet
	for entry := range strings.SplitSeq(list, ",") {
		from, to, ok := parseStatusRange(strings.TrimSpace(entry))
		if !ok {
			return StatusSet{}, fmt.Errorf("%q: %q is not a status: write codes from %d to %d, ranges or classes, such as "+
				"200,202-204 or 2xx", list, strings.TrimSpace(entry), minStatus, maxStatus)
		}
		for code := from; code <= to; code++ {
			s[code] = true
		}
	}
	return s, nil
}

func parseStatusRange(entry string) (from, to int, ok bool) {
	if len(entry) == 3 && strings.EqualFold(entry[1:], "xx") {
		class := int(entry[0]-'0') * 100
		return class, class + 99, entry[0] >= '2' && entry[0] <= '5'
	}
	first, last, isRange := strings.Cut(entry, "-")
	from, ok = parseStatus(strings.TrimSpace(first))
	if !ok || !isRange {
		return from, from, ok
	}
	to, ok = parseStatus(strings.TrimSpace(last))
	return from, to, ok && from <= to
}

func parseStatus(digits string) (int, bool) {
	code, err := strconv.ParseUint(digits, 10, 16)
	return int(code), err == nil && len(digits) == 3 && code >= minStatus && code <= maxStatus
}

// Has reports whether code is in the set.
func (s *StatusSet) Has(code int) bool { return code >= minStatus && code <= maxStatus && s[code] }
