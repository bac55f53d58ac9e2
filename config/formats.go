package config

import (
	"errors"
	"fmt"
	"math"
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

const (
	// maxRate is far above what one process delivers.
	maxRate = 1e6
	// minRate is one message in a day; anything slower is no limit but a stop.
	minRate = 1.0 / 86400
)

// rateUnits are the times that a rate may count by, the shortest first.
func rateUnits() []struct {
	suffix  string
	seconds float64
} {
	return []struct {
		suffix  string
		seconds float64
	}{{"/s", 1}, {"/m", 60}, {"/h", 3600}}
}

// rate is a number of messages per second up to high; 0 is no bound.
func rate(field func(*Settings) *float64, high float64) value {
	return value{
		kind:    Rate,
		allowed: "0, or 1 in a day to " + formatRate(high) + ", such as 10/s, 600/m or 36000/h",
		nearest: func(text string) string {
			r, err := parseRate(text)
			switch {
			case errors.Is(err, errRange):
				return formatRate(high)
			case err != nil:
				return "10/s"
			}
			return formatRate(min(max(r, 1.0/3600), high))
		},
		set: func(s *Settings, text string) error {
			r, err := parseRate(text)
			if err == nil && r != 0 && (r < minRate || r > high) {
				err = errRange
			}
			if err == nil {
				*field(s) = r
			}
			return err
		},
		get: func(s *Settings) string { return formatRate(*field(s)) },
	}
}

// parseRate reads "10/s", "600/m", "36000/h" or a bare number per second. It
// is out of range when it is too large for any option.
func parseRate(text string) (float64, error) {
	number, seconds := text, 1.0
	for _, unit := range rateUnits() {
		if rest, found := strings.CutSuffix(text, unit.suffix); found {
			number, seconds = strings.TrimSpace(rest), unit.seconds
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && isDecimal(number):
		return 0, errRange
	case err != nil || !isDecimal(number):
		return 0, errors.New("is no rate")
	}
	return n / seconds, nil
}

// formatRate writes r by the shortest time in which it is a whole number.
func formatRate(r float64) string {
	if r == 0 {
		return "0"
	}
	for _, unit := range rateUnits() {
		if n := math.Round(r * unit.seconds); n > 0 && n/unit.seconds == r { // as it is read again
			return strconv.FormatFloat(n, 'f', -1, 64) + unit.suffix
		}
	}
	return strconv.FormatFloat(r, 'f', -1, 64) + "/s"
}

// userName takes NAME, UID or UID:GID.
func userName(text string) (string, error) {
	const longest = 32 // of useradd
	name, group, hasGroup := strings.Cut(text, ":")
	isID := func(s string) bool {
		_, err := strconv.ParseUint(s, 10, 31)
		return err == nil
	}
	switch {
	case hasGroup && (!isID(name) || !isID(group)):
		return "", errors.New("is no number of a user and one of a group")
	case len(name) > longest || name == "" || strings.HasPrefix(name, "-") ||
		!isWord(strings.ReplaceAll(strings.TrimSuffix(name, "$"), ".", "_")):
		return "", errors.New("is no name or number of a user")
	}
	return text, nil
}

// resources are the limits that a process may be given, as ulimit and
// systemd name them.
func resources() []string {
	return []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}
}

// processLimit takes NAME=NUMBER or NAME=unlimited; a number may be a size.
func processLimit(text string) (string, error) {
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found:
		return "", errors.New("has a limit without a value: write nofile=1024")
	case !slices.Contains(resources(), name):
		return "", errors.New("has no limit of that name: there are " + orList(resources()))
	case value == "unlimited":
		return text, nil
	}
	n, err := parseSize(value)
	if err != nil || n < 0 {
		return "", errors.New("has a value that is no number, size or unlimited")
	}
	return name + "=" + strconv.FormatInt(n, 10), nil
}

// appLogFolder takes the folder of the app's log files.
func appLogFolder(text string) (string, error) {
	if text == Off {
		return "", nil
	}
	return folderPath(text)
}
