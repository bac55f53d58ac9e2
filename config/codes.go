package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	lowestFinal  = 200 // below are the informational statuses, which end nothing
	highestFinal = 599
)

// codeRange is the statuses from first to last.
type codeRange struct{ first, last int }

// successCodes takes a list such as "200,202-204" or "2xx" and returns it
// sorted, joined where ranges touch, with classes written as ranges.
func successCodes(text string) (string, error) {
	var ranges []codeRange
	for item := range strings.SplitSeq(text, ",") {
		r, err := parseCodes(strings.TrimSpace(item))
		if err != nil {
			return "", err
		}
		ranges = append(ranges, r)
	}
	slices.SortFunc(ranges, func(a, b codeRange) int { return a.first - b.first })
	var b strings.Builder
	for i := 0; i < len(ranges); {
		r := ranges[i]
		for i++; i < len(ranges) && ranges[i].first <= r.last+1; i++ {
			r.last = max(r.last, ranges[i].last)
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r.first))
		if r.last > r.first {
			b.WriteString("-" + strconv.Itoa(r.last))
		}
	}
	return b.String(), nil
}

// parseCodes reads one status, range or class.
func parseCodes(item string) (codeRange, error) {
	if class, found := strings.CutSuffix(strings.ToLower(item), "xx"); found && len(class) == 1 {
		item = class + "00-" + class + "99"
	}
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.Atoi(strings.TrimSpace(first))
	b, errB := strconv.Atoi(strings.TrimSpace(last))
	switch {
	case errA != nil || errB != nil:
		return codeRange{}, errors.New("is no list of statuses")
	case a < lowestFinal || b > highestFinal:
		return codeRange{}, errRange
	case a > b:
		return codeRange{}, fmt.Errorf("has a range that runs backwards, %d-%d", a, b)
	}
	return codeRange{a, b}, nil
}
